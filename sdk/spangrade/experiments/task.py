"""How a task is called on an item, and what its output is: sync, async, or a stream that is joined."""

import functools
import inspect
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping
from typing import Any, Final, get_type_hints

from spangrade.errors import ConfigError
from spangrade.experiments.item import COLUMNS, Item, field_named
from spangrade.model.sample import Sample
from spangrade.tracing.chat import Joined
from spangrade.tracing.decorator import is_traced

WHOLE: Final = frozenset({"item", "example", "row", "record", "case", "datapoint"})


class Task:
    """A task, bound to the items of a dataset.

    Parameters named like an item's fields (or their usual aliases, such as ``question`` and ``contexts``) or like a column
    of the dataset are filled by name. A single parameter of another name gets the input, unless it is called ``item``
    (``example``, ``row``, ``record``, ``case``), ``sample``, or its type is a mapping or `Sample`: then it gets the whole
    item. The function may be async, and may be a generator, whose chunks are joined.

    Raises:
        ConfigError: it is not callable, or has a parameter that no item can fill.
    """

    def __init__(self, fn: Any, items: tuple[Item, ...]) -> None:
        if isinstance(fn, (list, tuple)):
            raise ConfigError("task: a list is no function; the order is dataset, task (or None), evaluators")
        if not callable(fn):
            raise ConfigError(
                f"task: {type(fn).__name__} {fn!r} is no function; give a function of an item's input, or None"
            )
        if inspect.isclass(fn):
            raise ConfigError(f"task: {fn.__name__} is a class; give a function, or an instance that can be called")
        self.fn: Callable[..., Any] = fn
        self.name = _name(fn)
        self.is_traced = is_traced(fn)
        self._arguments = _binding(fn, items)

    @functools.cached_property
    def is_async(self) -> bool:
        """Whether it runs on the event loop."""
        fn = inspect.unwrap(self.fn)
        call = getattr(type(fn), "__call__", None)  # noqa: B004 - an object with an async __call__
        of = (fn.func if isinstance(fn, functools.partial) else fn, call)
        return any(inspect.iscoroutinefunction(one) or inspect.isasyncgenfunction(one) for one in of)

    def call(self, item: Item) -> Any:
        """What the function returns: the output, or what becomes of it in `joined` or `awaited`."""
        args, kwargs = self._arguments(item)
        return self.fn(*args, **kwargs)


def joined(returned: Any) -> Any:
    """The output of a plain function: a generator's chunks, joined if they are texts, else as a list."""
    return _join(list(returned)) if isinstance(returned, Iterator) and not _is_file(returned) else returned


async def awaited(returned: Any) -> Any:
    """The output of an async function, or of a function that returned something to be awaited."""
    while isinstance(returned, Awaitable):
        returned = await returned
    if isinstance(returned, AsyncIterator):
        return _join([chunk async for chunk in returned])
    return joined(returned)


def is_later(returned: Any) -> bool:
    """Whether it takes an event loop to get the output."""
    return isinstance(returned, (Awaitable, AsyncIterator))


def _join(chunks: list[Any]) -> Any:
    """Texts joined; chunks of a chat client as what they say, as live; else the list."""
    if all(isinstance(chunk, str) for chunk in chunks):
        return "".join(chunks)
    chat = Joined()
    said = chat.value(thoughts=False) if all(chat.hear(chunk) for chunk in chunks) else None
    return chunks if said is None else said


def _is_file(value: Any) -> bool:
    return hasattr(value, "readline")


def _name(fn: Any) -> str:
    fn = fn.func if isinstance(fn, functools.partial) else fn
    name = getattr(fn, "__qualname__", None) or type(fn).__qualname__
    return name.rpartition("<locals>.")[2] if isinstance(name, str) else "task"


Arguments = tuple[tuple[Any, ...], dict[str, Any]]


