"""Why a span gives the Sample that it gives."""

from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from spangrade import semconv as s
from spangrade.model.span import SpanData
from spangrade.samples.dialects import DIALECTS
from spangrade.samples.explain import Finding, missing, note_of

SpanOf = Callable[..., SpanData]
LLM = {s.OPERATION_NAME: "chat"}
ASKED = {s.INPUT_MESSAGES: '[{"role": "user", "parts": [{"type": "text", "content": "Hi"}]}]'}


def codes(span: SpanData) -> list[str]:
    return [finding.code for finding in note_of(span).findings]


def test_a_span_that_no_dialect_knows_is_no_call_and_told_how_to_become_one(span_of: SpanOf) -> None:
    note = note_of(span_of({"http.request.method": "GET"}))
    assert (note.kind, note.dialects, note.is_call) == (None, (), False)
    [finding] = note.findings
    assert finding.code == "not_a_call"
    assert "@spangrade.trace" in (finding.fix or "")


def test_a_placeholder_is_no_call_and_needs_no_mending(span_of: SpanOf) -> None:
    [finding] = note_of(span_of({"logfire.span_type": "pending_span", **LLM})).findings
    assert (finding.code, finding.fix) == ("not_a_call", None)


def test_a_whole_call_has_nothing_to_find(span_of: SpanOf) -> None:
    note = note_of(span_of({s.OI_KIND: "CHAIN", s.OI_INPUT: "a", s.OI_OUTPUT: "b"}))
    assert (note.kind, note.dialects, note.findings) == ("chain", ("openinference",), ())


def test_capture_that_is_off_is_said_with_the_setting_of_the_dialect_that_was_found(span_of: SpanOf) -> None:
    [finding] = note_of(span_of({**LLM, s.REQUEST_MODEL: "m"})).findings
    assert finding.code == "content_off"
    assert "OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT" in (finding.fix or "")
    [other] = note_of(span_of({s.OI_KIND: "LLM"})).findings
    assert "OPENINFERENCE_HIDE_INPUTS" in (other.fix or "")


def test_every_dialect_says_how_content_is_captured() -> None:
    for dialect in DIALECTS:
        assert dialect.capture
        assert not dialect.capture.endswith("."), dialect.name


@pytest.mark.parametrize(
    ("attributes", "more", "expected"),
    [
        ({**ASKED, s.OUTPUT_MESSAGES: '[{"role": "assistant", "parts": []}]'}, {}, ["no_output"]),
        (
            {
                **ASKED,
                s.OUTPUT_MESSAGES: '[{"role": "assistant", "parts": [{"type": "tool_call", "name": "f", "arguments": {}}]}]',
            },
            {},
            ["tool_calls_only"],
        ),
        ({**ASKED, s.FINISH_REASONS: ("length",)}, {}, ["out_of_tokens"]),
        ({**ASKED}, {"status": "error"}, ["failed"]),
        ({**ASKED, s.OUTPUT_MESSAGES: '[{"role": "assistant", "parts": [{"type": "text", "con'}, {}, ["truncated"]),
        (
            {**ASKED, s.OUTPUT_MESSAGES: '[{"role": "assistant", "parts": [{"type": "refusal", "content": "No."}]}]'},
            {},
            ["refusal"],
        ),
        ({**ASKED, s.OUTPUT_MESSAGES: '[{"role": "assistant", "parts": [{"type": "text", "content": " "}]}]'}, {},
         ["empty_output"]),
        ({s.OUTPUT_MESSAGES: '[{"role": "assistant", "parts": [{"type": "text", "content": "a"}]}]'}, {}, ["no_input"]),
    ],
)  # fmt: skip
def test_what_an_llm_call_lacks_is_named(
    attributes: dict[str, Any], more: dict[str, Any], expected: list[str], span_of: SpanOf
) -> None:
    assert codes(span_of({**LLM, **attributes}, **more)) == expected


def test_dropped_attributes_are_counted_with_the_limit_to_raise(span_of: SpanOf) -> None:
    note = note_of(span_of({s.OI_KIND: "CHAIN", s.OI_INPUT: "a", s.OI_OUTPUT: "b"}, dropped_attributes=3))
    [finding] = note.findings
    assert "3 attributes" in finding.says
    assert "OTEL_SPAN_ATTRIBUTE_COUNT_LIMIT" in (finding.fix or "")


def test_what_a_retrieval_found_is_told_apart_from_nothing_and_from_ids_alone(span_of: SpanOf) -> None:
    retrieval = {s.OPERATION_NAME: "retrieval", s.RETRIEVAL_QUERY: "q"}
    assert codes(span_of({**retrieval})) == ["no_output", "no_documents"]
    assert codes(span_of({**retrieval, s.RETRIEVAL_DOCUMENTS: "[]"})) == ["found_nothing"]
    assert codes(span_of({**retrieval, s.RETRIEVAL_DOCUMENTS: '[{"id": "a", "score": 0.5}]'})) == [
        "documents_without_text"
    ]
    assert codes(span_of({**retrieval, s.RETRIEVAL_DOCUMENTS: '[{"id": "a", "content": "text"}]'})) == []


def test_an_evaluators_span_is_said_to_be_one(span_of: SpanOf) -> None:
    note = note_of(span_of({s.OI_KIND: "EVALUATOR"}))
    assert (note.evaluator, note.is_call, [f.code for f in note.findings]) == (True, False, ["evaluator"])


def test_a_skip_is_explained_by_what_its_spans_lack() -> None:
    off = Finding("content_off", "no content was captured", "SWITCH=on")
    said = missing(["output", "documents"], [off])
    assert said.says == (
        "it needs output and documents, which the sample has not (no content was captured; nobody searched within this call)"
    )
    assert said.fix is not None
    assert said.fix.startswith("SWITCH=on; ")
    assert "set_retrieval_documents" in said.fix


def test_a_skip_for_a_search_without_results_is_no_call_for_tracing_the_retriever() -> None:
    said = missing(["documents"], [Finding("found_nothing", "searched, and found nothing")], searched=True)
    assert "found nothing" in said.says
    assert said.fix is None


@settings(max_examples=60, deadline=None)
@given(
    st.dictionaries(
        st.sampled_from(sorted({key for dialect in DIALECTS for key in (*dialect.kind_marks, *dialect.content_keys)})),
        st.one_of(
            st.text(max_size=40), st.integers(), st.none(), st.lists(st.text(max_size=5)).map(tuple), st.just("[{")
        ),
        max_size=6,
    )
)
def test_no_span_is_too_odd_to_be_explained(attributes: dict[str, Any]) -> None:
    span = SpanData(1, 2, None, "odd", 1, 2, attributes)
    note = note_of(span)
    assert note.kind is not None or not note.dialects
    assert all(f.says and not f.says.endswith(".") for f in note.findings)
