"""TruLens: a record with a retrieval, a tool and a generation; its session's own exporter is ours."""

import tempfile

import rag
import traced
from opentelemetry import trace
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from trulens.apps.app import TruApp
from trulens.core import TruSession
from trulens.core.otel.instrument import instrument
from trulens.otel.semconv.trace import SpanAttributes as Attributes

FOUND = {Attributes.RETRIEVAL.QUERY_TEXT: "question", Attributes.RETRIEVAL.RETRIEVED_CONTEXTS: "return"}


class Rag:
    """The application."""

    @instrument(span_type=Attributes.SpanType.RETRIEVAL, attributes=FOUND)
    def find(self, question: str) -> list[str]:
        return [str(found["page_content"]) for found in rag.find(question)]

    @instrument(span_type=Attributes.SpanType.TOOL)
    def look(self, city: str) -> dict[str, str]:
        return rag.look(city)

    @instrument(span_type=Attributes.SpanType.GENERATION)
    def ask(self, question: str) -> str:
        return rag.ask(question)

    @instrument()
    def answer(self, question: str) -> str:
        self.find(question)
        self.look("Lisbon")
        return self.ask(question)


def record() -> None:
    app = Rag()
    with TruApp(app, app_name="rag", app_version="1", main_method=app.answer):
        app.answer("Which plug?")


if __name__ == "__main__":
    # It makes a database of its own in any case, and that in the working directory unless it is told otherwise.
    with tempfile.TemporaryDirectory() as folder:
        session = TruSession(database_url=f"sqlite:///{folder}/trulens.sqlite", span_exporter=OTLPSpanExporter())
        traced.main({"record": record}, trace.get_tracer_provider())
