"""`LocalMetric`: a plain Python function, graded in-process, live and in tests alike."""

import functools
import inspect
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field, fields
from typing import Any, Final, overload

from spangrade.errors import ConfigError
from spangrade.metrics.binding import ALIASES, binding, is_async, name_of
from spangrade.metrics.checks import (
    check_config,
    check_flag,
    check_requires,
    check_threshold,
    check_timeout,
    check_version,
)
from spangrade.metrics.importable import at, function_at, place_of
from spangrade.metrics.source import source_hash
from spangrade.model.evaluator import EvaluatorInfo, Target, Verdict, check_name, check_target, hash_config
from spangrade.model.returned import ScoreReader
from spangrade.model.sample import Sample
from spangrade.model.score import Rule, Score, Skip

__all__ = ["ALIASES", "DEFAULT_TIMEOUT_S", "LocalMetric", "metric"]

DEFAULT_TIMEOUT_S: Final = 5.0
_NUMBERS: Final = frozenset((float, int, bool))
_NOT_AWAITABLE: Final = frozenset((str, type(None), dict, list, tuple, Score))  # to ask takes longer than to read them


@dataclass(frozen=True)
class LocalMetric:
    """A metric made of a function.

    How ``fn`` is called: parameters named like Sample fields (or the usual aliases: question, answer, response,
    reference, contexts, retrieved_contexts) are filled by name; otherwise a single parameter gets the `Sample`;
    otherwise two required positional parameters get ``(item, output)``, where ``item`` is a read-only mapping with
    input, expected, documents, context and metadata. ``fn`` may be async. The details (defaults, partials, ``**kwargs``)
    are in `spangrade.metrics.binding`, what it may return in `spangrade.model.returned`.

    In the pipeline its time is limited, and no span or context of the application is around it. An async one runs on an
    event loop of ours, one for all. A sync one runs on a thread of ours: Python cannot end a thread, so one that hangs
    costs its own place, never the others'; after three time-outs in a row it is paused for a minute, then for longer. One
    that keeps the processor busy holds up every thread of the application by turns: give it ``process=True``.

    Attributes:
        fn: the function.
        name: default: the function's name.
        threshold: pass mark. None: 0 fails and anything else passes.
        config: what identifies the metric beside its name; change it (or ``version``) when the code changes.
        requires: Sample fields that must not be empty, else the result is *skipped*.
        target: what is scored: root (default), llm, retriever, tool, agent, ..., or a rule on name and attributes such as
            ``"name = answer*"`` (see `spangrade.model.target`).
        lower_is_better: turns the comparison with the threshold round.
        verdict: False: a measurement, neither pass nor fail.
        timeout: seconds after which a live run of it is given up, default 5.
        process: True: the pipeline runs it in a worker process, where it may use a whole core without holding up the
            application. Workers are few, shared by all such metrics, started with the first sample, and ended with a
            metric that runs out of time. The metric must be importable there: at the top of a module, not in the script
            that runs. Called by itself (`evaluate`, or as a function) it runs here.

    Raises:
        ConfigError: for a name, field, target or signature that cannot work.
    """

    fn: Callable[..., Any]
    name: str = ""
    threshold: float | None = None
    config: dict[str, Any] = field(default_factory=dict)
    requires: tuple[str, ...] = ()
    target: Target = "root"
    lower_is_better: bool = False
    verdict: bool = True
    timeout: float = DEFAULT_TIMEOUT_S
    process: bool = False

    def __post_init__(self) -> None:
        if not callable(self.fn):
            raise ConfigError(f"metric: {self.fn!r} is not a function; decorate a function of the sample")
        name = self.name or name_of(self.fn)
        what = f"metric {name!r}"
        object.__setattr__(self, "name", check_name(name, "metric"))
        object.__setattr__(self, "requires", check_requires(self.requires, what))
        object.__setattr__(self, "config", check_config(self.config, what))
        object.__setattr__(self, "target", check_target(self.target, what))
        check_threshold(self.threshold, what)
        check_timeout(self.timeout, what)
        check_flag(self.lower_is_better, "lower_is_better", what)
        check_flag(self.verdict, "verdict", what)
        check_flag(self.process, "process", what)
        object.__setattr__(self, "_call", binding(self.fn, what))
        read = ScoreReader(self.name, Rule(self.threshold, self.lower_is_better, self.verdict))
        object.__setattr__(self, "_read", read)
        object.__setattr__(self, "_read_number", read.number)
        for attribute in ("__doc__", "__name__", "__qualname__", "__module__"):  # reads like the function it was
            if hasattr(self.fn, attribute):
                object.__setattr__(self, attribute, getattr(self.fn, attribute))
        object.__setattr__(self, "__wrapped__", self.fn)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """The function itself, unchanged: a metric can still be called and tested as one."""
        return self.fn(*args, **kwargs)

    def __hash__(self) -> int:
        return hash((self.name, self.target))

    def __reduce__(self) -> tuple[Any, ...]:
        """By its place in its module where it is found there, else by its parts; see `spangrade.metrics.importable`."""
        place = place_of(self)
        if place is not None:
            return at, (place,)
        parts = {f.name: getattr(self, f.name) for f in fields(self) if f.name != "fn"}
        parts["config"] = dict(self.config)
        place = place_of(self.fn)
        return _made_of, (place if place is not None else self.fn, parts)

    @functools.cached_property
    def info(self) -> EvaluatorInfo:
        """Identity for counters and the wire."""
        version = self.config.get("version")
        return EvaluatorInfo(
            name=self.name,
            kind="code",
            version=None if version is None else str(version),
            config_hash=hash_config({"config": self.config, "target": self.target}) if self.config else "",
            requires=self.requires,
            threshold=self.threshold,
            lower_is_better=self.lower_is_better,
            verdict=self.verdict,
            target=str(self.target),
        )

    @functools.cached_property
    def is_async(self) -> bool:
        """Whether `evaluate` is known to return an awaitable. (It may all the same where a plain function hides one.)"""
        return is_async(self.fn)

    @functools.cached_property
    def source_hash(self) -> str | None:
        """See `spangrade.metrics.source`."""
        return source_hash(self.fn)

    def evaluate(self, sample: Sample) -> Verdict | Awaitable[Verdict]:
        """The verdict on one sample, here and now: without a time limit, in this process. Of an async function: an
        awaitable of it.

        Raises:
            Skip: a required field is empty, or the function returned None.
            ReturnError: the function returned what is no score. (Of several scores, those that are none are the
                verdict's failures.)
        """
        if self.requires:
            missing = sample.missing(self.requires)
            if missing:
                raise Skip(f"{', '.join(missing)} missing")
        returned = self._call(sample)  # type: ignore[attr-defined]
        kind = type(returned)
        if kind in _NUMBERS:
            return self._read_number(returned)  # type: ignore[attr-defined,no-any-return]
        if kind not in _NOT_AWAITABLE and inspect.isawaitable(returned):
            return self._later(returned)
        return self._read(returned)  # type: ignore[attr-defined,no-any-return]

    async def _later(self, returned: Any) -> Verdict:
        while inspect.isawaitable(returned):  # a coroutine may return another
            returned = await returned
        return self._read(returned)  # type: ignore[attr-defined,no-any-return]


