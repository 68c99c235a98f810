"""Each run of an item as a span tree, as a live call is one, through whatever provider calls are traced through.

The run's own span is kept open until its scores are there, so that they are events on it in whatever way it is exported.
It ends at the time at which the task did. Where nothing is set up a provider of our own, which exports nothing, makes the
spans, so that documents which the task retrieves reach its Sample all the same.

Every span of a run carries the experiment's name, by which no pipeline, here or in an agent, scores it as traffic.
"""

import threading
import time
from collections.abc import Callable, Iterable
from contextlib import contextmanager
from dataclasses import replace
from typing import Any, Final

from opentelemetry import context as otel_context
from opentelemetry import trace as trace_api
from opentelemetry.context import Context
from opentelemetry.sdk.trace import ReadableSpan, SpanLimits, SpanProcessor, TracerProvider, sampling
from opentelemetry.trace import Span, Status, StatusCode

from spangrade import _guard
from spangrade import semconv as s
from spangrade._log import once
from spangrade._switches import disabled, sdk_disabled
from spangrade._values import bounded
from spangrade._version import __version__
from spangrade.delivery.payload import attributes_of
from spangrade.experiments.item import Item
from spangrade.model.outcome import ScoreRecord
from spangrade.model.span import SpanData
from spangrade.otel import sdk_private
from spangrade.otel.adapter import span_data
from spangrade.otel.ids import OwnIdGenerator
from spangrade.samples.extract import extract
from spangrade.samples.family import Family
from spangrade.samples.reading import Call
from spangrade.tracing import call as traced_calls
from spangrade.tracing import capture
from spangrade.tracing.lazy.span import Attributes

KIND: Final = "chain"
MAX_SPANS: Final = 2_000  # of one run, whose content is read
_RUN: Final = otel_context.create_key("spangrade-experiment-run")
_MAX_EVENTS: Final = (
    SpanLimits().max_events or 128
) - 8  # beside the application's own; past it the SDK drops the oldest
_ids: Final = OwnIdGenerator()


class Tracing:
    """Where the runs of one experiment are traced. Use it in a ``with`` block."""

    def __init__(self, name: str, dataset: str) -> None:
        self._marks = {s.EXPERIMENT_NAME: bounded(name, 256), s.EXPERIMENT_DATASET: bounded(dataset, 256)}
        self._place: _Place | None = None

    def __enter__(self) -> "Tracing":
        self._place = None if disabled() or sdk_disabled() else _enter()
        return self

    def __exit__(self, *_: object) -> None:
        if self._place is not None:
            _leave(self._place)

    def start(self, name: str, item: Item, repeat: int) -> "TracedRun":
        """A run of an item begins."""
        marks = {**self._marks, s.EXPERIMENT_ITEM: item["item_id"], s.EXPERIMENT_REPEAT: repeat}
        return TracedRun(name, item, marks, self._place)


class TracedRun:
    """One run: `context` is what its task runs in. Then `ended`, `calls`, and `close` with the scores."""

    def __init__(self, name: str, item: Item, marks: dict[str, Any], place: "_Place | None") -> None:
        self.marks = marks
        self._name = name
        self._spans: list[ReadableSpan] = []
        self._lock = threading.Lock()
        self._place = place
        self._began, self._start_ns, self._end_ns = time.monotonic_ns(), time.time_ns(), 0
        self.context: Context = otel_context.set_value(_RUN, self, Context())
        self.span: Span = trace_api.INVALID_SPAN
        if place is not None:
            with _guard.guard("experiment.start"):
                first = {**capture.first_attributes(KIND, name), **marks}
                self.span = place.tracer.start_span(name, self.context, attributes=first, start_time=self._start_ns)
                self.context = trace_api.set_span_in_context(self.span, self.context)
        self._traced = self.span.is_recording()
        if place is not None and not self._traced:
            once("experiment:unsampled", "a sampler drops the runs of an experiment: what a task retrieves is not seen")
        self._sink: Any = Attributes()
        if place is not None and self._traced:
            self._sink = self.span
            place.add(self)
        with _guard.guard("experiment.input"):
            capture.write_input(self._sink, KIND, item["input"])

    @property
    def ids(self) -> tuple[str | None, str | None]:
        """Trace and span id as hex digits; None where nothing is traced."""
        if not self._traced:
            return None, None
        context = self.span.get_span_context()
        return f"{context.trace_id:032x}", f"{context.span_id:016x}"

    @property
    def trace_id(self) -> int:
        """Of its spans."""
        return self.span.get_span_context().trace_id

    @property
    def duration_s(self) -> float:
        """Of the task."""
        return (self._end_ns - self._start_ns) / 1e9

    def took(self, span: Any) -> None:
        """A span of the run has started: it says so."""
        capture.keep_one(span, s.EXPERIMENT_NAME, self.marks[s.EXPERIMENT_NAME])

    def add(self, span: ReadableSpan) -> None:
        """A span of the run has ended."""
        with self._lock:
            if len(self._spans) < MAX_SPANS and not self._end_ns:
                self._spans.append(span)

    def ended(self) -> None:
        """The task has come to its end, or its time has. What is traced after this belongs to nobody. Only the first word counts."""
        with self._lock:
            self._end_ns = self._end_ns or self._start_ns + time.monotonic_ns() - self._began

    def failed(self, kind: str, message: str) -> None:
        """It came to no output."""
        with _guard.guard("experiment.failed"):
            text = bounded(message, 4_096)
            self.span.add_event("exception", {"exception.type": kind, "exception.message": text})
            self.span.set_status(Status(StatusCode.ERROR, bounded(f"{kind}: {text}", 1_024)))
            self.span.set_attribute(s.ERROR_TYPE, kind)

    def gave(self, output: Any, documents: Iterable[Any] = ()) -> bool:
        """Its output, and documents that came with the item; False when the task had called `set_output`, which counts then."""
        with _guard.guard("experiment.output"):
            kept = s.OI_OUTPUT in (self.span.attributes if self._traced else self._sink)  # type: ignore[attr-defined]
            if not kept:
                capture.write_output(self._sink, KIND, output)
            if documents := list(documents):
                capture.write_documents(self._sink, documents)
            return not kept
        return True

    def calls(self) -> tuple[Call, list[Call]]:
        """The run's own call, and those below it, without evaluators' work."""
        with self._lock:
            spans = list(self._spans)
        span = self._data()
        found = extract(span)
        assert found is not None  # it says that it is a chain
        below = [call for call in (extract(_unmarked(span_data(span))) for span in spans) if call is not None]
        family = Family([found, *below]).without_evaluators()
        return found, [call for call in family.calls if call.span.span_id != span.span_id]

    def _data(self) -> SpanData:
        if self._traced:
            return replace(_unmarked(span_data(self.span)), end_ns=self._end_ns)  # type: ignore[arg-type]
        return SpanData(
            _ids.generate_trace_id(),
            _ids.generate_span_id(),
            None,
            self._name,
            self._start_ns,
            self._end_ns,
            self._sink,
        )

    def close(self, records: Iterable[ScoreRecord] = ()) -> None:
        """The scores, and the end of the run's span."""
        with _guard.guard("experiment.close"):
            if self._place is not None:
                self._place.remove(self)
            if not self._traced:
                return
            given = list(records)
            room = max(0, _MAX_EVENTS - len(getattr(self.span, "events", ())))
            for record in given[:room]:
                self.span.add_event(s.EVALUATION_EVENT, attributes_of(record), record.time_ns)
            if given:
                keys = dict.fromkeys(record.evaluator.key for record in given)
                self.span.set_attribute(s.SCORED_BY, list(keys))
            if len(given) > room:
                once("experiment:events", "a run has more scores than a span takes events; the rest are in the results")
            self.span.end(self._end_ns or None)


