"""The hooks that the case scripts ask for (../shared/cases/inputs/_adapter.py), on the public API alone.

A script that is run with ``CASE_HOOKS=hooks`` and this folder on its path tries Spangrade in place of the naive
decorator that it brings along. Spans end in a `CollectingExporter`, or leave by OTLP where the environment says an
endpoint. What a sample was, and what became of it, is read where anybody could read it: a metric keeps the `Sample`
that it is given and returns its number, which comes out again in that metric's evaluation event, beside the others'.
"""

import os
import threading
from collections.abc import Callable
from typing import Any, Final

from opentelemetry.sdk.trace import ReadableSpan

import spangrade as sg
from spangrade import semconv as s
from spangrade.testing import CollectingExporter

RECORDER: Final = "case_recorder"

_exporter = CollectingExporter()
_metrics: dict[str, Any] = {}
_kept: list[sg.Sample] = []
_keeping = threading.Lock()


@sg.metric(name=RECORDER, verdict=False)
def _recorder(sample: sg.Sample) -> int:
    with _keeping:
        _kept.append(sample)
        return len(_kept) - 1


class CaseSample:
    """One sample with what its metrics said, by metric name.

    ``scores``: value, else label, else the structured value as JSON. ``errors``: the error's type.
    ``retrieval_documents``: None where nothing was searched. It prints as the `Sample` itself: a word such as "error" in
    it is the sample's and not a field's name.
    """

    def __init__(self, sample: sg.Sample, events: list[dict[str, Any]]) -> None:
        self.sample = sample
        self.input, self.output, self.documents = sample.input, sample.output, sample.documents
        self.retrieval_documents = sample.documents if sample.context.get("searched") else None
        self.scores: dict[str, Any] = {}
        self.errors: dict[str, str] = {}
        for event in events:
            name = str(event[s.EVALUATION_NAME])
            if name == RECORDER:
                continue
            if s.ERROR_TYPE in event:
                self.errors[name] = str(event[s.ERROR_TYPE])
            else:
                self.scores[name] = next(
                    event[key] for key in (s.SCORE_VALUE, s.SCORE_LABEL, s.VALUE_JSON) if key in event
                )

    def __repr__(self) -> str:
        return repr(self.sample)


def setup() -> None:
    """Set the product up without metrics, as a notebook's cell or an application's start does."""
    _metrics.clear()
    _configure()


def _configure() -> None:
    away = os.environ.get("OTEL_EXPORTER_OTLP_ENDPOINT")
    sg.configure(metrics=[_recorder, *_metrics.values()], exporter=None if away else _exporter)


def observe(fn: Callable[..., Any]) -> Any:
    """Trace a function."""
    return sg.trace(fn)


def set_retrieval_documents(docs: Any) -> None:
    """What was retrieved for the call that runs."""
    sg.set_retrieval_documents(docs)


def add_metric(fn: Callable[..., Any]) -> bool:
    """One more metric; of the same name, in place of the one before."""
    _metrics[fn.__name__] = fn
    _configure()
    return True


def flush(timeout: float = 5.0) -> bool:
    """Wait for metrics and export."""
    return sg.flush(timeout)


def spans() -> list[ReadableSpan]:
    """What was exported: what still waits for its metrics is given its time first."""
    sg.flush(5.0)
    return _exporter.spans


def samples() -> list[CaseSample]:
    """A sample for each that a metric was given, in the order in which their calls started."""
    found: dict[int, list[dict[str, Any]]] = {}
    starts: dict[int, int] = {}
    for span in spans():
        assert span.context is not None
        events = [dict(event.attributes or {}) for event in span.events if event.name == s.EVALUATION_EVENT]
        # A late score comes on a span of its own, the scored span's child.
        late = bool(events) and span.name.startswith("evaluation ")
        scored = span.parent.span_id if late and span.parent is not None else span.context.span_id
        found.setdefault(scored, []).extend(events)
        starts[scored] = min(starts.get(scored, span.start_time or 0), span.start_time or 0)
    numbered = {
        int(event[s.SCORE_VALUE]): span_id
        for span_id, events in found.items()
        for event in events
        if event[s.EVALUATION_NAME] == RECORDER
    }
    with _keeping:
        kept = dict(enumerate(_kept))
    order = sorted(kept, key=lambda n: (starts[numbered[n]] if n in numbered else float("inf"), n))
    return [CaseSample(kept[n], found[numbered[n]] if n in numbered else []) for n in order]