def _made_of(fn: Any, parts: dict[str, Any]) -> LocalMetric:
    return LocalMetric(function_at(fn) if isinstance(fn, str) else fn, **parts)


@overload
def metric(fn: Callable[..., Any], /) -> LocalMetric: ...


@overload
def metric(
    *,
    name: str | None = None,
    threshold: float | None = None,
    version: int | str | None = None,
    config: Mapping[str, Any] | None = None,
    requires: Sequence[str] = (),
    target: Target = "root",
    lower_is_better: bool = False,
    verdict: bool = True,
    timeout: float = DEFAULT_TIMEOUT_S,
    process: bool = False,
) -> Callable[[Callable[..., Any]], LocalMetric]: ...


def metric(
    fn: Callable[..., Any] | None = None,
    /,
    *,
    name: str | None = None,
    threshold: float | None = None,
    version: int | str | None = None,
    config: Mapping[str, Any] | None = None,
    requires: Sequence[str] = (),
    target: Target = "root",
    lower_is_better: bool = False,
    verdict: bool = True,
    timeout: float = DEFAULT_TIMEOUT_S,
    process: bool = False,
) -> LocalMetric | Callable[[Callable[..., Any]], LocalMetric]:
    """Turn a function into a `LocalMetric`; bare (``@metric``) or with options.

    ``version`` is stored as ``config["version"]``. The other options are those of `LocalMetric`.
    """

    def make(function: Callable[..., Any]) -> LocalMetric:
        settings: Any = {} if config is None else config
        if version is not None:
            check_version(version, f"metric {name or name_of(function)!r}")
        if version is not None and isinstance(settings, Mapping):
            settings = {**settings, "version": version}
        return LocalMetric(
            function,
            name or "",
            threshold,
            settings,
            requires,  # type: ignore[arg-type]  # made a tuple there
            target,
            lower_is_better,
            verdict,
            timeout,
            process,
        )

    return make(fn) if fn is not None else make
