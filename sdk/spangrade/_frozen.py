"""A value as it is now, kept to be read later: what a traced call costs its caller is this copy, and no JSON.

Text, numbers and the like cannot change and are kept as they are. Containers of exact builtin types are copied in C: by
pickle, which stops at the first object that is anything else (so that no code of an application runs), at a ring, and
at `MAX_PACKED` bytes (so that the work is bounded before it is done). What it stops at is the caller's to copy at once.
Measured for a dict of 500 bytes: a quarter of what its bounded JSON takes.
"""

import itertools
import pickle
from typing import Any, Final

MAX_PACKED: Final = 1_048_576
MAX_TEXT: Final = 65_536  # a longer text is looked at at once: it may have to be cut, and nobody should hold all of it
_SCALARS: Final = frozenset((bool, int, float))
_CONTAINERS: Final = frozenset((dict, list, tuple, set, frozenset))


class NotPlain(Exception):
    """The value is no text, number or container of these within the bounds."""


class _Packer(pickle.Pickler):
    def __init__(self) -> None:
        self.data = b""
        self.size = 0
        super().__init__(self, 5)
        self.fast = True  # no memo: a ring is refused, and what is held twice counts twice, as it will in JSON

    def write(self, data: bytes) -> None:
        """Called once for up to 64 kB, then for every 64 kB and for every text larger than that."""
        self.size += len(data)
        if self.size > MAX_PACKED:
            raise NotPlain
        self.data = self.data + data if self.data else data

    def reducer_override(self, _obj: Any) -> Any:
        raise NotPlain  # asked for whatever is no exact builtin


# Pickle encodes a text whole before it can refuse it: 60 ms for one of 100 MB. To look for such texts first takes as long as
# half of all the rest, so that is done only for some values after one that was too large: where there was one, more come.
_WARY_FOR: Final = 1_000  # values
_LOOKED_AT: Final = 256  # items of one value

_wary = 0  # how many more values are looked at first; threads may miscount it

# Not one for each call: making it takes longer than its work. Taking one off a list is one step for other threads, and for
# a finalizer in between.
_idle: Final[list[_Packer]] = []


def freeze(value: Any) -> tuple[Any, int]:
    """``value`` as it is now, for `thaw`, and about how many bytes that takes.

    Raises:
        NotPlain: it is, or holds, something else than text, numbers, None, bytes, dicts, lists, tuples and sets of these;
            it is a ring; or it is too large to be copied before it is cut.
    """
    global _wary
    kind = type(value)
    if kind is str:
        size = len(value)
        if size > MAX_TEXT:
            raise NotPlain
        return value, size
    if kind in _SCALARS or value is None:
        return value, 8
    if kind not in _CONTAINERS:
        raise NotPlain
    if _wary > 0:
        _wary -= 1
        if _holds_long_text(value):
            _wary = _WARY_FOR
            raise NotPlain
    packer = _idle.pop() if _idle else _Packer()
    packer.data, packer.size = b"", 0
    try:
        packer.dump(value)
    except Exception:  # noqa: BLE001 - or another thread changed it while it was copied; this packer is not used again
        if packer.size > MAX_PACKED:
            _wary = _WARY_FOR
        raise NotPlain from None
    data, size = packer.data, packer.size
    _idle.append(packer)
    return data, size


def _holds_long_text(value: Any) -> bool:
    """Whether one of the first items, level by level, is a text of more than `MAX_PACKED` characters."""
    left, todo = _LOOKED_AT, [value]
    try:
        for item in todo:
            kind = type(item)
            if kind is str:
                if len(item) > MAX_PACKED:
                    return True
            elif kind is dict:
                todo += itertools.islice(item.values(), left)
            elif kind in _CONTAINERS:
                todo += itertools.islice(item, left)
            left -= 1
            if left <= 0:
                break
    except RuntimeError:  # another thread changed it meanwhile
        pass
    return False


def thaw(frozen: Any) -> Any:
    """What `freeze` was given: the same immutable value, or an equal copy."""
    # Bytes are only what `freeze` wrote in this process, and hold builtin types alone.
    return pickle.loads(frozen) if type(frozen) is bytes else frozen  # noqa: S301
