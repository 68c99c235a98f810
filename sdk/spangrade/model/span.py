"""A span as the pipeline sees it, whichever host it came from."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from spangrade.semconv import COMPLETE


@dataclass(frozen=True, slots=True)
class EventData:
    """One span event: name, attributes, time in nanoseconds since the epoch."""

    name: str
    attributes: Mapping[str, Any]
    time_ns: int = 0


@dataclass(frozen=True, slots=True)
class SpanData:
    """Neutral and read-only. Attributes are shared with the span, not copied: nobody may change them.

    Ids are integers as in OpenTelemetry's API (128 and 64 bit); `trace_hex` and `span_hex` are the usual text forms.
    Times are nanoseconds since the epoch. ``parent_is_remote`` is None where the source did not say.
    """

    trace_id: int
    span_id: int
    parent_span_id: int | None
    name: str
    start_ns: int
    end_ns: int
    attributes: Mapping[str, Any]
    events: Sequence[EventData] = ()
    resource: Mapping[str, Any] = field(default_factory=dict)
    scope_name: str = ""
    status: str = "unset"  # unset, ok, error
    status_message: str = ""
    parent_is_remote: bool | None = None
    trace_flags: int = 1
    trace_state: str = ""
    dropped_attributes: int = 0

    @property
    def trace_hex(self) -> str:
        """32 lower-case hex digits."""
        return f"{self.trace_id:032x}"

    @property
    def span_hex(self) -> str:
        """16 lower-case hex digits."""
        return f"{self.span_id:016x}"

    @property
    def is_local_root(self) -> bool:
        """No parent in this process: no parent at all, one that the source says is remote, or the span says itself that with
        it all has been told (``spangrade.complete`` = true)."""
        return self.parent_span_id is None or self.parent_is_remote is True or self.attributes.get(COMPLETE) is True
