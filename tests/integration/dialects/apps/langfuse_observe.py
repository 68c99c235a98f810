"""Langfuse 5: ``@observe``, and its wrapper of OpenAI's client. Its own span processor exports, to our receiver instead of its
server."""

import langfuse.openai  # noqa: F401 - wraps OpenAI's client
import openai_calls
import rag
import traced
from langfuse import Langfuse, get_client, observe, propagate_attributes
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import TracerProvider

find = observe(as_type="retriever")(rag.find)
look = observe(as_type="tool")(rag.look)


@observe
def answer(question: str, style: str = "short") -> str:
    find(question)
    look(city="Lisbon")
    get_client().update_current_span(metadata={"tier": "gold", "number": 5})
    return rag.ask(question)


@observe(capture_input=False, capture_output=False)
def hidden(question: str) -> str:
    return question


def observed() -> None:
    with propagate_attributes(user_id="u1", session_id="s1", tags=["a", "b"]):
        answer("Which plug?")


def nothing_captured() -> None:
    hidden("Which plug?")


if __name__ == "__main__":
    provider = TracerProvider(resource=Resource.create({"service.name": "app"}))
    Langfuse(
        public_key="unused",
        secret_key="unused",
        base_url="http://127.0.0.1:9",
        tracer_provider=provider,
        span_exporter=OTLPSpanExporter(),
    )
    mine = {f.__name__: f for f in (observed, nothing_captured)}
    traced.main({**openai_calls.SCENARIOS, **mine}, provider)
