"""LiveKit Agents, from its documentation."""

import json
from collections.abc import Callable

from spangrade.samples.assemble import sample_of
from spangrade.samples.extract import is_content_key, quick_kind
from spangrade.samples.reading import Call


def test_a_turn_a_model_call_and_a_tool(call_of: Callable[..., Call]) -> None:
    """What was heard, the conversation, the arguments and result of a function."""
    turn = call_of({"lk.user_input": "Which plug?", "lk.response.text": "Type F.", "lk.room_name": "r1"})
    assert (turn.reading.input, turn.reading.output, turn.reading.session_id) == ("Which plug?", "Type F.", "r1")
    items = [
        {"type": "message", "role": "system", "content": ["Be kind"]},
        {"type": "message", "role": "user", "content": ["Hi"]},
    ]
    model = call_of({"lk.chat_ctx": json.dumps({"items": items}), "lk.response.text": "Hello"}).reading
    assert (model.kind, model.input, model.output, model.system) == ("llm", "Hi", "Hello", "Be kind")
    tool = call_of(
        {"lk.function_tool.name": "look", "lk.function_tool.args": '{"q": 1}', "lk.function_tool.output": "found"}
    )
    assert sample_of(tool).context["tool_calls"] == [{"name": "look", "arguments": {"q": 1}, "result": "found"}]


def test_other_spans_of_its_are_no_calls() -> None:
    """Speech, a room."""
    assert quick_kind({"lk.room_name": "r1", "lk.tts.streaming": True}) is None
    assert is_content_key("lk.user_input")