def _unmarked(span: SpanData) -> SpanData:
    """The span as what it is, and not as part of an experiment."""
    return replace(span, attributes={key: value for key, value in span.attributes.items() if key != s.EXPERIMENT_NAME})


# --- the provider ------------------------------------------------------------------------------------------------------


class _Place(SpanProcessor):
    """In a provider while experiments run: gives their spans to the runs that they are of."""

    def __init__(self, provider: Any) -> None:
        self.provider = provider
        self.tracer = provider.get_tracer(s.SCOPE, __version__)
        self.users = 0
        self._runs: dict[int, TracedRun] = {}

    def add(self, run: TracedRun) -> None:
        """Its spans are wanted from now on."""
        self._runs[run.trace_id] = run

    def remove(self, run: TracedRun) -> None:
        """No longer."""
        self._runs.pop(run.trace_id, None)

    def on_start(self, span: Any, parent_context: Context | None = None) -> None:
        """See `SpanProcessor`."""
        with _guard.guard("experiment.on_start"):
            run = otel_context.get_value(_RUN, parent_context)
            if isinstance(run, TracedRun):
                run.took(span)

    def on_end(self, span: ReadableSpan) -> None:
        """See `SpanProcessor`."""
        with _guard.guard("experiment.on_end"):
            context = span.get_span_context()
            run = self._runs.get(context.trace_id) if context is not None else None
            if run is not None:
                run.add(span)


_lock = threading.Lock()
_places: dict[int, _Place] = {}  # by the id of the provider, which its place keeps alive
_private: TracerProvider | None = None


def _enter() -> _Place:
    global _private
    with _lock:
        provider: Any = traced_calls.provider_in_use()
        if isinstance(provider, (trace_api.ProxyTracerProvider, trace_api.NoOpTracerProvider)):
            if _private is None:
                _private = TracerProvider(sampler=sampling.ALWAYS_ON, shutdown_on_exit=False, id_generator=_ids)
            provider = _private
            traced_calls.use_provider(provider)
        place = _places.get(id(provider))
        if place is None:
            place = _places[id(provider)] = _Place(provider)
            # Not by `add_span_processor`, where it can be helped: Phoenix's shuts down the exporter that is there.
            if not _change(provider, lambda there: (*there, place)):
                _add(provider, place)
        place.users += 1
        return place


def _leave(place: _Place) -> None:
    with _lock:
        place.users -= 1
        if place.users:
            return
        if _change(place.provider, lambda there: tuple(one for one in there if one is not place)):
            del _places[id(place.provider)]  # else it stays where it is, for the next experiment
        if place.provider is _private and traced_calls.provider_in_use() is _private:
            traced_calls.use_provider(None)


def _change(provider: Any, change: Callable[[tuple[SpanProcessor, ...]], tuple[SpanProcessor, ...]]) -> bool:
    return sdk_private.replace_processors(provider, change)


def _add(provider: Any, place: _Place) -> None:
    if hasattr(provider, "add_span_processor"):
        provider.add_span_processor(place)
    else:
        once("experiment:provider", "this tracer provider takes no processor: what a task retrieves is not seen")


@contextmanager
def attached(context: Context) -> Any:
    """What runs inside runs in ``context``."""
    token = otel_context.attach(context)
    try:
        yield
    finally:
        otel_context.detach(token)
