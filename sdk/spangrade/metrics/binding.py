"""How a `Sample` becomes a function's arguments: decided once, from its signature, and then done quickly.

Parameters named like Sample fields, or by other tools' words for them, are filled by name; ``sample`` (or a parameter
annotated `Sample`) is the Sample itself, ``item`` the dataset item. A single required parameter of another name gets the
Sample; two required positional ones get ``(item, output)``. A parameter with a default keeps it where the Sample has None;
what `functools.partial` has bound stays bound; ``**kwargs`` gets the fields that nothing else asked for.
"""

import functools
import inspect
from collections.abc import Callable, Mapping
from inspect import Parameter
from operator import attrgetter
from typing import Any, Final

from spangrade.errors import ConfigError
from spangrade.model.sample import SAMPLE_FIELDS, FrozenDict, Sample

#: Other tools' words for the fields of a Sample.
ALIASES: Final[Mapping[str, str]] = {
    "question": "input",
    "query": "input",
    "user_input": "input",
    "answer": "output",
    "response": "output",
    "reference": "expected",
    "expected_output": "expected",
    "contexts": "documents",
    "retrieved_contexts": "documents",
}

_SAMPLE: Final = "sample"
_ITEM: Final = "item"
_VARIADIC: Final = (Parameter.VAR_POSITIONAL, Parameter.VAR_KEYWORD)


def field_of(name: str) -> str | None:
    """The Sample field that ``name`` means, by itself or as another tool's word; None for any other name."""
    found = ALIASES.get(name, name)
    return found if found in SAMPLE_FIELDS else None


def item_of(sample: Sample) -> FrozenDict:
    """The dataset item as ``fn(item, output)`` gets it: a read-only mapping; live, its ``expected`` is None."""
    return FrozenDict(
        input=sample.input,
        expected=sample.expected,
        documents=sample.documents,
        context=sample.context,
        metadata=sample.metadata,
    )


def binding(fn: Callable[..., Any], what: str) -> Callable[[Sample], Any]:
    """What calls ``fn`` with the arguments that it takes, from a Sample. ``what`` names it in errors.

    Raises:
        ConfigError: a parameter cannot be filled, or the function is one that gives no score when it is called.
    """
    _check_kind(fn, what)
    try:
        signature = _signature(fn)
    except (TypeError, ValueError):  # a builtin without a signature
        return fn
    bound = bound_names(fn)
    parameters = [p for p in signature.parameters.values() if p.name not in bound]
    rest = any(p.kind is Parameter.VAR_KEYWORD for p in parameters)
    plain = [p for p in parameters if p.kind not in _VARIADIC]
    anything = not plain and any(p.kind is Parameter.VAR_POSITIONAL for p in parameters)
    sources = None if anything or _is_method(plain) else _sources(plain, rest=rest)
    if sources is None:
        raise ConfigError(f"{what}: {_why_not(plain)}")
    return _call(fn, plain, sources, rest=rest and _SAMPLE not in sources.values())


def is_async(fn: Callable[..., Any]) -> bool:
    """Whether calling ``fn`` gives an awaitable, as far as can be told before it is called: partials, decorated functions
    and callable objects are looked into."""
    fn = inspect.unwrap(_innermost(fn))
    return inspect.iscoroutinefunction(fn) or inspect.iscoroutinefunction(getattr(type(fn), "__call__", None))  # noqa: B004


def name_of(fn: Callable[..., Any]) -> str:
    """What a function is called: of a partial, what is inside; of a callable object, its class."""
    inner = _innermost(fn)
    return getattr(inner, "__name__", "") or type(inner).__name__


def _innermost(fn: Any) -> Any:
    while isinstance(fn, functools.partial):
        fn = fn.func
    return fn


def bound_names(fn: Any) -> set[str]:
    """Keywords that partials have given a value: they show up as defaults, and are none."""
    names: set[str] = set()
    while isinstance(fn, functools.partial):
        names.update(fn.keywords)
        fn = fn.func
    return names


def _check_kind(fn: Callable[..., Any], what: str) -> None:
    inner = _innermost(fn)
    if isinstance(inner, type):
        raise ConfigError(
            f"{what}: {inner.__name__} is a class; give a function, or an object of it that can be called"
        )
    call = inner if inspect.isroutine(inner) else getattr(type(inner), "__call__", None)  # noqa: B004
    if inspect.isgeneratorfunction(call) or inspect.isasyncgenfunction(call):
        raise ConfigError(
            f"{what} is a generator function; a metric returns its score (several scores: a dict) instead"
        )


