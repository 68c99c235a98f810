"""What stands in the spool, and what its users say to it."""

from dataclasses import dataclass
from typing import Final, Literal

#: ``out``: encoded requests on their way to the destination. ``held``: calls that wait for their scores, each as a request of
#: its own with what is finished of its scores on it.
Table = Literal["out", "held"]
TABLES: Final[tuple[Table, ...]] = ("out", "held")


@dataclass(frozen=True, slots=True)
class Put:
    """Store ``data`` under ``key``, in place of what is there. ``was``: the size of what is there, 0 for nothing."""

    table: Table
    key: int
    data: bytes
    was: int = 0


@dataclass(frozen=True, slots=True)
class Drop:
    """Forget a key. ``was``: the size of what is there."""

    table: Table
    key: int
    was: int


Step = Put | Drop


class SpoolFault(Exception):
    """The disk, or the file, does not do what it should: full, read-only, corrupt. What was to be written is not there."""


class SpoolFull(SpoolFault):
    """The spool's own bound is reached."""
