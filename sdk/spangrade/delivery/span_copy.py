"""The held copy: an ended span takes no more events, so a copy with the scores is exported in its place.

Facts (SDK 1.45): processors share an ended span's containers, so the original is never touched. The exporter reads the
dropped counts from the containers' types, hence the overrides.
"""

from collections.abc import Sequence
from typing import Any

from opentelemetry.sdk.trace import Event, ReadableSpan
from opentelemetry.trace import Link, Status
from opentelemetry.util.types import Attributes

from spangrade.delivery.payload import attributes_of
from spangrade.model.outcome import ScoreRecord
from spangrade.semconv import EVALUATION_EVENT, SCORED_BY


class SpanCopy(ReadableSpan):
    """A span as it ended, but for what is given by the names of the SDK's constructor."""

    def __init__(self, original: ReadableSpan, **changed: Any) -> None:
        same = {
            "name": original.name,
            "context": original.context,
            "parent": original.parent,
            "resource": original.resource,
            "attributes": original.attributes,
            "events": original.events,
            "links": original.links,
            "kind": original.kind,
            "status": original.status,
            "start_time": original.start_time,
            "end_time": original.end_time,
            "instrumentation_scope": original.instrumentation_scope,
        }
        super().__init__(**(same | changed))
        self._dropped = (original.dropped_attributes, original.dropped_events, original.dropped_links)

    @property
    def dropped_attributes(self) -> int:
        """As the original says."""
        return self._dropped[0]

    @property
    def dropped_events(self) -> int:
        """As the original says."""
        return self._dropped[1]

    @property
    def dropped_links(self) -> int:
        """As the original says."""
        return self._dropped[2]


class ScoredSpan(SpanCopy):
    """A span plus score events and the mark of who has scored it. ``pairs``: what rides on it, for the exporter's answer
    to be counted."""

    def __init__(
        self,
        original: ReadableSpan,
        attributes: Attributes,
        events: Sequence[Event],
        pairs: Sequence[tuple[ScoreRecord, ...]] = (),
    ) -> None:
        super().__init__(original, attributes=attributes, events=events)
        self.pairs = pairs

    def rename(self, name: str, links: Sequence[Link]) -> None:
        """Replace name and links (redacted ones)."""
        self._name = name
        self._links = links

    def redescribe(self, description: str | None) -> None:
        """Replace the status text (a redacted one, or none)."""
        self._status = Status(self._status.status_code, description)


def score_event(record: ScoreRecord) -> Event:
    """One ``gen_ai.evaluation.result`` span event."""
    return Event(EVALUATION_EVENT, attributes=attributes_of(record), timestamp=record.time_ns)


def scored_copy(
    span: ReadableSpan,
    pairs: Sequence[tuple[ScoreRecord, ...]],
    taken: Sequence[str],
    max_events: int,
) -> tuple[ReadableSpan, list[tuple[ScoreRecord, ...]]]:
    """``span`` with the scores of ``pairs``; also the pairs for which the event limit left no room.

    The limit is never passed: a store that enforces it drops the oldest events, which would be the application's own.
    Without scores and marks the span itself is returned.
    """
    room = max(0, max_events - len(span.events))
    riding: list[tuple[ScoreRecord, ...]] = []
    left: list[tuple[ScoreRecord, ...]] = []
    for records in pairs:
        if len(records) <= room:
            room -= len(records)
            riding.append(records)
        else:
            left.append(records)
    if not riding and not taken:
        return span, left
    attributes: dict[str, Any] = dict(span.attributes or {})
    before = attributes.get(SCORED_BY) or ()
    if taken:
        attributes[SCORED_BY] = tuple(dict.fromkeys((*before, *taken)))
    events = (*span.events, *(score_event(record) for records in riding for record in records))
    return ScoredSpan(span, attributes, events, riding), left
