"""openinference-instrumentation-langchain and -llama-index, for real: chains, agents and query engines, end to end."""

from __future__ import annotations

from typing import Any

import pytest

from .apps.as_json import plain, root_of
from .conftest import Run
from .openai_samples import ANSWERED_TOOLS, ASKED, CALLS, PARROT, expected
from .running import Ran

QUESTION = "When does my parcel come?"
DETAILS = {"cache_read_tokens": 0, "reasoning_tokens": 0}


@pytest.fixture(scope="module")
def langchain(run_app: Run) -> Ran:
    return run_app("openinference_langchain", ("chain", "streaming", "agent"), venv="openinference_frameworks")


@pytest.fixture(scope="module")
def llama_index(run_app: Run) -> Ran:
    return run_app("openinference_llama_index", ("query", "chat", "streaming"), venv="openinference_frameworks")


def test_a_chain_of_langchain_is_one_sample_with_its_documents(langchain: Ran) -> None:
    found = langchain.root("chain")
    system = "Answer from these documents: Parcels arrive within three working days.\nReturns are free."
    assert found == {
        "input": QUESTION,
        "output": "This is a test.",
        "documents": [
            {"content": "Parcels arrive within three working days.", "metadata": {"source": "faq.md"}},
            {"content": "Returns are free.", "metadata": {"source": "faq.md", "page": 2}},
        ],
        "context": {
            "messages": [{"role": "system", "content": system}, {"role": "user", "content": QUESTION}],
            "system": system,
            "model": "gpt-4o-mini-2024-07-18",
            "provider": "openai",
            "usage": {"input_tokens": 12, "output_tokens": 5, **DETAILS},
            "finish_reasons": ["stop"],
            "searched": True,
            "kind": "chain",
            "span_name": "RunnableSequence",
            "status": "ok",
        },
        "metadata": {"service.name": "app"},
    }


def test_a_streamed_chain_of_langchain_has_its_whole_answer(langchain: Ran) -> None:
    found = langchain.root("streaming")
    assert (found["input"], found["output"]) == ("When does it come?", '"This is a test."')
    assert len(found["documents"]) == 2
    assert langchain.call("streaming", "llm").reading.usage["output_tokens"] == 5


def test_an_agent_of_langchain_is_the_question_and_its_last_answer_with_the_tools_results(langchain: Ran) -> None:
    found = langchain.root("agent")
    last = expected("tools", 1)
    assert (found["input"], found["output"]) == (last["input"], last["output"])
    results = ("50 degrees and raining", "70 degrees and sunny")
    assert found["context"]["tool_calls"] == [
        {**call, "result": result} for call, result in zip(CALLS, results, strict=True)
    ]
    assert [_bare(message) for message in found["context"]["messages"]] == ANSWERED_TOOLS
    assert found["context"]["system"] == "You're a helpful assistant."
    assert found["context"]["model"] == "gpt-4o-mini-2024-07-18"
    assert found["context"]["usage"] == {"input_tokens": 174, "output_tokens": 76, **DETAILS}
    for tool, call, result in zip(langchain.calls("agent", "tool"), CALLS, results, strict=False):
        assert (tool.reading.output, tool.reading.tool_calls[0]["id"]) == (result, call["id"])


def test_a_query_engine_of_llama_index_is_one_sample_with_its_nodes(llama_index: Ran) -> None:
    (trace,) = {call.span.trace_hex for call in llama_index.calls("query", "llm")}
    root = root_of([span for span in llama_index.spans("query") if span.trace_hex == trace])
    assert root is not None
    found = plain(root)
    assert (found["input"], found["output"]) == (QUESTION, "This is a test.")
    nodes = [("d1", "Parcels arrive within three working days."), ("d2", "Returns are free.")]
    assert [(one["id"], one["content"], one["metadata"]) for one in found["documents"]] == [
        (node, text, {"source": "faq.md"}) for node, text in nodes
    ]
    assert all(0 < one["score"] <= 1 for one in found["documents"])
    assert found["context"]["usage"] == {"input_tokens": 12, "output_tokens": 5, **DETAILS}
    asked = found["context"]["messages"][-1]["content"]
    assert asked.startswith("Context information is below.")
    assert f"Query: {QUESTION}" in asked


def test_the_inner_steps_of_llama_index_ask_and_find_the_same(llama_index: Ran) -> None:
    outer, inner = llama_index.calls("query", "retriever")
    assert outer.reading.input == inner.reading.input == QUESTION
    assert [one["id"] for one in inner.reading.documents or ()] == ["d1", "d2"]
    asked = {call.reading.input for call in llama_index.calls("query", "llm")}
    assert len(asked) == 1, asked


def test_a_chat_of_llama_index_is_the_same_from_both_of_its_spans(llama_index: Ran) -> None:
    for call in llama_index.calls("chat", "llm"):
        reading = call.reading
        assert (reading.input, reading.output, reading.system) == (
            ASKED["content"],
            "This is a test.",
            PARROT["content"],
        )
        assert list(reading.messages) == [PARROT, ASKED]
        assert reading.finish_reasons == ("stop",)


def _bare(message: dict[str, Any]) -> dict[str, Any]:
    """Without the tool's name, which only LangChain gives to its results."""
    return {key: value for key, value in message.items() if key != "name"}
