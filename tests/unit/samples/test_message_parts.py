"""Parts, turns, thoughts and bounds."""

import json

import pytest

from spangrade._values import MAX_CHARS
from spangrade.samples.jsontext import Items, read_items, read_loose, read_object, read_value
from spangrade.samples.messages import MAX_MESSAGES, Turn, answer, as_messages, last_user_text, split_thinking
from spangrade.samples.parts import tool_call
from spangrade.samples.turns import read_message, read_turns


@pytest.mark.parametrize(
    ("text", "said", "thoughts"),
    [
        ("51", "51", None),
        ("<think>54?</think>51", "51", "54?"),
        ("\n<thinking>\n54?\n</thinking>\n\n51", "51", "54?"),
        ("<think>no end", None, "no end"),
        ("<think></think>51", "51", None),
        ("54?</think>\n\n51", "51", "54?"),
        ("Write </think> to close the tag.", "Write </think> to close the tag.", None),
        ("I think so. <think> opens a thought.", "I think so. <think> opens a thought.", None),
        ("", "", None),
    ],
)
def test_thinking_tags(text: str, said: str | None, thoughts: str | None) -> None:
    """Only at the beginning; further on they are the answer's own words."""
    assert split_thinking(text) == (said, thoughts)


@pytest.mark.parametrize(
    ("given", "call"),
    [
        ({"id": "c", "name": "f", "arguments": '{"a": 1}'}, {"id": "c", "name": "f", "arguments": {"a": 1}}),
        ({"id": "c", "function": {"name": "f", "arguments": "{bad"}}, {"id": "c", "name": "f", "arguments": "{bad"}),
        (
            {"type": "tool_use", "id": "c", "name": "f", "input": {"a": 1}},
            {"id": "c", "name": "f", "arguments": {"a": 1}},
        ),
        ({"call_id": "c", "name": "f", "arguments": ""}, {"id": "c", "name": "f", "arguments": ""}),
        ({"toolCallId": "c", "toolName": "f", "args": "5"}, {"id": "c", "name": "f", "arguments": "5"}),
        ({"functionCall": {"name": "f", "args": {}}}, {"name": "f", "arguments": {}}),
        ({"name": "f"}, {"name": "f"}),
        ({}, {"name": ""}),
        ("f", None),
    ],
)
def test_tool_calls_in_every_spelling(given: object, call: object) -> None:
    """Arguments parsed where they are JSON, raw where they are not."""
    assert tool_call(given) == call


@pytest.mark.parametrize(
    ("message", "role"),
    [
        ({"role": "human", "content": "x"}, "user"),
        ({"type": "ai", "content": "x"}, "assistant"),
        ({"role": "developer", "content": "x"}, "system"),
        ({"role": "Model", "content": "x"}, "assistant"),
        ({"content": "x", "tool_call_id": "c"}, "tool"),
        ({"content": None, "tool_calls": [{"name": "f"}]}, "assistant"),
        ({"content": "x"}, "unknown"),
        ({"role": "narrator", "content": "x"}, "narrator"),
        ({"role": None, "content": "x"}, "unknown"),
    ],
)
def test_roles(message: dict[str, object], role: str) -> None:
    """Normalised, guessed, or unknown; the turn is kept."""
    assert read_message(message, "unknown")[0].role == role


def test_an_anthropic_turn_of_results_and_text() -> None:
    """Results become turns of their own, before the text."""
    content = [
        {"type": "tool_result", "tool_use_id": "c1", "content": [{"type": "text", "text": "type F"}]},
        {"type": "text", "text": "So which?"},
    ]
    result, said = read_message({"role": "user", "content": content}, "user")
    assert result.as_message() == {"role": "tool", "content": "type F", "tool_call_id": "c1"}
    assert said.as_message() == {"role": "user", "content": "So which?"}


@pytest.mark.parametrize(
    "part", [None, 5, [], {}, {"type": None}, {"type": []}, {"type": "text"}, {"type": "text", "content": 5}]
)
def test_odd_parts_do_no_harm(part: object) -> None:
    """What has no text says none."""
    (turn,) = read_message({"role": "user", "parts": [part, {"type": "text", "content": "Hi"}]}, "user")
    assert turn.text in ("Hi", "5\nHi")


def test_a_part_type_that_only_sounds_like_a_medium() -> None:
    """security is no uri."""
    (turn,) = read_message({"role": "user", "parts": [{"type": "security_note", "content": "careful"}]}, "user")
    assert turn.text == "careful"


