"""When an evaluator runs on production traffic. Policy stands beside the evaluator and is no part of its identity."""

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from typing import Any, Final

from spangrade.errors import ConfigError
from spangrade.model.condition import Facts, Holds, condition
from spangrade.model.sample import FrozenDict, Sample

When = str | tuple[str, ...] | Callable[[Sample, Mapping[str, str]], bool]
CALLS: Final = ("calls_per_minute", "calls_per_hour", "calls_per_day")
MONEY: Final = ("usd_per_hour", "usd_per_day")
DEFAULT_JUDGE_RATE: Final = 0.1
ELSE: Final = "else"


@dataclass(frozen=True, slots=True)
class Stratum:
    """Samples that share a rate. ``name``: the condition, or ``else``; None for all samples of a policy with one rate."""

    name: str | None
    rate: float


@dataclass(frozen=True, slots=True)
class Policy:
    """How often, and under which condition.

    Attributes:
        rate: share of matching samples that are graded, in (0, 1]; decided by a hash of the trace id. Or several, each for
            the samples of a condition: ``{"overlap.fail": 1.0, "else": 0.02}``. The first condition that holds counts; a
            sample for which none holds is not graded when there is no ``else``.
        when: a condition (see `spangrade.model.condition`), several (any may hold), or a function of the Sample and a
            mapping of metric name to result. None: every sample matches.
        max_per_minute, min_per_minute: a cap and a floor that act by lowering or raising the *next* minute's rates, so that
            the recorded probability stays true. More than every sample is not graded.
        budget: hard ceilings: on calls in this process (``calls_per_minute``, ``calls_per_hour``, ``calls_per_day``) and in
            US dollars, shared (``usd_per_hour``, ``usd_per_day``; see `spangrade.scoring.purse`). Beyond them the outcome
            is ``over_budget``.
        group: judges of one group choose nested samples (the lower rate's are among the higher one's); judges without
            one choose independently of each other.
    """

    rate: float | Mapping[str, float] = 1.0
    when: When | None = None
    max_per_minute: float | None = None
    budget: Mapping[str, float] | None = None
    min_per_minute: float | None = None
    group: str | None = None
    _strata: tuple[tuple[Holds | None, Stratum], ...] = field(init=False, repr=False, compare=False)
    _when: tuple[Holds, ...] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        if self.when is not None and not isinstance(self.when, str) and not callable(self.when):
            object.__setattr__(self, "when", tuple(self.when))  # a list, from YAML
        object.__setattr__(self, "_when", tuple(condition(one) for one in self.conditions()))
        object.__setattr__(self, "_strata", _strata(self.rate))
        if isinstance(self.rate, Mapping):
            object.__setattr__(self, "rate", FrozenDict(self.rate))
        for name in ("max_per_minute", "min_per_minute"):
            limit = getattr(self, name)
            if limit is not None and (isinstance(limit, bool) or not isinstance(limit, (int, float)) or not limit > 0):
                raise ConfigError(f"{name} {limit!r} is not a number above 0; leave it out for none")
        if self.max_per_minute and self.min_per_minute and self.min_per_minute > self.max_per_minute:
            raise ConfigError(f"min_per_minute {self.min_per_minute!r} is above max_per_minute {self.max_per_minute!r}")
        if self.group is not None and (not isinstance(self.group, str) or not self.group.strip()):
            raise ConfigError(f"group {self.group!r} is no name; leave it out to choose independently")
        for key, limit in (self.budget or {}).items():
            if key not in (*CALLS, *MONEY):
                raise ConfigError(f"budget key {key!r} is not one of {', '.join((*CALLS, *MONEY))}")
            if isinstance(limit, bool) or not isinstance(limit, (int, float)) or not 0 <= limit < math.inf:
                what = "US dollars" if key in MONEY else "calls"
                raise ConfigError(f"budget {key} {limit!r} is not a number of {what}, 0 or more")

    def budget_of(self, kinds: tuple[str, ...]) -> dict[str, float]:
        """The ceilings of these kinds (`CALLS` or `MONEY`)."""
        return {key: limit for key, limit in (self.budget or {}).items() if key in kinds}

    def conditions(self) -> tuple[str, ...]:
        """The conditions of ``when`` as they are written; empty when it is a function or absent."""
        if isinstance(self.when, str):
            return (self.when,)
        return self.when if isinstance(self.when, tuple) else ()

    @property
    def conditional(self) -> bool:
        """Whether the decision needs to know the sample."""
        return self.when is not None or self._strata[0][0] is not None

    @property
    def asks_code(self) -> bool:
        """Whether it runs code of the application's."""
        return callable(self.when)

    @property
    def strata(self) -> tuple[Stratum, ...]:
        """All of them, in order."""
        return tuple(stratum for _, stratum in self._strata)

    def stratum(self, facts: Facts) -> Stratum | None:
        """The one that a sample is of; None when it is one that this policy does not look at."""
        if callable(self.when):
            if not self.when(facts.sample, facts.results):
                return None
        elif self._when and not any(holds(facts) for holds in self._when):
            return None
        return next((stratum for holds, stratum in self._strata if holds is None or holds(facts)), None)


def _strata(rate: Any) -> tuple[tuple[Holds | None, Stratum], ...]:
    if not isinstance(rate, Mapping):
        return ((None, Stratum(None, _share(rate, "rate"))),)
    if not rate:
        raise ConfigError("rate {} names no samples; give a share such as 0.05, or {'overlap.fail': 1.0, 'else': 0.02}")
    names = sorted(rate, key=lambda name: name == ELSE)  # the rest comes last, wherever it is written
    return tuple(
        (None if name == ELSE else condition(name), Stratum(name, _share(rate[name], f"rate[{name!r}]")))
        for name in names
    )


def _share(rate: Any, what: str) -> float:
    if isinstance(rate, bool) or not isinstance(rate, (int, float)) or not 0 < rate <= 1:
        raise ConfigError(f"{what} {rate!r} is not a share above 0 and up to 1, such as 0.05 for one in twenty")
    return float(rate)


@dataclass(frozen=True, slots=True)
class Placed:
    """An evaluator with its policy: what the pipeline runs.

    ``match``: resource attributes that a span must have, values with ``*`` and ``?`` (``{"service.name": "rag-*"}``).
    """

    evaluator: Any  # an Evaluator; Any keeps the protocol's runtime check out of the hot path
    policy: Policy = Policy()
    match: Mapping[str, str] = field(default_factory=dict)
    canaries: tuple[Any, ...] = ()  # of `spangrade.judges.canary`; ``canary_rate``: beside this share of what is graded
    canary_rate: float = 0.0

    def applies_to(self, resource: Mapping[str, Any]) -> bool:
        """Whether a span of this resource is one to grade."""
        return all(fnmatchcase(str(resource.get(key, "")), pattern) for key, pattern in self.match.items())
