"""Section F, in process and as the agent reads what left the process: the same documents, whole, in order, with their scores."""

from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pytest
from opentelemetry import trace as trace_api
from opentelemetry.exporter.otlp.proto.common.trace_encoder import encode_spans
from opentelemetry.sdk.trace import ReadableSpan
from pydantic import BaseModel
from tests.cases.conftest import Product

import spangrade as sg
from spangrade import semconv as s
from spangrade.model.sample import Sample
from spangrade.model.span import SpanData
from spangrade.samples.assemble import root_sample
from spangrade.samples.extract import extract
from spangrade.tracing import open_documents
from spangrade_agent import codec

TEXT = "Sockets in Portugal are of type F."
OTHER = "Trams run until one."


class LangChainDocument:
    def __init__(self, page_content: str, metadata: Any = None, id: Any = None) -> None:  # noqa: A002 - as there
        self.page_content, self.metadata, self.id = page_content, metadata or {}, id


@dataclass
class Node:
    text: str
    id_: str
    metadata: dict[str, Any] = field(default_factory=dict)


@dataclass
class NodeWithScore:
    node: Node
    score: float | None = None


@dataclass
class HaystackDocument:
    id: str
    content: str
    score: float | None = None
    meta: dict[str, Any] = field(default_factory=dict)


class Chunk(BaseModel):
    text: str
    score: float


SHAPES: dict[str, tuple[Any, Any]] = {
    "texts": ([TEXT, OTHER], [{"content": TEXT}, {"content": OTHER}]),
    "one text": (TEXT, [{"content": TEXT}]),
    "dicts": ([{"page_content": TEXT}, {"text": OTHER, "id": 7}], [{"content": TEXT}, {"id": "7", "content": OTHER}]),
    "pairs": ([(TEXT, 0.9), (0.1, OTHER)], [{"content": TEXT, "score": 0.9}, {"content": OTHER, "score": 0.1}]),
    "langchain": ([LangChainDocument(TEXT, {"page": 3}, "d1")], [{"id": "d1", "content": TEXT, "metadata": {"page": 3}}]),
    "langchain with numpy scores": (
        [(LangChainDocument(TEXT), np.float32(0.5)), (LangChainDocument(OTHER), np.float64(0.25))],
        [{"content": TEXT, "score": 0.5}, {"content": OTHER, "score": 0.25}],
    ),
    "llama-index": (
        [NodeWithScore(Node(TEXT, "n1", {"file": "a.pdf"}), 0.75), NodeWithScore(Node(OTHER, "n2"))],
        [{"id": "n1", "content": TEXT, "score": 0.75, "metadata": {"file": "a.pdf"}}, {"id": "n2", "content": OTHER}],
    ),
    "haystack": (
        [HaystackDocument("h1", TEXT, 0.5, {"lang": "en"})],
        [{"id": "h1", "content": TEXT, "score": 0.5, "metadata": {"lang": "en"}}],
    ),
    "haystack's result": ({"documents": [HaystackDocument("h1", TEXT)]}, [{"id": "h1", "content": TEXT}]),
    "pydantic": ([Chunk(text=TEXT, score=0.5)], [{"content": TEXT, "score": 0.5}]),
    "nested": ([[TEXT], [OTHER]], [{"content": TEXT}, {"content": OTHER}]),
    "duplicates, without ids": ([TEXT, TEXT], [{"content": TEXT}, {"content": TEXT}]),
    "distances, the best first": ([(TEXT, 0.1), (OTHER, 0.9)], [{"content": TEXT, "score": 0.1}, {"content": OTHER, "score": 0.9}]),
    "nothing found": ([], []),
}  # fmt: skip


def as_the_agent_reads(spans: list[ReadableSpan]) -> Sample:
    """The root sample of exported spans, through OTLP."""
    request = encode_spans(spans)
    decoded, _, _ = codec.decode_traces(request.SerializeToString(), "protobuf")
    found: list[SpanData] = [
        codec.span_data(span, codec.attributes_of_kvs(group.resource.attributes), scope.scope)
        for group in decoded.resource_spans
        for scope in group.scope_spans
        for span in scope.spans
    ]
    calls = [call for span in found if (call := extract(span)) is not None]
    sample = root_sample([call for call in calls if call.span.parent_span_id is None], calls)
    assert sample is not None
    return sample[1]


@pytest.mark.parametrize("shape", SHAPES)
def test_c053_every_shape_is_one_shape_in_both_hosts(shape: str, product: Product) -> None:
    """Order and scores kept, nothing invented. A generator, too: it is read once."""
    given, wanted = SHAPES[shape]

    @sg.trace
    def rag(question: str, documents: Any) -> str:
        sg.set_retrieval_documents(documents)
        return "Type F."

    rag("Which plug?", given)
    (sample,) = product.samples
    assert sample.documents == wanted
    assert sample.context["searched"] is True
    assert as_the_agent_reads(product.spans).documents == wanted


