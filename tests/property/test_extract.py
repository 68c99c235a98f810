"""Extraction over arbitrary attributes, cut JSON, mutated real spans and every order of arrival."""

import importlib.util
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from pydantic_core import to_json
from tests.benchmarks.dialect_spans import spans

from spangrade import _guard, semconv
from spangrade._values import MAX_CHARS
from spangrade.model.documents import MAX_DOCUMENTS, read_documents
from spangrade.model.sample import Sample
from spangrade.model.span import EventData, SpanData
from spangrade.samples.assemble import root_sample, sample_of
from spangrade.samples.content import CONTENT_EVENTS
from spangrade.samples.dialects import DIALECTS
from spangrade.samples.extract import extract, is_content_key, quick_kind
from spangrade.samples.messages import MAX_MESSAGES
from spangrade.samples.reading import ROOT_KINDS, Call

slow_ok = settings(deadline=None, suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large])


def read(span: SpanData) -> Call | None:
    """`extract`, with faults of ours raised."""
    faults: list[BaseException] = []
    remove = _guard.observe(lambda _where, fault: faults.append(fault))
    try:
        call = extract(span)
    finally:
        remove()
    if faults:
        raise faults[0]
    return call


def span_with(attributes: Mapping[str, Any], **more: Any) -> SpanData:
    given_ = {"trace_id": 1, "span_id": 1, "parent_span_id": None, "name": "s", "start_ns": 1, "end_ns": 2}
    return SpanData(attributes=attributes, **{**given_, **more})


# Text as it is met: lone surrogates, JSON-like beginnings, thinking tags, the judge's marker.
texts = st.one_of(
    st.text(max_size=40),
    st.text(alphabet=st.characters(), max_size=10),
    st.sampled_from(
        ["", " ", "[", "{", "[{", "<think>", "</think>\n", "[spangrade-judge] x", "\ud83d", "NaN", "1e999", "null"]
    ),
)
scalars = st.one_of(st.none(), st.booleans(), st.integers(), st.floats(), texts, st.binary(max_size=8))
anything = st.recursive(
    scalars,
    lambda inner: st.one_of(
        st.lists(inner, max_size=4), st.lists(inner, max_size=4).map(tuple), st.dictionaries(texts, inner, max_size=4)
    ),
    max_leaves=12,
)
part_types = st.sampled_from(
    ["text", "reasoning", "thinking", "tool_call", "tool_call_response", "refusal", "blob", "uri", "image_url",
     "message", "function_call", "function_call_output", "tool_use", "tool_result", "compaction", "generic",
     "output_text", "??", None, 5]
)  # fmt: skip
field_names = st.sampled_from(
    ["type", "content", "text", "id", "name", "arguments", "input", "output", "result", "response", "summary",
     "thinking", "function", "functionCall", "functionResponse", "inlineData", "modality", "mime_type", "thought",
     "role", "parts"]
)  # fmt: skip
parts = st.recursive(
    st.dictionaries(field_names, scalars, max_size=4),
    lambda inner: st.builds(
        lambda kind, fields, nested, key: {**fields, "type": kind, key: nested},
        part_types,
        st.dictionaries(field_names, scalars, max_size=3),
        st.one_of(inner, st.lists(inner, max_size=3), scalars),
        field_names,
    ),
    max_leaves=8,
)
roles = st.one_of(st.sampled_from(["user", "assistant", "system", "tool", "human", "ai", "developer"]), scalars)
messages = st.lists(
    st.one_of(
        st.fixed_dictionaries(
            {},
            optional={
                "role": roles,
                "parts": st.one_of(st.lists(parts, max_size=4), anything),
                "content": st.one_of(texts, st.lists(parts, max_size=4), anything),
                "tool_calls": st.one_of(st.lists(parts, max_size=3), anything),
                "tool_call_id": scalars,
                "refusal": scalars,
                "finish_reason": scalars,
                "kwargs": anything,
                "type": part_types,
            },
        ),
        anything,
    ),
    max_size=5,
)


def as_json(value: Any) -> str:
    return json.dumps(value, default=repr)


def cut_somewhere(text: str, share: float) -> str:
    return text[: int(len(text) * share)]


