"""Late scores where only traces go: a span of no length, child of the scored one, at its end.

Start = end = the scored span's end, so that no store thinks the trace took longer; no link to its own parent (one store
then loses the parent; measured in facts/backends.md). The score is in its attributes, which every store can search, and
as the usual event.
"""

from opentelemetry import context as otel_context
from opentelemetry.context import Context
from opentelemetry.trace import Tracer

from spangrade import _suppress
from spangrade import semconv as s
from spangrade._values import bounded
from spangrade.delivery.content import ContentPolicy
from spangrade.delivery.log_events import context_of
from spangrade.delivery.payload import attributes_of
from spangrade.model.outcome import ScoreRecord


def emit(tracer: Tracer, record: ScoreRecord, policy: ContentPolicy) -> bool:
    """Send one score as an evaluation span through ``tracer``; False when that records nothing.

    In late mode its exporter is not ours, so the content policy is applied here, and nowhere else.
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
        if not span.is_recording():
            return False
        span.add_event(s.EVALUATION_EVENT, attributes, record.time_ns)
        span.end(end_time=end)
        return True
    finally:
        _suppress.detach(token)