def test_c053_a_generator_is_read_once(product: Product) -> None:
    @sg.trace
    def rag(question: str) -> str:
        sg.set_retrieval_documents(text for text in (TEXT, OTHER))
        return "Type F."

    rag("Which plug?")
    assert [document["content"] for document in product.samples[0].documents] == [TEXT, OTHER]


def test_c054_a_hundred_documents_take_one_attribute_and_push_nothing_out(product: Product) -> None:
    documents = [
        {"id": f"d{n}", "content": f"passage {n} " + "x" * 400, "score": 1 - n / 100, "metadata": {"page": n}}
        for n in range(100)
    ]

    @sg.trace
    def rag(question: str) -> str:
        span = trace_api.get_current_span()
        for n in range(110):  # with ours, below the SDK's limit of 128
            span.set_attribute(f"app.{n}", n)
        sg.set_retrieval_documents(documents)
        return "answer"

    rag("the question")
    span = product.only("rag")
    assert span.dropped_attributes == 0
    assert all(span.attributes[f"app.{n}"] == n for n in range(110))
    assert len(span.attributes) - 110 <= 10
    (sample,) = product.samples
    assert sample.documents == documents
    assert "truncated" not in sample.context
    assert as_the_agent_reads(product.spans).documents == documents


def test_c054_a_foreign_retrieval_that_lost_attributes_says_so(product: Product) -> None:
    """The span kind and the question went first; it is still read, as a retriever's, and as incomplete."""
    seen: list[Sample] = []

    @sg.metric(target="retriever")
    def keeps(sample: Sample) -> int:
        seen.append(sample)
        return 1

    product.configure(keeps)
    with trace_api.get_tracer("other").start_as_current_span("foreign") as span:
        span.set_attribute("openinference.span.kind", "RETRIEVER")
        span.set_attribute("input.value", "foreign question")
        for n in range(100):
            span.set_attribute(f"retrieval.documents.{n}.document.content", f"foreign {n}")
            span.set_attribute(f"retrieval.documents.{n}.document.score", n / 100)
    exported = product.only("foreign")
    assert exported.dropped_attributes > 0
    assert "openinference.span.kind" not in exported.attributes
    (sample,) = seen
    assert sample.context["truncated"] is True
    assert sample.context["dropped_attributes"] == exported.dropped_attributes
    assert sample.documents[-1] == {"content": "foreign 99", "score": 0.99}


def test_c057_searched_and_found_nothing_differs_from_never_searched(product: Product) -> None:
    @sg.trace
    def rag(search: bool) -> str:
        if search:
            sg.set_retrieval_documents([])
        return f"answer {search}"

    rag(True)
    rag(False)
    never, nothing = product.samples
    assert (nothing.documents, nothing.context.get("searched")) == ([], True)
    assert (never.documents, never.context.get("searched")) == ([], None)


def test_c059_what_does_not_fit_is_left_out_by_whole_documents_and_counted(product: Product) -> None:
    @sg.trace
    def rag(question: str) -> str:
        sg.set_retrieval_documents([f"document {n} " + "x" * 20_000 for n in range(300)])
        return "answer"

    rag("q")
    (sample,) = product.samples
    cut = sample.context["documents_cut"]
    assert cut["given"] == 300
    assert cut["kept"] == len(sample.documents) < 300
    assert all(document["content"].endswith("x" * 1_000) for document in sample.documents)
    assert len(product.only("rag").attributes[s.RETRIEVAL_DOCUMENTS]) < 600_000
    agents = as_the_agent_reads(product.spans)
    assert (agents.documents, agents.context["documents_cut"]) == (sample.documents, cut)


def test_c060_the_second_call_replaces_the_first_and_the_innermost_call_has_them(product: Product) -> None:
    @sg.trace
    def inner() -> str:
        sg.set_retrieval_documents(["first"])
        sg.set_retrieval_documents(["second"])
        return "found"

    @sg.trace
    def outer(question: str) -> str:
        return inner()

    outer("q")
    assert s.RETRIEVAL_DOCUMENTS not in product.only("outer").attributes
    (sample,) = product.samples
    assert sample.documents == [{"content": "second"}]
    assert as_the_agent_reads(product.spans).documents == [{"content": "second"}]


def test_a_model_call_has_the_documents_set_on_the_call_around_it_in_both_hosts(product: Product) -> None:
    """Also where other spans stand between, and not what is set after it has ended."""
    seen: list[Sample] = []

    @sg.metric(target="llm")
    def keeps(sample: Sample) -> int:
        seen.append(sample)
        return 1

    product.configure(keeps)

    @sg.trace(kind="llm")
    def model(question: str) -> str:
        return "Type F."

    @sg.trace
    def rag(question: str) -> str:
        sg.set_retrieval_documents([{"id": "d1", "content": TEXT, "score": 0.5}])
        with trace_api.get_tracer("http").start_as_current_span("POST"):
            return model(question)

    rag("Which plug?")
    assert product.only("model").parent.span_id == product.only("POST").context.span_id
    (sample,) = seen
    assert sample.documents == [{"id": "d1", "content": TEXT, "score": 0.5}]
    assert open_documents.held == {}