def _signature(fn: Callable[..., Any]) -> inspect.Signature:
    """That of what is called. A wrapper that takes anything is described by what it wraps (`functools.wraps`); one with
    parameters of its own takes those, whatever it wraps."""
    own = inspect.signature(fn, follow_wrapped=False)
    if any(p.kind in _VARIADIC for p in own.parameters.values()):
        return inspect.signature(fn)
    return own


def _sources(plain: list[Parameter], *, rest: bool) -> dict[str, str] | None:
    """What each parameter is filled with: a Sample field, `_SAMPLE`, or `_ITEM`; None when one cannot be filled."""
    required = [p for p in plain if p.default is p.empty]
    sources = {p.name: field for p in plain if (field := field_of(p.name)) is not None}
    sources |= {p.name: _SAMPLE for p in plain if p.name not in sources and _is_sample(p)}
    if len(required) > 1:
        sources |= {p.name: _ITEM for p in required if p.name == _ITEM}
    unfilled = [p for p in required if p.name not in sources]
    if not unfilled and (sources or rest):
        return sources
    if len(required) == 1 or (not required and len(plain) == 1):
        return {**sources, (required or plain)[0].name: _SAMPLE}
    positional = [p for p in required if p.kind is not p.KEYWORD_ONLY]
    if len(required) == len(positional) == 2 and positional[0] in unfilled:
        first, second = positional
        if sources.get(second.name, "output") == "output":  # else a misspelt field would get the wrong thing
            return {**sources, first.name: _ITEM, second.name: "output"}
    return None


def _is_sample(parameter: Parameter) -> bool:
    annotation = parameter.annotation
    if annotation is Sample or parameter.name == _SAMPLE:
        return True
    return isinstance(annotation, str) and annotation.strip("\"'").rpartition(".")[2] == "Sample"


def _is_method(plain: list[Parameter]) -> bool:
    return bool(plain) and plain[0].name in ("self", "cls")


def _why_not(plain: list[Parameter]) -> str:
    ways = (
        "take one parameter (the Sample), (item, output), or parameters named like its fields: "
        f"{', '.join(SAMPLE_FIELDS)} (also {', '.join(ALIASES)})"
    )
    if _is_method(plain):
        return f"its first parameter is {plain[0].name!r}: it is a method; give object.method, or make it a function. {ways}"
    unknown = [p.name for p in plain if p.default is p.empty and field_of(p.name) is None]
    if not plain:
        return f"without named parameters it cannot be filled (a decorator without functools.wraps hides them); {ways}"
    return f"parameters {', '.join(unknown) or '(none)'} cannot be filled; {ways}"


# --- the call ---------------------------------------------------------------------------------------------------------


def _call(
    fn: Callable[..., Any], plain: list[Parameter], sources: Mapping[str, str], *, rest: bool
) -> Callable[[Sample], Any]:
    filled = [p for p in plain if p.name in sources]
    by_position = [p for p in plain[: len(filled)] if p.kind is not Parameter.KEYWORD_ONLY and p.name in sources]
    optional = any(p.default is not p.empty and sources[p.name] in SAMPLE_FIELDS for p in filled)
    if not rest and not optional and len(by_position) == len(filled):  # most functions: fields in order, no gaps
        kinds = [sources[p.name] for p in filled]
        if kinds == [_SAMPLE]:
            return fn
        if all(kind in SAMPLE_FIELDS for kind in kinds):
            get = attrgetter(*kinds)
            return (lambda sample: fn(get(sample))) if len(kinds) == 1 else (lambda sample: fn(*get(sample)))
    return _any_call(fn, plain, sources, rest=rest)


def _any_call(
    fn: Callable[..., Any], plain: list[Parameter], sources: Mapping[str, str], *, rest: bool
) -> Callable[[Sample], Any]:
    only_positional = [p for p in plain if p.kind is Parameter.POSITIONAL_ONLY]
    while only_positional and only_positional[-1].name not in sources:
        only_positional.pop()
    by_name = [p for p in plain if p.kind is not Parameter.POSITIONAL_ONLY and p.name in sources]
    asked = {sources[p.name] for p in plain if p.name in sources}
    others = (
        [name for name in SAMPLE_FIELDS if name not in asked and name not in {p.name for p in plain}] if rest else []
    )

    def call(sample: Sample) -> Any:
        arguments = [_value(sample, sources.get(p.name), p.default) for p in only_positional]
        named = {p.name: _value(sample, sources[p.name], p.default) for p in by_name}
        for name in others:
            named[name] = getattr(sample, name)
        return fn(*arguments, **named)

    return call


def _value(sample: Sample, source: str | None, default: Any) -> Any:
    if source is None:
        return default
    if source == _SAMPLE:
        return sample
    if source == _ITEM:
        return item_of(sample)
    found = getattr(sample, source)
    return default if found is None and default is not Parameter.empty else found
