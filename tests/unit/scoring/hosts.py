"""Both hosts, as far as the pipeline sees them: a trace offered as the SDK's processor does, and as the agent does."""

import random
from collections.abc import Sequence
from typing import Any

from spangrade.metrics.local import LocalMetric
from spangrade.model.sample import Sample
from spangrade.model.span import SpanData
from spangrade.otel.lineage import OpenSpans
from spangrade.samples.extract import quick_kind
from spangrade.scoring.seam import Offer, Ticket


class Seen:
    """A metric that keeps the spans of its samples."""

    def __init__(self, target: Any) -> None:
        self.samples: list[Sample] = []
        self.metric = LocalMetric(self._take, name="seen", target=target)

    def _take(self, sample: Sample) -> float:
        self.samples.append(sample)
        return 1.0

    @property
    def names(self) -> list[str]:
        return sorted(sample.context["span_name"] for sample in self.samples)


def in_process(h: Any, trace: Sequence[SpanData]) -> None:
    """As the SDK's processor does: starts and ends in order of time, what is above a span known when it ends."""
    opened = OpenSpans()
    kinds = {one.span_id: quick_kind(one.attributes) for one in trace}
    ticks = [(one.start_ns, 0, one) for one in trace] + [(one.end_ns, 1, one) for one in trace]
    depth = {one.span_id: _depth(one, trace) for one in trace}
    for _, ends, one in sorted(
        ticks, key=lambda t: (t[0], t[1], depth[t[2].span_id] * (-1 if t[1] else 1), t[2].span_id)
    ):
        key = (one.trace_id, one.span_id)
        if not ends:
            under = None if one.parent_span_id is None else (one.trace_id, one.parent_span_id)
            opened.opened(key, under, kinds[one.span_id], lambda: None)
            continue
        kind = kinds[one.span_id]
        is_call = kind is not None and kind != "evaluator"
        lineage, rooted = opened.ended(key, is_call=is_call)
        if not is_call:
            if rooted:
                h.pipeline.root_ended(*key)
        elif not lineage.under_evaluator:
            h.pipeline.offer(Offer(one, Ticket(), lineage, h.clock.monotonic()))
    assert h.pipeline.drain(5, judges=True)


def _depth(one: SpanData, trace: Sequence[SpanData]) -> int:
    by_id, found = {other.span_id: other for other in trace}, 0
    while one.parent_span_id in by_id:
        one, found = by_id[one.parent_span_id], found + 1
    return found


def in_agent(h: Any, trace: Sequence[SpanData], seed: int = 0) -> None:
    """As the agent does: ended spans in any order."""
    shuffled = list(trace)
    random.Random(seed).shuffle(shuffled)
    for one in shuffled:
        kind = quick_kind(one.attributes)
        ticket = None if kind in (None, "evaluator") else Ticket()
        h.pipeline.offer(Offer(one, ticket, None, h.clock.monotonic()))
    assert h.pipeline.drain(
        5, judges=True
    )  # in the order of the queue: all of it has arrived before anything is decided


#: Both hosts, the second in several orders.
HOSTS = (in_process, *(lambda h, trace, seed=seed: in_agent(h, trace, seed) for seed in range(4)))
