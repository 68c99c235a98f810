"""What waits in a queue to the destination, how it ends, and the counts of both."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, Protocol

SPOOLED: Final = "spooled"  # the reason at `close` of what is durable: the next start sends it
SHUTDOWN: Final = "shutdown"  # the reason of a drop at `close`; the other reasons are the values of `Kind`
UNREADABLE: Final = "unreadable"  # the reason of a drop where what was kept cannot be read again
PARTIAL: Final = "partial"  # the reason of a success in which the upstream refused some items, without saying which

OnResult = Callable[[Sequence[Any], bool, str], None]


@dataclass(slots=True)
class Counts:
    """In items. ``queued`` = pending + sent + rejected + all of ``dropped``; ``refused`` was never queued."""

    queued: int = 0
    refused: int = 0
    sent: int = 0
    rejected: int = 0  # by the upstream, in a request that it took (partial success)
    retried: int = 0  # once for each further try
    dropped: dict[str, int] = field(default_factory=dict)


class Keep(Protocol):
    """Where bodies are durable until they have been taken."""

    def load(self, key: int) -> bytes | None: ...

    def release(self, keys: Sequence[tuple[int, int]]) -> None:
        """Forget them: each with its size."""


@dataclass(frozen=True, slots=True, eq=False)
class Body:
    """An encoded request that waits, or is on its way. ``key``: under which it is kept."""

    data: bytes | None  # None: only where it is kept
    size: int
    items: int
    token: Any
    key: int | None = None
