"""Log records that came before their span: kept by its ids until it comes, bounded in count, bytes and age."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final

from spangrade._sizes import text_size
from spangrade.model.span import EventData
from spangrade.samples.bounds import AssemblyBounds
from spangrade.samples.tally import Tally

MAX_OF_A_SPAN: Final = 512
MAX_SPANS: Final = 16_384

Ids = tuple[int, int]  # of trace and span


@dataclass(slots=True)
class _OfSpan:
    born: float
    events: list[EventData] = field(default_factory=list)
    bytes: int = 0


class PendingLogs:
    """Owned by one thread; no lock. Records that met no span are counted by the bound at which they went."""

    def __init__(self, bounds: AssemblyBounds, tally: Tally | None = None) -> None:
        self._bounds = bounds
        self._spans: dict[Ids, _OfSpan] = {}  # the oldest first
        self._bytes = 0
        self.tally = tally or Tally()

    def __len__(self) -> int:
        return len(self._spans)

    @property
    def bytes(self) -> int:
        """Of all that wait, about."""
        return self._bytes

    def put(self, ids: Ids, event: EventData, now: float) -> None:
        """Keep one for a span that has not come. What is there already (a request that was sent again) is not kept twice."""
        held = self._spans.get(ids)
        if held is None:
            held = self._spans[ids] = _OfSpan(now)
        if any(event == other for other in held.events):
            return
        if len(held.events) >= MAX_OF_A_SPAN:
            self.tally.logs["max_of_a_span"] += 1
            return
        size = _size(event)
        held.events.append(event)
        held.bytes += size
        self._bytes += size
        while len(self._spans) > 1 and (self._bytes > self._bounds.max_bytes or len(self._spans) > MAX_SPANS):
            self._forget(next(iter(self._spans)), "max_bytes" if self._bytes > self._bounds.max_bytes else "max_spans")

    def take(self, ids: Ids) -> Sequence[EventData]:
        """Those of a span, in the order in which they came; they are the caller's now."""
        held = self._spans.pop(ids, None)
        if held is None:
            return ()
        self._bytes -= held.bytes
        return held.events

    def expire(self, now: float) -> float | None:
        """Forget what has waited for too long; returns when to call again."""
        while self._spans:
            ids, held = next(iter(self._spans.items()))
            if held.born + self._bounds.max_age > now:
                return held.born + self._bounds.max_age
            self._forget(ids, "max_age")
        return None

    def _forget(self, ids: Ids, reason: str) -> None:
        self.tally.logs[reason] += len(self.take(ids))


def _size(event: EventData) -> int:
    return 256 + text_size(event.attributes)
