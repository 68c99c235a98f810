"""TruLens with OpenTelemetry, for real: a record with a retrieval, a tool and a generation."""

from __future__ import annotations

import pytest

from .conftest import Run
from .running import Ran


@pytest.fixture(scope="module")
def ran(run_app: Run) -> Ran:
    return run_app("trulens_record", ("record",), venv="vendors")


def test_a_record_is_one_sample_with_its_documents(ran: Ran) -> None:
    called = {
        "name": "__main__.Rag.look",
        "arguments": {"city": "Lisbon"},
        "result": {"plug": "F", "city": "Lisbon"},
    }
    assert ran.root("record") == {
        "input": "Which plug?",
        "output": "This is a test.",
        "documents": [{"content": "Lisbon has type F."}],
        "context": {
            "kind": "chain",
            "span_name": "__main__.Rag.answer",
            "status": "ok",
            "searched": True,
            "tool_calls": [called],
        },
        "metadata": {"service.name": "trulens"},
    }


def test_its_spans_are_calls_of_their_kinds(ran: Ran) -> None:
    """In the process, where they are members of an enum, as at the receiver."""
    found = [(call.kind, call.reading.input, call.reading.output) for call in ran.calls("record")]
    assert found == [
        ("chain", "Which plug?", "This is a test."),
        ("retriever", "Which plug?", ["Lisbon has type F."]),
        ("tool", {"city": "Lisbon"}, {"plug": "F", "city": "Lisbon"}),
        ("llm", "Which plug?", "This is a test."),
    ]
