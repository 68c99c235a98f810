"""What a metric or judge sees of one call."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, fields
from typing import Any, Final, NoReturn


def _refuse(self: Any, *_args: Any, **_kwargs: Any) -> NoReturn:
    raise TypeError(
        "a Sample is a snapshot that other evaluators see too, so it cannot be changed; "
        f"work on a copy: {'dict' if isinstance(self, dict) else 'list'}(...)"
    )


class FrozenDict(dict[str, Any]):
    """A dict that cannot be changed. ``dict(d)`` and ``copy.deepcopy(d)`` give one that can (its children stay frozen
    in the first and thaw in the second)."""

    __slots__ = ()
    __setitem__ = __delitem__ = _refuse
    clear = pop = popitem = setdefault = update = __ior__ = _refuse

    def __copy__(self) -> dict[str, Any]:
        return dict(self)

    def __deepcopy__(self, memo: dict[int, Any]) -> dict[str, Any]:
        return {key: thaw(value) for key, value in self.items()}

    def __reduce__(self) -> tuple[Any, ...]:
        return (FrozenDict, (dict(self),))


class FrozenList(list[Any]):
    """A list that cannot be changed."""

    __slots__ = ()
    __setitem__ = __delitem__ = __iadd__ = __imul__ = _refuse
    append = clear = extend = insert = pop = remove = reverse = sort = _refuse

    def __copy__(self) -> list[Any]:
        return list(self)

    def __deepcopy__(self, memo: dict[int, Any]) -> list[Any]:
        return [thaw(value) for value in self]

    def __reduce__(self) -> tuple[Any, ...]:
        return (FrozenList, (list(self),))


_FIXED: Final = frozenset((FrozenDict, FrozenList, str, int, float, bool, type(None)))


def freeze(value: Any) -> Any:
    """Dicts, lists and tuples become frozen copies, all the way down; everything else stays as it is."""
    kind = type(value)
    if kind in _FIXED:
        return value
    # The exact types first: this runs for every container of every sample, and to ask an ABC costs as much as the rest.
    if kind is dict or isinstance(value, Mapping):
        return FrozenDict(
            {(k if type(k) is str else str(k)): (v if type(v) in _FIXED else freeze(v)) for k, v in value.items()}
        )
    if kind is list or isinstance(value, (list, tuple)):
        return FrozenList([v if type(v) in _FIXED else freeze(v) for v in value])
    return value


def thaw(value: Any) -> Any:
    """The changeable copy of a frozen value."""
    if isinstance(value, dict):
        return {k: thaw(v) for k, v in value.items()}
    if isinstance(value, list):
        return [thaw(v) for v in value]
    return value


@dataclass(frozen=True)
class Sample:
    """One production call, or one experiment item. Read-only, containers included.

    Attributes:
        input: what was asked: text, or a parsed JSON value.
        output: what was answered, in the same forms.
        expected: the reference answer, from a dataset; None in production.
        documents: the retrieved documents, each a dict with ``content`` and where known ``id``, ``score``, ``metadata``.
        context: what else belongs to the call: ``messages``, ``system``, ``model``, ``provider``,
            ``usage`` (``input_tokens``, ``output_tokens``, ``cache_read_tokens``, ...), ``duration_s``,
            ``time_to_first_chunk_s``, ``session_id``, ``user_id``, ``finish_reasons``, ``tools``, ``tool_calls``,
            ``retrievals``, ``status``, and what `set_context` gave.
            ``searched`` is True when a retrieval took place, so that "searched and found nothing" (``documents == []``)
            differs from "never searched".
        metadata: the application's own labels (`set_metadata`), and ``service.name``.
        trace_id: 32 hex digits, in production.
        item_id: the dataset item, in an experiment.
    """

    input: Any = None
    output: Any = None
    expected: Any = None
    documents: list[dict[str, Any]] = field(default_factory=list)
    context: dict[str, Any] = field(default_factory=dict)
    metadata: dict[str, Any] = field(default_factory=dict)
    trace_id: str | None = None
    item_id: str | None = None

    def __post_init__(self) -> None:
        held = self.__dict__  # its own fields, past the refusal of `frozen`
        for name in ("input", "output", "expected", "documents", "context", "metadata"):
            if type(held[name]) not in _FIXED:
                held[name] = freeze(held[name])

    def missing(self, names: Iterable[str]) -> list[str]:
        """Those of ``names`` that are empty here (None, blank text, or an empty container); 0 and False are not empty."""
        return [name for name in names if is_empty(getattr(self, name, None))]


def is_empty(value: Any) -> bool:
    """None, blank text or an empty container."""
    if value is None:
        return True
    if isinstance(value, str):
        return not value.strip()
    return isinstance(value, (list, dict, tuple)) and not value


SAMPLE_FIELDS = tuple(f.name for f in fields(Sample))