def _binding(fn: Callable[..., Any], items: tuple[Item, ...]) -> Callable[[Item], Arguments]:
    try:
        parameters = [
            p for p in inspect.signature(fn).parameters.values() if p.kind not in (p.VAR_POSITIONAL, p.VAR_KEYWORD)
        ]
    except (TypeError, ValueError):  # a builtin without a signature
        return lambda item: ((item["input"],), {})
    required = [p for p in parameters if p.default is p.empty]
    if len(required) == 1 or (not required and len(parameters) == 1):
        only = (required or parameters)[0]
        if len(parameters) == 1 or not _known(only.name, items):
            return _one(fn, only, items)
    if not parameters:
        raise ConfigError(f"task {_name(fn)!r} takes no parameter; give it one for an item's input")
    if positional := [p.name for p in required if p.kind is p.POSITIONAL_ONLY and not _known(p.name, items)]:
        raise ConfigError(f"task {_name(fn)!r}: positional parameters {', '.join(positional)} are no fields of an item")
    names = [p for p in parameters if _known(p.name, items)]
    unknown = [p.name for p in required if not _known(p.name, items)]
    if unknown:
        columns = dict.fromkeys(key for item in items for key in item["metadata"])
        raise ConfigError(
            f"task {_name(fn)!r}: parameters {', '.join(unknown)} cannot be filled; take one parameter (the input, or "
            f"`item`), or parameters named like an item's fields: {', '.join((*COLUMNS, *columns))}"
        )
    order = [p.name for p in names if p.kind is p.POSITIONAL_ONLY]
    rest = [p.name for p in names if p.kind is not p.POSITIONAL_ONLY]
    defaults = {p.name: p.default for p in names if p.default is not p.empty}

    def arguments(item: Item) -> Arguments:
        return tuple(_value(item, name, defaults) for name in order), {n: _value(item, n, defaults) for n in rest}

    return arguments


def _known(name: str, items: tuple[Item, ...]) -> bool:
    return field_named(name) is not None or name in WHOLE or any(name in item["metadata"] for item in items)


def _value(item: Item, name: str, defaults: Mapping[str, Any]) -> Any:
    if name in WHOLE:
        return item
    found = item.get(name)
    return defaults[name] if found is None and name in defaults else found


def _one(fn: Callable[..., Any], parameter: inspect.Parameter, items: tuple[Item, ...]) -> Callable[[Item], Arguments]:
    """A task of one parameter: by what is it named, or typed?"""
    name, kind = parameter.name, _annotation(fn, parameter)
    if kind is Sample or name == "sample":
        value: Callable[[Item], Any] = sample_of_item
    elif field_named(name) is not None:
        value = functools.partial(_value, name=name, defaults={})
    elif name in WHOLE or _is_mapping(kind):
        value = _itself
    elif any(name in item["metadata"] for item in items):
        value = functools.partial(_value, name=name, defaults={})
    else:
        value = functools.partial(_value, name="input", defaults={})
    if parameter.kind is parameter.KEYWORD_ONLY:
        return lambda item: ((), {name: value(item)})
    return lambda item: ((value(item),), {})


def _itself(item: Item) -> Item:
    return item


def _annotation(fn: Callable[..., Any], parameter: inspect.Parameter) -> Any:
    try:
        return get_type_hints(fn).get(parameter.name)
    except Exception:  # noqa: BLE001 - an annotation that names what is not there at run time
        return None


def _is_mapping(kind: Any) -> bool:
    origin = getattr(kind, "__origin__", kind)
    return inspect.isclass(origin) and issubclass(origin, Mapping)


def sample_of_item(item: Item) -> Sample:
    """The item as a `Sample`, with the output that came with it."""
    return Sample(
        input=item["input"],
        output=item["output"],
        expected=item["expected"],
        documents=item["documents"],
        context=item["context"] if isinstance(item["context"], dict) else {},
        metadata=item["metadata"],
        item_id=item["item_id"],
    )
