"""OpenLLMetry's instrumentation of LangChain, for real."""

from __future__ import annotations

import pytest

from .conftest import Run
from .openai_samples import expected
from .running import Ran

DOCUMENTS = [
    {"content": "Parrots repeat what they hear.", "metadata": {"page": 1}},
    {"content": "This is a test of parrots."},
]
SYSTEM = (
    "You are a parrot. [Document(id='d1', metadata={'page': 1}, page_content='Parrots repeat what they hear.'),"
    " Document(id='d2', metadata={}, page_content='This is a test of parrots.')]"
)
MESSAGES = [{"role": "system", "content": SYSTEM}, {"role": "user", "content": "Say this is a test"}]
LABELS = {"service.name": "app", "tier": "gold"}
BELONGS = {"session_id": "s1", "user_id": "u1"}


@pytest.fixture(scope="module")
def ran(run_app: Run) -> Ran:
    return run_app("traceloop_langchain", ("chain", "tools"), venv="traceloop")


def test_a_chain_is_its_question_its_answer_and_its_documents(ran: Ran) -> None:
    """End to end, and the model call in it, with the documents that its prompt was made of."""
    model = expected(
        "chat",
        messages=MESSAGES,
        system=SYSTEM,
        span_name="ChatOpenAI.chat",
        usage={"cache_read_tokens": 0},
        **BELONGS,
    )
    assert ran.sample("chain", "llm") == {**model, "metadata": LABELS}
    root = {**model["context"], "kind": "chain", "span_name": "RunnableSequence.workflow", "searched": True}
    del root["response_id"]
    assert ran.root("chain") == {**model, "metadata": LABELS, "documents": DOCUMENTS, "context": root}


def test_a_retriever_is_its_query_and_documents(ran: Ran) -> None:
    """A task by its kind, a search by its operation; ids are not told."""
    sample = ran.sample("chain", "retriever")
    assert (sample["input"], sample["documents"]) == ("Say this is a test", DOCUMENTS)
    assert sample["context"] == {
        **BELONGS,
        "kind": "retriever",
        "searched": True,
        "span_name": "vector_db_retrieve Shelf",
        "status": "ok",
    }


def test_a_tool_is_its_arguments_and_result(ran: Ran) -> None:
    """Without the bookkeeping of LangChain's callbacks."""
    call = {"id": "c1", "name": "weather", "arguments": {"place": "Lisbon"}, "result": "sunny in Lisbon"}
    assert ran.sample("tools") == {
        "input": {"place": "Lisbon"},
        "output": "sunny in Lisbon",
        "context": {"tool_calls": [call], "kind": "tool", "span_name": "execute_tool weather", "status": "ok"},
        "metadata": {"service.name": "app"},
    }


def test_without_capture_nothing_was_said(run_app: Run) -> None:
    """TRACELOOP_TRACE_CONTENT=false: no sample has an input or an output."""
    ran = run_app("traceloop_langchain", ("chain", "tools"), venv="traceloop", env={"TRACELOOP_TRACE_CONTENT": "false"})
    calls = [*ran.calls("chain"), *ran.calls("tools")]
    assert {call.kind for call in calls} == {"chain", "retriever", "llm", "tool"}
    assert {(call.reading.input, call.reading.output, call.reading.documents) for call in calls} == {(None, None, None)}
