"""Late scores where only traces go: a span of no length, child of the scored one, at its end.

Start = end = the scored span's end, so that no store thinks the trace took longer; no link to its own parent (one store
then loses the parent; measured in facts/backends.md). The score is in its attributes, which every store can search, and
as the usual event.
"""

from typing import Final

from opentelemetry import context as otel_context
from opentelemetry.context import Context
from opentelemetry.sdk.trace import ReadableSpan
from opentelemetry.trace import Tracer

from spangrade import _suppress
from spangrade import semconv as s
from spangrade._values import bounded
from spangrade.delivery.content import ContentPolicy
from spangrade.delivery.log_events import context_of
from spangrade.delivery.payload import attributes_of
from spangrade.delivery.sink import Settled
from spangrade.model.outcome import ScoreRecord

_MAX_WAITING: Final = 16_384  # more than queues hold: somebody keeps such spans from an exporter of ours

#: Who wants to know how the export of an evaluation span went, by its ids. Of this process: the exporter that answers may
#: have been replaced since by a later `configure`.
_waiting: Final[dict[tuple[int, int], Settled]] = {}


def emit(tracer: Tracer, record: ScoreRecord, policy: ContentPolicy, settled: Settled | None = None) -> bool:
    """Send one score as an evaluation span through ``tracer``; False when that records nothing, or what is not sampled.

    ``settled``: hears once how its export went (see `exported`), where an exporter of ours is behind that tracer. In late
    mode it is not ours, so the content policy is applied here, and nowhere else.
    """
    attributes = policy.attributes(attributes_of(record))
    on_span = {
        key: value for key, value in attributes.items() if key != s.RESPONSE_ID
    }  # Phoenix: else a made-up output
    on_span[s.OI_KIND] = "EVALUATOR"
    on_span[s.OPERATION_NAME] = "evaluation"
    name = policy.text(bounded(f"evaluation {record.graded.name}", 256))
    end = record.span.end_ns or record.time_ns
    # Our threads are where instrumentation is suppressed, and some providers (Logfire's) drop what starts or ends there.
    # That this is no call of the application's its kind says.
    token = otel_context.attach(Context())
    try:
        span = tracer.start_span(name, context=context_of(record.span), attributes=on_span, start_time=end)
        context = span.get_span_context()
        if not (span.is_recording() and context.trace_flags.sampled):
            return False
        span.add_event(s.EVALUATION_EVENT, attributes, record.time_ns)
        ids = (context.trace_id, context.span_id)
        awaited = settled is not None and len(_waiting) < _MAX_WAITING
        if settled is not None and awaited:
            _waiting[ids] = settled
        try:
            span.end(end_time=end)
        except BaseException:  # another's processor raised: whoever is told so hears of it once
            _waiting.pop(ids, None)
            raise
        if settled is not None and not awaited:
            settled(None)
        return True
    finally:
        _suppress.detach(token)


def exported(span: ReadableSpan, failure: str | None) -> None:
    """How it went for one exported span, if it is an evaluation span of ours."""
    context = span.get_span_context() if _waiting else None
    settled = None if context is None else _waiting.pop((context.trace_id, context.span_id), None)
    if settled is not None:
        settled(failure)
