"""`LocalMetric`: a plain Python function, graded in-process, live and in tests alike."""

import functools
import inspect
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, overload

from spangrade._values import snapshot
from spangrade.errors import ConfigError
from spangrade.model.evaluator import EvaluatorInfo, Verdict, check_name, check_target, hash_config
from spangrade.model.sample import SAMPLE_FIELDS, FrozenDict, Sample, freeze
from spangrade.model.score import Skip, read_scores

#: Other tools' words for the fields of a Sample.
ALIASES: Final[Mapping[str, str]] = {
    "question": "input",
    "query": "input",
    "answer": "output",
    "response": "output",
    "reference": "expected",
    "expected_output": "expected",
    "contexts": "documents",
    "retrieved_contexts": "documents",
}
DEFAULT_TIMEOUT_S: Final = 5.0


@dataclass(frozen=True)
class LocalMetric:
    """A metric made of a function.

    How ``fn`` is called: parameters named like Sample fields (or the usual aliases: question, answer, response,
    reference, contexts, retrieved_contexts) are filled by name; otherwise a single parameter gets the `Sample`;
    otherwise two required positional parameters get ``(item, output)``, where ``item`` is a read-only mapping with
    input, expected, documents, context and metadata. ``fn`` may be async.

    Attributes:
        fn: the function.
        name: default: the function's name.
        threshold: pass mark. None: 0 fails and anything else passes.
        config: what identifies the metric beside its name; change it (or ``version``) when the code changes.
        requires: Sample fields that must not be empty, else the result is *skipped*.
        target: what is scored: root (default), llm, retriever, tool, agent, ...
        lower_is_better: turns the comparison with the threshold round.
        verdict: False: a measurement, neither pass nor fail.
        timeout: seconds after which a live run of it is given up, default 5.

    Raises:
        ConfigError: for a name, field, target or signature that cannot work.
    """

    fn: Callable[..., Any]
    name: str = ""
    threshold: float | None = None
    config: dict[str, Any] = field(default_factory=dict)
    requires: tuple[str, ...] = ()
    target: str = "root"
    lower_is_better: bool = False
    verdict: bool = True
    timeout: float = DEFAULT_TIMEOUT_S

    def __post_init__(self) -> None:
        if not callable(self.fn):
            raise ConfigError(f"metric: {self.fn!r} is not a function; decorate a function of the sample")
        name = self.name or getattr(self.fn, "__name__", "") or type(self.fn).__name__
        what = f"metric {name!r}"
        object.__setattr__(self, "name", check_name(name, "metric"))
        requires = tuple(self.requires)
        for required in requires:
            if required not in SAMPLE_FIELDS:
                raise ConfigError(f"{what} requires {required!r}; a Sample has {', '.join(SAMPLE_FIELDS)}")
        object.__setattr__(self, "requires", requires)
        object.__setattr__(self, "config", freeze(snapshot(dict(self.config))))
        check_target(self.target, what)
        if self.threshold is not None and (
            isinstance(self.threshold, bool) or not isinstance(self.threshold, (int, float))
        ):
            raise ConfigError(f"{what}: threshold {self.threshold!r} is not a number")
        if not self.timeout > 0:
            raise ConfigError(f"{what}: timeout {self.timeout!r} is not a number of seconds above 0")
        object.__setattr__(self, "_call", _binding(self.fn, what))
        for attribute in ("__doc__", "__name__", "__qualname__", "__module__"):  # reads like the function it was
            if hasattr(self.fn, attribute):
                object.__setattr__(self, attribute, getattr(self.fn, attribute))
        object.__setattr__(self, "__wrapped__", self.fn)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """The function itself, unchanged: a metric can still be called and tested as one."""
        return self.fn(*args, **kwargs)

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
            target=self.target,
        )

    @functools.cached_property
    def is_async(self) -> bool:
        """Whether `evaluate` returns an awaitable."""
        return inspect.iscoroutinefunction(inspect.unwrap(self.fn)) or inspect.iscoroutinefunction(
            getattr(type(self.fn), "__call__", None)  # noqa: B004 - a callable object with an async __call__
        )

    def evaluate(self, sample: Sample) -> Verdict | Awaitable[Verdict]:
        """The verdict on one sample.

        Raises:
            Skip: a required field is empty, or the function returned None.
            ReturnError: the function returned what is no score.
        """
        missing = sample.missing(self.requires)
        if missing:
            raise Skip(f"{', '.join(missing)} missing")
        returned = self._call(sample)  # type: ignore[attr-defined]
        if inspect.isawaitable(returned):
            return self._later(returned)
        return self._read(returned)

    async def _later(self, returned: Awaitable[Any]) -> Verdict:
        return self._read(await returned)

    def _read(self, returned: Any) -> Verdict:
        return Verdict(
            tuple(
                read_scores(
                    self.name,
                    returned,
                    threshold=self.threshold,
                    lower_is_better=self.lower_is_better,
                    verdict=self.verdict,
                )
            )
        )


