"""The samples of what `apps/rag.py` does under a vendor's decorators: a function that retrieves, uses a tool and asks a model."""

from __future__ import annotations

from typing import Any, Final

from .openai_samples import expected
from .running import Ran

DOCUMENTS: Final = [{"content": "Lisbon has type F.", "metadata": {"page": 1}}]
_USED: Final = {"plug": "F", "city": "Lisbon"}


def check(
    ran: Ran, scenario: str, *, tool: str = "look", model: Any, root: Any, documents: Any = None, **more: Any
) -> None:
    """Whether each call of the scenario is its sample, and the whole one sample with everything in it.

    ``model``: what is told of the model's call (see `openai_samples.expected`); ``root``: what is told of the whole; ``more``:
    of every call, ``metadata`` or fields of the context.
    """
    metadata = more.pop("metadata", {"service.name": "app"})
    documents = documents or DOCUMENTS
    found = ran.sample(scenario, "retriever")
    assert (found["input"], found["documents"]) == ("Which plug?", documents)
    assert found["context"] == {"kind": "retriever", "searched": True, "status": "ok", **more, **_named(found)}
    called = {"name": tool, "arguments": {"city": "Lisbon"}, "result": _USED}
    used = ran.sample(scenario, "tool")
    assert (used["input"], used["output"]) == ({"city": "Lisbon"}, _USED)
    assert used["context"] == {"kind": "tool", "status": "ok", "tool_calls": [called], **more, **_named(used)}
    asked = expected("chat", **{**more, **model})
    assert ran.sample(scenario, "llm") == {**asked, "metadata": metadata} if metadata else asked
    whole = ran.root(scenario)
    mine = {key: value for key, value in asked["context"].items() if key not in ("response_id", "kind", "span_name")}
    context = {**mine, "kind": "chain", "searched": True, "tool_calls": [called], **more, **_named(whole)}
    assert whole == {
        "input": "Which plug?",
        "output": "This is a test.",
        "documents": documents,
        "context": context,
        "metadata": {**metadata, **root},
    }


def _named(sample: dict[str, Any]) -> dict[str, Any]:
    return {"span_name": sample["context"]["span_name"]}