structured = st.one_of(
    messages, anything, st.fixed_dictionaries({"messages": messages}), st.fixed_dictionaries({"choices": messages})
)
json_texts = st.one_of(
    structured.map(as_json),
    st.builds(cut_somewhere, structured.map(as_json), st.floats(0, 1)),
    structured.map(lambda value: as_json(as_json(value))),
)
values = st.one_of(anything, structured, json_texts)
KNOWN = sorted(
    {key for dialect in DIALECTS for key in (*dialect.kind_marks, *dialect.content_keys)}
    | {semconv.REQUEST_MODEL, semconv.FINISH_REASONS, semconv.INPUT_TOKENS, semconv.SESSION_ID, semconv.OI_METADATA,
       semconv.OI_INPUT_MIME, semconv.OI_OUTPUT_MIME, semconv.TOOL_NAME, "llm.token_count.prompt", "tag.tags"}
)  # fmt: skip
indices = st.one_of(st.integers(-2, 12).map(str), st.sampled_from(["07", "2147483648", "9" * 30, "x", ""]))
flat_keys = st.builds(
    "{}.{}.{}".format,
    st.sampled_from(sorted({"llm.prompts", *(prefix.rstrip(".") for dialect in DIALECTS for prefix in dialect.content_prefixes)})),
    indices,
    st.one_of(
        st.sampled_from(["message.role", "message.content", "message.tool_call_id", "document.content",
                         "document.score", "document.metadata", "prompt.text", "message.finish_reason", "role", "content",
                         "finish_reason", "tool_calls.0.name", "tool_calls.0.arguments"]),
        st.builds("message.contents.{}.message_content.{}".format, indices, st.sampled_from(["type", "text", "image"])),
        st.builds("message.tool_calls.{}.tool_call.{}".format, indices,
                  st.sampled_from(["id", "function.name", "function.arguments"])),
        texts,
    ),
)  # fmt: skip
messages_in_events = st.dictionaries(
    st.sampled_from(["content", "role", "message", "tool_calls", "id", "index", "finish_reason", "body", "event.name"]),
    values,
    max_size=4,
)
kinds = st.sampled_from(
    ["LLM", "CHAIN", "AGENT", "TOOL", "RETRIEVER", "RERANKER", "EVALUATOR", "PROMPT", "UNKNOWN", "llm"]
)
operations = st.sampled_from(["chat", "execute_tool", "retrieval", "invoke_agent", "embeddings", "evaluation", "new"])
attributes = st.one_of(
    st.dictionaries(st.one_of(st.sampled_from(KNOWN), flat_keys, texts), values, max_size=12),
    st.builds(
        lambda kind, rest: {**rest, semconv.OI_KIND: kind},
        kinds,
        st.dictionaries(st.one_of(st.sampled_from(KNOWN), flat_keys), values, max_size=12),
    ),
    st.builds(
        lambda operation, rest: {**rest, semconv.OPERATION_NAME: operation},
        operations,
        st.dictionaries(st.sampled_from(KNOWN), values, max_size=12),
    ),
)


def chars(value: Any) -> int:
    """The characters in a value, keys included, and one for every node."""
    if isinstance(value, str):
        return len(value) + 1
    if isinstance(value, Mapping):
        return 1 + sum(chars(key) + chars(item) for key, item in value.items())
    if isinstance(value, (list, tuple)):
        return 1 + sum(chars(item) for item in value)
    return 32


def check_sample(sample: Sample) -> None:
    """A Sample can always be sent: strict JSON, valid text."""
    for name in ("input", "output", "documents", "context", "metadata"):
        to_json(getattr(sample, name), inf_nan_mode="constants").decode()
    assert sample.context["duration_s"] is None or sample.context["duration_s"] >= 0
    for document in sample.documents:
        assert isinstance(document["content"], str)


@slow_ok
@given(
    attributes,
    st.lists(
        st.builds(
            EventData, st.sampled_from([*sorted(CONTENT_EVENTS), "x"]), st.one_of(attributes, messages_in_events)
        ),
        max_size=2,
    ),
)
def test_no_attributes_raise_and_what_is_read_is_no_larger_than_what_was_sent(
    given_: dict[str, Any], events: list[EventData]
) -> None:
    """A few fields hold the same text, and no field makes more of it."""
    kind = quick_kind(given_)
    call = read(span_with(given_, events=events))
    assert (call is None) == (kind is None)
    if call is None:
        return
    assert call.kind == kind
    sent = chars(given_) + sum(chars(event.attributes) for event in events)
    sample = sample_of(call)
    check_sample(sample)
    got = sum(chars(getattr(sample, name)) for name in ("input", "output", "documents", "context", "metadata"))
    assert got <= 12 * sent + 2_000
    found = root_sample([call], [])
    assert (found is None) == (call.evaluator or call.kind not in ROOT_KINDS)


