"""Functional metrics: a plain function with declared inputs and declared results.

    @discrete_metric(allowed_values=["grounded", "invented"])
    def support(response: str, contexts: list[str]) -> str: ...

    support.score(response="...", contexts=["..."])     # MetricResult(value="grounded", reason=None)

The parameters are the inputs, checked by pydantic before the function runs; the return value is the score, checked against
the allowed values after it. The same object scores live: its inputs are then taken from the `Sample`.
"""

import sys
from collections.abc import Callable, Mapping, Sequence, Set
from typing import TYPE_CHECKING, Any, Final, ParamSpec, Protocol, TypeVar, overload

from spangrade.errors import ConfigError
from spangrade.metrics.local import DEFAULT_TIMEOUT_S
from spangrade.model.result import MetricResult
from spangrade.model.target import Target

if TYPE_CHECKING:  # what makes models of signatures is imported with the first metric: many applications have none
    from spangrade.metrics.functional_metric import FunctionalMetric
    from spangrade.metrics.functional_values import Kind

__all__ = ["MetricResult", "discrete_metric", "numeric_metric", "ranking_metric"]

P = ParamSpec("P")
R = TypeVar("R")
PASS_FAIL: Final = ["pass", "fail"]
UNIT: Final = (0.0, 1.0)
PAIR: Final = 2


class Decorator(Protocol):
    """Makes a metric of a function."""

    def __call__(self, fn: Callable[P, R], /) -> "FunctionalMetric[P, R]":
        """The metric."""


@overload
def discrete_metric(name: Callable[P, R], /) -> "FunctionalMetric[P, R]": ...


@overload
def discrete_metric(
    name: str | None = None,
    allowed_values: Sequence[Any] | Set[Any] | None = PASS_FAIL,
    *,
    inputs: Mapping[str, str] | None = None,
    verdict: bool = True,
    version: int | str | None = None,
    config: Mapping[str, Any] | None = None,
    requires: Sequence[str] = (),
    target: Target = "root",
    timeout: float = DEFAULT_TIMEOUT_S,
    process: bool = False,
) -> Decorator: ...


def discrete_metric(
    name: Any = None,
    allowed_values: Sequence[Any] | Set[Any] | None = PASS_FAIL,
    *,
    inputs: Mapping[str, str] | None = None,
    verdict: bool = True,
    version: int | str | None = None,
    config: Mapping[str, Any] | None = None,
    requires: Sequence[str] = (),
    target: Target = "root",
    timeout: float = DEFAULT_TIMEOUT_S,
    process: bool = False,
) -> Any:
    """Turn a function into a metric whose result is one of a set of categories; bare, or with options.

    Live the category is the score's label; ``pass`` and ``fail``, and True and False, are a verdict too.

    Args:
        name: default: the function's name.
        allowed_values: the categories, default ``["pass", "fail"]``. What equals one counts as it.
        inputs: live, where a parameter's value is found in the `Sample`, by path: ``{"tenant": "metadata.tenant", "texts":
            "documents[].content"}`` (grammar: `spangrade.metrics.functional_paths`). A parameter without a path is filled
            by its name: input, output, expected, documents, context, metadata, or the usual aliases (question, answer,
            user_input, response, reference, contexts, retrieved_contexts). ``documents`` as ``list[str]`` are their texts.
            What a sample does not have leaves the default, or skips the sample.
        verdict: False: neither pass nor fail.
        version: stored as ``config["version"]``.
        config: what identifies the metric beside its name, allowed values and paths.
        requires: Sample fields that must not be empty, else the result is *skipped*.
        target: what is scored: root (default), llm, retriever, tool, agent, ..., or a rule; see `LocalMetric`.
        timeout: seconds after which a live run of it is given up, default 5.
        process: live, True runs it in a worker process; see `LocalMetric`.

    Raises:
        ConfigError: for a name, allowed values, path or function that cannot work. A parameter that no field fills is
            refused when the metric is placed live.
    """
    common = (inputs, version, config, requires, target, timeout, process)
    return _decorator(
        "discrete", name, PASS_FAIL if allowed_values is None else allowed_values, *common, verdict=verdict
    )


@overload
def numeric_metric(name: Callable[P, R], /) -> "FunctionalMetric[P, R]": ...


