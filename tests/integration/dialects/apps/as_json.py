"""What Spangrade makes of spans, as plain JSON: the same function on both sides, in the application and in the test."""

import json
from collections.abc import Iterable, Sequence
from dataclasses import fields
from typing import Any

from spangrade.model.sample import Sample
from spangrade.model.span import SpanData
from spangrade.samples.assemble import root_sample, sample_of
from spangrade.samples.extract import extract
from spangrade.samples.reading import ROOT_KINDS, Call

# They differ from run to run.
_TIMES = ("duration_s", "time_to_first_chunk_s")


def calls_of(spans: Iterable[SpanData]) -> list[Call]:
    """The calls among the spans, in order of start."""
    found = [call for call in map(extract, spans) if call is not None]
    return sorted(found, key=lambda call: (call.span.start_ns, call.span.end_ns))


def root_of(spans: Sequence[SpanData]) -> Sample | None:
    """The end-to-end sample of one trace, all of whose spans are there."""
    calls = calls_of(spans)
    parents = {span.span_id: span.parent_span_id for span in spans}
    ids = {call.span.span_id for call in calls}

    def is_top(call: Call) -> bool:
        above = call.span.parent_span_id
        while above is not None and above not in ids:
            above = parents.get(above)
        return above is None and call.kind in ROOT_KINDS and not call.evaluator

    tops = [call for call in calls if is_top(call)]
    found = root_sample(tops, [call for call in calls if call not in tops])
    return None if found is None else found[1]


def plain(sample: Sample) -> dict[str, Any]:
    """A sample without what differs from run to run; empty containers and what is None are left out, but for input and output."""
    said = {one.name: getattr(sample, one.name) for one in fields(sample)}
    del said["trace_id"]
    said["context"] = {key: value for key, value in sample.context.items() if key not in _TIMES}
    kept = {key: value for key, value in said.items() if key in ("input", "output") or value not in (None, [], {})}
    found: dict[str, Any] = json.loads(json.dumps(kept, default=repr))
    return found


def described(spans: Sequence[SpanData]) -> dict[str, Any]:
    """Of each call by its span id: name, kind, dialect, whether it is a judge's, sample; and of each trace the root sample."""
    traces: dict[str, list[SpanData]] = {}
    for span in spans:
        traces.setdefault(span.trace_hex, []).append(span)
    calls = {
        call.span.span_hex: {
            "name": call.span.name,
            "kind": call.kind,
            "dialect": call.reading.dialect,
            "evaluator": call.evaluator,
            "sample": plain(sample_of(call)),
        }
        for call in calls_of(spans)
    }
    roots = {trace: root_of(held) for trace, held in traces.items()}
    return {"calls": calls, "roots": {trace: None if root is None else plain(root) for trace, root in roots.items()}}
