"""Our own spans, as `sg.trace` writes them, and bare input and output."""

import json
from collections.abc import Callable
from typing import Any

import pytest

from spangrade import semconv
from spangrade.samples.assemble import sample_of
from spangrade.samples.extract import quick_kind
from spangrade.samples.reading import Call

CallOf = Callable[..., Call]


def own(kind: str, **more: object) -> dict[str, object]:
    return {"openinference.span.kind": kind, **more}


def test_an_own_chain_span(call_of: CallOf) -> None:
    """Values, documents in one attribute, metadata, context, session."""
    documents = [{"id": "1", "content": "type F", "score": 0.9, "metadata": {"page": 1}}]
    call = call_of(
        own(
            "CHAIN",
            **{
                "input.value": '{"q": "Which plug?"}',
                "input.mime_type": "application/json",
                "output.value": "Type F.",
                "output.mime_type": "text/plain",
                "gen_ai.retrieval.documents": json.dumps(documents),
                "metadata": '{"tier": "gold"}',
                semconv.CONTEXT: '{"prompt_version": 3, "model": "said by hand"}',
                "session.id": "s1",
                "user.id": "u1",
            },
        ),
        resource={"service.name": "shop"},
        name="rag",
    )
    sample = sample_of(call)
    assert (sample.input, sample.output) == ({"q": "Which plug?"}, "Type F.")
    assert sample.documents == documents
    assert sample.metadata == {"service.name": "shop", "tier": "gold"}
    assert sample.trace_id == f"{1:032x}"
    assert sample.context == {
        "prompt_version": 3,
        "model": "said by hand",
        "session_id": "s1",
        "user_id": "u1",
        "searched": True,
        "kind": "chain",
        "span_name": "rag",
        "status": "ok",
        "duration_s": 1e-6,
    }


def test_an_own_llm_span(call_of: CallOf) -> None:
    """Content is written once, as GenAI messages."""
    messages = [{"role": "user", "parts": [{"type": "text", "content": "Hi"}]}]
    said = [{"role": "assistant", "parts": [{"type": "text", "content": "Hello"}]}]
    call = call_of(
        own(
            "LLM",
            **{
                "gen_ai.operation.name": "chat",
                "gen_ai.input.messages": json.dumps(messages),
                "gen_ai.output.messages": json.dumps(said),
            },
        )
    )
    assert (call.kind, call.reading.input, call.reading.output) == ("llm", "Hi", "Hello")


def test_both_written_on_request_the_messages_are_believed_for_llm_and_the_values_for_the_rest(call_of: CallOf) -> None:
    """The precedence of the brief: structured messages on llm spans, explicit values elsewhere."""
    both = {
        "input.value": "value in",
        "output.value": "value out",
        "gen_ai.input.messages": '[{"role": "user", "content": "message in"}]',
        "gen_ai.output.messages": '[{"role": "assistant", "content": "message out"}]',
        "llm.input_messages.0.message.role": "user",
        "llm.input_messages.0.message.content": "flat in",
    }
    llm, agent = call_of(own("LLM", **both)).reading, call_of(own("AGENT", **both)).reading
    assert (llm.input, llm.output) == ("message in", "message out")
    assert (agent.input, agent.output) == ("value in", "value out")
    del both["gen_ai.input.messages"]
    assert call_of(own("LLM", **both)).reading.input == "flat in"


def test_an_own_retriever_span_with_documents_set_inside(call_of: CallOf) -> None:
    """What was set wins over what was returned."""
    call = call_of(
        own(
            "RETRIEVER",
            **{
                "output.value": '["returned"]',
                "output.mime_type": "application/json",
                "gen_ai.retrieval.documents": '[{"content": "set"}]',
            },
        )
    )
    assert call.reading.documents == ({"content": "set"},)


def test_bare_input_and_output(call_of: CallOf) -> None:
    """Text as it is, structured values plain, sequences from the SDK as lists."""
    call = call_of({"input": "question", "output": {"answer": ("a", b"xyz", None)}, "other": 1})
    assert (call.kind, call.reading.dialect, call.reading.input) == ("chain", "plain", "question")
    assert call.reading.output["answer"][0] == "a"
    assert call.reading.output["answer"][1].startswith("<bytes length=3")
    assert quick_kind({"output": 5}) == "chain"


def test_a_reading_names_its_dialects(call_of: CallOf) -> None:
    """For `spangrade explain`."""
    call = call_of({"openinference.span.kind": "AGENT", "gen_ai.operation.name": "invoke_agent", semconv.CONTEXT: "{}"})
    assert call.reading.dialect == "spangrade+openinference+otel_genai"


def test_json_text_in_bare_attributes_stays_the_text_that_it_is(call_of: CallOf) -> None:
    """Nobody says that it is JSON, and an answer that is JSON is graded as it was given."""
    reading = call_of({"input": '{"question": "When?"}', "output": '{"days": 3}'}).reading
    assert (reading.input, reading.output) == ('{"question": "When?"}', '{"days": 3}')


@pytest.mark.parametrize("wrap", [lambda value: value, json.dumps], ids=["structured", "JSON text"])
def test_a_conversation_in_bare_attributes_is_its_question_and_its_answer(call_of: CallOf, wrap: Any) -> None:
    asked = [{"role": "system", "content": "Be brief."}, {"role": "user", "content": "When?"}]
    said = {"role": "assistant", "content": "Now."}
    for given, result in ((asked, said), ({"messages": asked}, {"messages": [*asked, said]}), (asked, [said])):
        reading = call_of({"input": wrap(given), "output": wrap(result)}).reading
        assert (reading.input, reading.output, reading.system) == ("When?", "Now.", "Be brief.")
        assert [message["role"] for message in reading.messages] == ["system", "user"]


def test_text_that_looks_like_a_conversation_and_is_none_stays_text(call_of: CallOf) -> None:
    for text in ('[{"content": 3', '{"content": "x"}', '["content"]', '{"messages": "content"}'):
        assert call_of({"input": text, "output": text}).reading.input == text


def test_an_object_with_a_type_and_a_content_of_its_own_is_no_message(call_of: CallOf) -> None:
    letter = {"type": "email", "content": "Dear reader"}
    assert call_of({"output": letter}).reading.output == letter
    said = {"output.value": json.dumps(letter), "output.mime_type": "application/json"}
    assert call_of({"openinference.span.kind": "CHAIN", **said}).reading.output == letter