def _binding(fn: Callable[..., Any], what: str) -> Callable[[Sample], Any]:
    """How a Sample becomes the function's arguments; decided once, from its signature."""
    try:
        parameters = [
            p for p in inspect.signature(fn).parameters.values() if p.kind not in (p.VAR_POSITIONAL, p.VAR_KEYWORD)
        ]
    except (TypeError, ValueError):  # a builtin without a signature
        return fn
    required = [p for p in parameters if p.default is p.empty]
    fields = {p.name: ALIASES.get(p.name, p.name) for p in parameters if ALIASES.get(p.name, p.name) in SAMPLE_FIELDS}
    positional = [p for p in required if p.kind is not p.KEYWORD_ONLY]
    if len(required) == 2 and [p.name for p in positional] == ["item", "output"]:
        return lambda sample: fn(_item(sample), sample.output)
    if fields and all(p.name in fields for p in required):
        if not any(p.kind is p.POSITIONAL_ONLY for p in parameters):
            names = tuple(fields.items())
            return lambda sample: fn(**{name: getattr(sample, attribute) for name, attribute in names})
        order = tuple(fields[p.name] for p in parameters if p.name in fields)
        return lambda sample: fn(*[getattr(sample, attribute) for attribute in order])
    if len(positional) == 1 and len(required) == 1:
        return fn
    if not required and len(parameters) == 1:
        return fn
    if len(positional) == 2 and len(required) == 2:
        first, second = (fields.get(p.name) for p in positional)
        if first is None and second in (None, "output"):  # else a misspelt field would get the wrong thing
            return lambda sample: fn(_item(sample), sample.output)
    unknown = [p.name for p in required if p.name not in fields] or ["(none)"]
    raise ConfigError(
        f"{what}: parameters {', '.join(unknown)} cannot be filled; take one parameter (the Sample), (item, output), or "
        f"parameters named like its fields: {', '.join(SAMPLE_FIELDS)} (also {', '.join(ALIASES)})"
    )


def _item(sample: Sample) -> Mapping[str, Any]:
    return FrozenDict(
        input=sample.input,
        expected=sample.expected,
        documents=sample.documents,
        context=sample.context,
        metadata=sample.metadata,
    )


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
    target: str = "root",
    lower_is_better: bool = False,
    verdict: bool = True,
    timeout: float = DEFAULT_TIMEOUT_S,
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
    target: str = "root",
    lower_is_better: bool = False,
    verdict: bool = True,
    timeout: float = DEFAULT_TIMEOUT_S,
) -> LocalMetric | Callable[[Callable[..., Any]], LocalMetric]:
    """Turn a function into a `LocalMetric`; bare (``@metric``) or with options.

    ``version`` is stored as ``config["version"]``. The other options are those of `LocalMetric`.
    """

    def make(function: Callable[..., Any]) -> LocalMetric:
        settings = dict(config or {})
        if version is not None:
            settings["version"] = version
        return LocalMetric(
            function,
            name or "",
            threshold,
            settings,
            tuple([requires] if isinstance(requires, str) else requires),
            target,
            lower_is_better,
            verdict,
            timeout,
        )

    return make(fn) if fn is not None else make
