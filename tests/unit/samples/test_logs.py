"""Log records as events of their span."""

from typing import Any

import pytest

from spangrade.model.span import EventData, SpanData
from spangrade.samples.logs import as_event, holds_content, with_logs


def test_a_record_is_an_event_of_its_event_name_with_the_body_s_fields_over_the_attributes() -> None:
    found = as_event("gen_ai.user.message", {"gen_ai.system": "openai", "content": "no"}, {"content": "Hi"}, 7, 9)
    assert found == EventData("gen_ai.user.message", {"gen_ai.system": "openai", "content": "Hi"}, 7)


def test_without_an_event_name_the_attribute_is_the_name_and_a_text_body_stays_text() -> None:
    attributes = {"event.name": "gen_ai.choice", "gen_ai.system": "semantic_kernel"}
    found = as_event(None, attributes, '{"message": {"content": "Hello"}}', 7)
    assert found == EventData("gen_ai.choice", {**attributes, "body": '{"message": {"content": "Hello"}}'}, 7)
    assert as_event("", attributes) == EventData("gen_ai.choice", attributes, 0)


@pytest.mark.parametrize("attributes", [None, {}, {"event.name": 3}, {"event.name": ""}])
def test_a_line_of_a_log_without_a_name_is_no_event(attributes: dict[str, Any] | None) -> None:
    assert as_event(None, attributes, "started") is None


@pytest.mark.parametrize(("time_ns", "observed_ns", "expected"), [(0, 9, 9), (7, 9, 7), (None, 9, 9), (None, None, 0)])
def test_a_record_without_a_time_has_that_of_its_observation(
    time_ns: int | None, observed_ns: int | None, expected: int
) -> None:
    found = as_event("e", None, None, time_ns, observed_ns)
    assert found is not None
    assert found.time_ns == expected


def test_messages_and_details_hold_content_and_a_score_does_not() -> None:
    held = {"gen_ai.output.messages": "[]"}
    assert holds_content(EventData("gen_ai.choice", {}))
    assert holds_content(EventData("gen_ai.client.inference.operation.details", held))
    assert not holds_content(EventData("gen_ai.evaluation.result", {"gen_ai.evaluation.name": "overlap"}))
    assert not holds_content(EventData("started", {"body": "up"}))


def test_logs_stand_among_the_span_s_events_in_order_of_time_and_those_of_one_time_as_they_came(
    span_of: Any,
) -> None:
    own = EventData("token", {}, 5)
    span: SpanData = span_of({}, events=(own,))
    early, same, same_too = EventData("a", {}, 1), EventData("b", {}, 5), EventData("a", {}, 5)
    assert with_logs(span, [same, same_too, early]).events == (early, own, same, same_too)
    assert with_logs(span, []) is span


def test_what_came_twice_is_there_once_in_its_fuller_form(span_of: Any) -> None:
    bridged = EventData("gen_ai.choice", {"gen_ai.system": "openai"}, 3)
    record = EventData("gen_ai.choice", {"gen_ai.system": "openai", "index": 0, "message": {"content": "Hi"}}, 3)
    other = EventData("gen_ai.choice", {"gen_ai.system": "openai", "index": 1, "message": {"content": "Ho"}}, 3)
    span: SpanData = span_of({}, events=(bridged,))
    assert with_logs(span, [record, other, record]).events == (record, other)
    assert with_logs(with_logs(span, [record]), [record]).events == (record,)
    resent: SpanData = span_of({}, events=(record,))
    assert with_logs(resent, [record, bridged]) is resent