def sequences(value: Any, kind: type) -> Any:
    """The value with every sequence of one type."""
    if isinstance(value, dict):
        return {key: sequences(item, kind) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return kind(sequences(item, kind) for item in value)
    return value


@slow_ok
@given(attributes)
def test_the_sdk_and_the_agent_read_the_same(given_: dict[str, Any]) -> None:
    """Promise 6: the SDK holds sequences as tuples, the agent's codec as lists."""
    one, two = read(span_with(sequences(given_, tuple))), read(span_with(sequences(given_, list)))
    assert (one is None) == (two is None)
    if one is not None and two is not None:
        assert repr(sample_of(one)) == repr(sample_of(two))


@slow_ok
@given(st.dictionaries(st.one_of(texts, st.integers(), st.none()), anything, max_size=6))
def test_any_mapping_has_a_quick_kind_or_none(given_: dict[Any, Any]) -> None:
    """Keys that are no text too."""
    assert quick_kind(given_) is None or isinstance(quick_kind(given_), str)


@slow_ok
@given(texts)
def test_any_key_is_content_or_not(key: str) -> None:
    """Never an exception on the exporting path."""
    assert is_content_key(key) in (True, False)


conversation = st.lists(st.tuples(st.sampled_from(["user", "assistant"]), st.text(max_size=20)), min_size=1, max_size=4)


@slow_ok
@given(conversation, st.data())
def test_a_conversation_cut_anywhere_gives_its_beginning(turns: list[tuple[str, str]], data: st.DataObject) -> None:
    """Whole texts only, in order, and marked; never an exception."""
    whole = json.dumps([{"role": role, "parts": [{"type": "text", "content": text}]} for role, text in turns])
    length = data.draw(st.integers(1, len(whole)))
    attributes_ = {semconv.OPERATION_NAME: "chat", semconv.INPUT_MESSAGES: whole[:length]}
    call = read(span_with(attributes_))
    full = read(span_with({semconv.OPERATION_NAME: "chat", semconv.INPUT_MESSAGES: whole}))
    assert call is not None
    assert full is not None
    got = [message["content"] for message in call.reading.messages]
    assert got == [message["content"] for message in full.reading.messages][: len(got)]
    assert call.reading.truncated == (length < len(whole))


def real_spans() -> list[SpanData]:
    """The spans of the case files, where they are there, and one of each dialect's libraries."""
    helper = Path(__file__).parents[1] / "unit" / "samples" / "otlp_json.py"
    spec = importlib.util.spec_from_file_location("property_otlp_json", helper)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    found: list[SpanData] = []
    for path in sorted(module.CASES.glob("C0[4-9]*.otlp.json")):
        if path.name[:4] in ("C086", "C087", "C088", "C089"):  # broken on purpose, for the wire codec
            continue
        found += module.read(json.loads(path.read_text()))
    found += spans().values()
    by_hand = {semconv.OI_KIND: "CHAIN", semconv.OI_INPUT: "q", semconv.RETRIEVAL_DOCUMENTS: '[{"content": "type F"}]'}
    return [*found, span_with(by_hand)]


REAL = real_spans()


@slow_ok
@given(st.sampled_from(REAL), st.data())
def test_mutated_real_spans_never_raise(span: SpanData, data: st.DataObject) -> None:
    """Values cut, swapped, dropped or replaced; keys renumbered."""
    held = dict(span.attributes)
    for key in data.draw(st.lists(st.sampled_from(sorted(held)), max_size=4, unique=True)):
        change = data.draw(st.sampled_from(["drop", "cut", "replace", "swap", "renumber"]))
        if change == "drop":
            del held[key]
        elif change == "cut" and isinstance(held[key], str):
            held[key] = held[key][: data.draw(st.integers(0, len(held[key])))]
        elif change == "replace":
            held[key] = data.draw(values)
        elif change == "swap":
            other = data.draw(st.sampled_from(sorted(held)))
            held[key], held[other] = held[other], held[key]
        elif change == "renumber":
            held[key.replace(".0.", f".{data.draw(indices)}.")] = held[key]
    call = read(span_with(held, events=span.events))
    if call is not None:
        check_sample(sample_of(call))


@st.composite
def groups(draw: st.DrawFn) -> list[Call]:
    """Calls of one trace, with whatever times and parents."""
    calls = []
    count = draw(st.integers(1, 7))
    for number in range(1, count + 1):
        kind = draw(st.sampled_from(["LLM", "LLM", "CHAIN", "AGENT", "TOOL", "RETRIEVER", "RERANKER", "EVALUATOR"]))
        held: dict[str, Any] = {semconv.OI_KIND: kind}
        if draw(st.booleans()):
            held |= {semconv.OI_INPUT: f"in {number}", semconv.OI_OUTPUT: f"out {number}"}
        if draw(st.booleans()):
            held[semconv.RETRIEVAL_DOCUMENTS] = draw(
                st.sampled_from(["[]", f'["doc {number}"]', f'[{{"id": "{number}"}}]'])
            )
        if draw(st.booleans()):
            held |= {
                semconv.INPUT_TOKENS: number,
                semconv.CONTEXT: f'{{"k": {number}}}',
                semconv.SESSION_ID: f"s{number}",
            }
        start = draw(st.integers(0, 6))
        call = extract(
            span_with(
                held,
                span_id=draw(st.integers(1, count)) if draw(st.booleans()) else number,
                parent_span_id=draw(st.one_of(st.none(), st.integers(0, count + 1))),
                start_ns=start,
                end_ns=draw(st.integers(0, 8)),
                name=f"n{number}",
                status=draw(st.sampled_from(["ok", "unset", "error"])),
            )
        )
        assert call is not None
        calls.append(call)
    return calls


@slow_ok
@given(groups(), st.data())
def test_the_order_of_arrival_changes_nothing(calls: list[Call], data: st.DataObject) -> None:
    """Promise 6: same calls, same Sample, same carrier; duplicated ids and rings of parents included."""
    tops = data.draw(st.lists(st.sampled_from(calls), min_size=1, max_size=3))
    expected = root_sample(tops, calls)
    shuffled_tops, shuffled = data.draw(st.permutations(tops)), data.draw(st.permutations(calls))
    assert root_sample(shuffled_tops, shuffled) == expected
    one = calls[0]
    assert sample_of(one, shuffled) == sample_of(one, calls)
    if expected is not None:
        check_sample(expected[1])
        assert not expected[0].evaluator


@slow_ok
@given(st.one_of(anything, st.lists(parts, max_size=5), st.lists(st.tuples(anything, st.floats()), max_size=3)))
def test_documents_of_anything(value: Any) -> None:
    """None, or bounded dicts with text."""
    found = read_documents(value)
    if found is not None:
        assert len(found) <= MAX_DOCUMENTS
        for document in found:
            assert isinstance(document["content"], str)
            assert set(document) <= {"id", "content", "score", "metadata"}
        to_json(found, inf_nan_mode="constants").decode()
    if value is None:
        assert found is None


def test_a_very_large_span_gives_a_bounded_sample() -> None:
    """20 MB of messages, and 100,000 flattened keys."""
    big = json.dumps([{"role": "user", "parts": [{"type": "text", "content": "x" * 4_000_000}]}] * 5)
    call = read(span_with({semconv.OPERATION_NAME: "chat", semconv.INPUT_MESSAGES: big, semconv.OUTPUT_MESSAGES: big}))
    assert call is not None
    assert call.reading.truncated
    assert chars(sample_of(call).context) + chars(call.reading.input) + chars(call.reading.output) < 5 * MAX_CHARS
    many = {f"llm.input_messages.{n}.message.content": "x" for n in range(100_000)}
    call = read(span_with({semconv.OI_KIND: "LLM", **many}))
    assert call is not None
    assert len(call.reading.messages) == MAX_MESSAGES


def test_deep_values_do_not_exhaust_the_stack() -> None:
    """Structured attributes, thoughts within thoughts, lists within lists."""
    deep: Any = "x"
    for _ in range(5_000):
        deep = [deep]
    thought: Any = "x"
    for _ in range(900):
        thought = {"type": "reasoning", "content": [thought]}
    for key in (semconv.INPUT_MESSAGES, semconv.OI_INPUT, semconv.RETRIEVAL_DOCUMENTS, semconv.TOOL_ARGUMENTS, "input"):
        for value in (deep, [{"role": "user", "parts": [thought]}], {"a": deep}):
            call = read(span_with({semconv.OI_KIND: "LLM", key: value}))
            assert call is not None
            check_sample(sample_of(call))