def test_the_last_user_turn() -> None:
    """Else the last of unknown role, else none."""
    turns = [Turn("user", "a"), Turn("unknown", "b"), Turn("assistant", "c")]
    assert last_user_text(turns) == "a"
    assert last_user_text(turns[1:]) == "b"
    assert last_user_text(turns[2:]) is None


def test_the_items_of_one_response_are_heard_up_to_its_text() -> None:
    """Thoughts and tool calls as turns of their own."""
    turns = [Turn("assistant", reasoning="hm"), Turn("assistant", tool_calls=[{"name": "f"}]), Turn("assistant", "A")]
    said = answer([*turns, Turn("assistant", "B", tool_calls=[{"name": "g"}])])
    assert (said.text, said.reasoning, said.tool_calls) == ("A", "hm", ({"name": "f"},))
    assert answer([]).text is None


def test_messages_are_bounded_and_the_newest_are_whole() -> None:
    """Older ones are cut with a mark."""
    turns = [Turn("user", f"{n}" + "x" * 400_000) for n in range(4)]
    messages, cut = as_messages(turns)
    assert cut
    assert messages[-1]["content"] == turns[-1].text
    assert sum(len(m["content"]) for m in messages) < MAX_CHARS + 1_000
    assert "characters cut" in messages[0]["content"]
    messages, cut = as_messages([Turn("user", "x")] * (MAX_MESSAGES + 1))
    assert (len(messages), cut) == (MAX_MESSAGES, True)


@pytest.mark.parametrize("length", range(1, 120))
def test_a_message_list_cut_anywhere_gives_only_whole_texts(length: int) -> None:
    """Never half a text, except of a system turn; always marked."""
    messages = [{"role": "user", "parts": [{"type": "text", "content": t}]} for t in ("first", "second")]
    whole = json.dumps(messages)
    found = read_items(whole[:length])
    turns = read_turns(found, "user")
    assert found.truncated == (length < len(whole))
    assert [turn.text for turn in turns] == ["first", "second"][: len(turns)]


def test_a_judge_is_known_by_a_cut_system_turn_but_not_by_a_users_words() -> None:
    """The marker counts where the sender put instructions; nobody evades scoring by typing it."""
    cut = '[{"role": "system", "content": "[spangrade-judge] You are'
    assert [t.role for t in read_turns(read_items(cut), "user")] == ["system"]
    no_role_yet = '[{"content": "[spangrade-judge] You are'
    assert [t.role for t in read_turns(read_items(no_role_yet), "user")] == ["system"]
    typed = '[{"role": "user", "content": "[spangrade-judge] You are'
    assert read_turns(read_items(typed), "user") == []


@pytest.mark.parametrize(
    ("value", "items", "truncated"),
    [
        (None, [], False),
        ("", [], False),
        ("hello", ["hello"], False),
        ("[INST] hello ...", ["[INST] hello ..."], False),
        ("[spangrade-judge] x", ["[spangrade-judge] x"], False),
        ('[{"a": 1}, {"b', [{"a": 1}], True),
        ('[{"a": 1}, ... [truncated]', [{"a": 1}], True),
        ("[", [], True),
        (({"a": 1},), [{"a": 1}], False),
        ({"a": 1}, [{"a": 1}], False),
        ('"[{\\"a\\": 1}]"', [{"a": 1}], False),
        ('[{"a": "\\ud83d"}, {"b', [{"a": "\ud83d"}], True),
    ],
)
def test_lists_in_every_state(value: object, items: list[object], truncated: bool) -> None:
    """Text, JSON, cut JSON, JSON in JSON, structures."""
    found = read_items(value)
    assert (found.items, found.truncated) == (items, truncated)


def test_brackets_without_end_do_no_harm() -> None:
    """No recursion error; what is deeper than any reader goes is just text."""
    found = read_items("[" * 100_000)
    assert found.items == ["[" * 100_000]


def test_values_and_objects() -> None:
    """Scalars in JSON are values; loose reading leaves them text."""
    assert read_value("5") == (5, False)
    assert read_loose("5") == ("5", False)
    assert read_loose('{"a": 5}') == ({"a": 5}, False)
    assert read_value({"a": (1, b"x")})[0]["a"][0] == 1
    assert read_object('{"a": 1}') == {"a": 1}
    assert [read_object(v) for v in ("[1]", "x", None, 5, '{"a": ')] == [{}] * 5
    assert Items() == read_items(None)