@overload
def numeric_metric(
    name: str | None = None,
    allowed_values: tuple[float, float] | Sequence[float] | range | None = UNIT,
    *,
    inputs: Mapping[str, str] | None = None,
    threshold: float | None = None,
    lower_is_better: bool = False,
    verdict: bool = True,
    version: int | str | None = None,
    config: Mapping[str, Any] | None = None,
    requires: Sequence[str] = (),
    target: Target = "root",
    timeout: float = DEFAULT_TIMEOUT_S,
    process: bool = False,
) -> Decorator: ...


def numeric_metric(
    name: Any = None,
    allowed_values: tuple[float, float] | Sequence[float] | range | None = UNIT,
    *,
    inputs: Mapping[str, str] | None = None,
    threshold: float | None = None,
    lower_is_better: bool = False,
    verdict: bool = True,
    version: int | str | None = None,
    config: Mapping[str, Any] | None = None,
    requires: Sequence[str] = (),
    target: Target = "root",
    timeout: float = DEFAULT_TIMEOUT_S,
    process: bool = False,
) -> Any:
    """Turn a function into a metric whose result is a finite number in a range; bare, or with options.

    Args:
        name: default: the function's name.
        allowed_values: ``(lowest, highest)``, both included, default ``(0.0, 1.0)``; or a `range` of whole numbers. An end
            may be infinite.
        inputs: see `discrete_metric`, as are all that are not said here.
        threshold: live, the pass mark. None: 0 fails and anything else passes.
        lower_is_better: turns the comparison with the threshold round.

    Raises:
        ConfigError: see `discrete_metric`.
    """
    rule: dict[str, Any] = {"verdict": verdict, "threshold": threshold, "lower_is_better": lower_is_better}
    common = (inputs, version, config, requires, target, timeout, process)
    return _decorator("numeric", name, UNIT if allowed_values is None else allowed_values, *common, **rule)


@overload
def ranking_metric(name: Callable[P, R], /) -> "FunctionalMetric[P, R]": ...


@overload
def ranking_metric(
    name: str | None = None,
    allowed_values: int | None = PAIR,
    *,
    inputs: Mapping[str, str] | None = None,
    version: int | str | None = None,
    config: Mapping[str, Any] | None = None,
    requires: Sequence[str] = (),
    target: Target = "root",
    timeout: float = DEFAULT_TIMEOUT_S,
    process: bool = False,
) -> Decorator: ...


def ranking_metric(
    name: Any = None,
    allowed_values: int | None = PAIR,
    *,
    inputs: Mapping[str, str] | None = None,
    version: int | str | None = None,
    config: Mapping[str, Any] | None = None,
    requires: Sequence[str] = (),
    target: Target = "root",
    timeout: float = DEFAULT_TIMEOUT_S,
    process: bool = False,
) -> Any:
    """Turn a function into a metric whose result is a list of a fixed length; bare, or with options.

    Live the list is sent as it is, as a structured value.

    Args:
        name: default: the function's name.
        allowed_values: how many items the list has, default 2.
        inputs: see `discrete_metric`, as are all that are not said here.

    Raises:
        ConfigError: see `discrete_metric`.
    """
    common = (inputs, version, config, requires, target, timeout, process)
    return _decorator("ranking", name, PAIR if allowed_values is None else allowed_values, *common, verdict=False)


def _decorator(kind: "Kind", name: Any, allowed_values: Any, *common: Any, **rule: Any) -> Any:
    from spangrade.metrics.functional_options import live_options
    from spangrade.metrics.functional_values import allowed

    fn = None if isinstance(name, str) or name is None else name
    if fn is not None and not callable(fn):
        raise ConfigError(f"{kind}_metric: its first argument is a name, not {fn!r}; write allowed_values={fn!r}")
    own_name = None if fn is not None else name
    what = f"{kind}_metric {own_name!r}" if own_name else f"{kind}_metric"
    values, live = allowed(kind, allowed_values, what), live_options(what, *common, **rule)

    def make(fn: Callable[P, R], /) -> "FunctionalMetric[P, R]":
        from spangrade.metrics.functional_metric import FunctionalMetric

        return FunctionalMetric(fn, own_name, kind, values, live, _names_around())

    return make if fn is None else make(fn)


def _names_around() -> Mapping[str, Any]:
    """The local names where the decorator stands: annotations that are text may mean them."""
    frame = sys._getframe()
    while frame.f_globals is globals() and frame.f_back is not None:
        frame = frame.f_back
    return {} if frame.f_locals is frame.f_globals else frame.f_locals
