"""A small question-answering service, traced by plain OpenTelemetry. It knows nothing of Spangrade.

    python python_app.py http|grpc ENDPOINT       # prints {"trace_id": "..."} once everything has been exported

The same trace as in js/app.js: the tests hold the two to the same claims.
"""

import json
import sys

from opentelemetry.exporter.otlp.proto.grpc.trace_exporter import OTLPSpanExporter as GrpcExporter
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter as ProtobufExporter
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor, SpanExporter
from opentelemetry.trace import SpanKind, StatusCode, Tracer

QUESTION = "When does my parcel come?"
DOCUMENT = "Parcels arrive within three working days."
ANSWER = "Parcels arrive within three working days. Drones bring them."


def make_exporter(protocol: str, endpoint: str) -> SpanExporter:
    if protocol == "http":
        return ProtobufExporter(endpoint=f"{endpoint}/v1/traces")
    return GrpcExporter(endpoint=endpoint, insecure=True)


def message(role: str, content: str) -> str:
    return json.dumps([{"role": role, "parts": [{"type": "text", "content": content}]}])


def retrieve(tracer: Tracer) -> None:
    with tracer.start_as_current_span("find") as span:
        span.set_attributes(
            {
                "openinference.span.kind": "RETRIEVER",
                "input.value": QUESTION,
                "retrieval.documents.0.document.id": "d1",
                "retrieval.documents.0.document.content": DOCUMENT,
                "retrieval.documents.0.document.score": 0.875,
            }
        )
        with tracer.start_as_current_span("SELECT docs", kind=SpanKind.CLIENT) as query:
            query.set_attributes({"db.system.name": "sqlite", "db.response.returned_rows": 1})
            query.add_event("rows read", {"count": 1, "cached": False})


def generate(tracer: Tracer) -> None:
    attributes = {
        "gen_ai.operation.name": "chat",
        "gen_ai.request.model": "small-1",
        "gen_ai.input.messages": message("user", QUESTION),
    }
    with tracer.start_as_current_span("chat small-1", kind=SpanKind.CLIENT, attributes=attributes) as span:
        span.add_event("first token", {"after_ms": 1.5})
        span.set_attributes(
            {
                "gen_ai.output.messages": message("assistant", ANSWER),
                "gen_ai.response.finish_reasons": ["stop"],
                "gen_ai.usage.input_tokens": 7,
                "gen_ai.usage.output_tokens": 9,
            }
        )


def main(protocol: str, endpoint: str) -> None:
    provider = TracerProvider(resource=Resource.create({"service.name": "shop"}))
    provider.add_span_processor(BatchSpanProcessor(make_exporter(protocol, endpoint)))
    tracer = provider.get_tracer("shop-tracer", "1.0")
    attributes = {"http.request.method": "POST", "http.route": "/chat"}
    with tracer.start_as_current_span("POST /chat", kind=SpanKind.SERVER, attributes=attributes) as span:
        retrieve(tracer)
        generate(tracer)
        span.set_attribute("http.response.status_code", 200)
        span.set_status(StatusCode.OK)
    provider.shutdown()
    assert "spangrade" not in sys.modules
    print(json.dumps({"trace_id": f"{span.get_span_context().trace_id:032x}"}))


if __name__ == "__main__":
    main(*sys.argv[1:])
