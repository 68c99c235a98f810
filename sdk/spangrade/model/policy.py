"""When an evaluator runs on production traffic. Policy stands beside the evaluator and is no part of its identity."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from typing import Any

from spangrade.errors import ConfigError
from spangrade.model.sample import Sample

When = str | tuple[str, ...] | Callable[[Sample, Mapping[str, str]], bool]
_RESULTS = ("pass", "fail", "error", "skipped")
_BUDGET_KEYS = ("calls_per_minute", "calls_per_hour", "calls_per_day")
DEFAULT_JUDGE_RATE = 0.1


@dataclass(frozen=True, slots=True)
class Policy:
    """How often, and under which condition.

    Attributes:
        rate: share of matching samples that are graded, in (0, 1]; decided by a hash of the trace id.
        when: ``"metric.result"`` (result one of pass, fail, error, skipped), several of these (any holds), or a
            function of the Sample and a mapping of metric name to result. None: every sample matches.
        max_per_minute: a cap that acts by lowering the *next* minute's rate, so that the recorded probability stays true.
        budget: hard ceilings on calls: ``{"calls_per_hour": 100}``; beyond them the outcome is ``over_budget``.
    """

    rate: float = 1.0
    when: When | None = None
    max_per_minute: float | None = None
    budget: Mapping[str, float] | None = None

    def __post_init__(self) -> None:
        if isinstance(self.rate, bool) or not isinstance(self.rate, (int, float)) or not 0 < self.rate <= 1:
            raise ConfigError(f"rate {self.rate!r} is not a share above 0 and up to 1, such as 0.05 for one in twenty")
        if self.when is not None and not isinstance(self.when, str) and not callable(self.when):
            object.__setattr__(self, "when", tuple(self.when))  # a list, from YAML
        for condition in self.conditions():
            name, _, result = condition.rpartition(".")
            if not name or result not in _RESULTS:
                raise ConfigError(f"when {condition!r} is not 'metric.result' with a result of {', '.join(_RESULTS)}")
        if self.max_per_minute is not None and not self.max_per_minute > 0:
            raise ConfigError(
                f"max_per_minute {self.max_per_minute!r} is not a number above 0; leave it out for no cap"
            )
        for key, limit in (self.budget or {}).items():
            if key not in _BUDGET_KEYS:
                raise ConfigError(
                    f"budget key {key!r} is not one of {', '.join(_BUDGET_KEYS)}"
                    + (
                        "; a ceiling in money needs model prices, which this release does not read"
                        if "usd" in key
                        else ""
                    )
                )
            if isinstance(limit, bool) or not isinstance(limit, (int, float)) or limit < 0:
                raise ConfigError(f"budget {key} {limit!r} is not a number of calls, 0 or more")

    def conditions(self) -> tuple[str, ...]:
        """The ``metric.result`` conditions; empty when ``when`` is a function or absent."""
        if isinstance(self.when, str):
            return (self.when,)
        return self.when if isinstance(self.when, tuple) else ()

    def matches(self, sample: Sample, results: Mapping[str, str]) -> bool:
        """Whether the sample is one that this policy looks at. ``results``: metric name to pass, fail, error, skipped."""
        if self.when is None:
            return True
        if callable(self.when):
            return bool(self.when(sample, results))
        return any(results.get(name) == result for name, _, result in (c.rpartition(".") for c in self.conditions()))


@dataclass(frozen=True, slots=True)
class Placed:
    """An evaluator with its policy: what the pipeline runs.

    ``match``: resource attributes that a span must have, values with ``*`` and ``?`` (``{"service.name": "rag-*"}``).
    """

    evaluator: Any  # an Evaluator; Any keeps the protocol's runtime check out of the hot path
    policy: Policy = Policy()
    match: Mapping[str, str] = field(default_factory=dict)

    def applies_to(self, resource: Mapping[str, Any]) -> bool:
        """Whether a span of this resource is one to grade."""
        return all(fnmatchcase(str(resource.get(key, "")), pattern) for key, pattern in self.match.items())
