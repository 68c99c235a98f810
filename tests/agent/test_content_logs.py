"""What text of log records leaves the agent."""

from typing import Any

import pytest
from google.protobuf.json_format import MessageToDict, ParseDict
from opentelemetry.proto.logs.v1.logs_pb2 import ScopeLogs

from spangrade import semconv as s
from spangrade.delivery.content import FAILED, ContentPolicy
from spangrade_agent.content import apply_to_logs

SECRET = "4111111111111111"


def text(value: str) -> dict[str, Any]:
    return {"stringValue": value}


def record(name: str = "", body: Any = None, **attributes: str) -> dict[str, Any]:
    pairs = [{"key": key, "value": text(value)} for key, value in attributes.items()]
    given: dict[str, Any] = {"attributes": pairs} if pairs else {}
    return given | ({"eventName": name} if name else {}) | ({"body": body} if body is not None else {})


def fields(**said: str) -> dict[str, Any]:
    return {"kvlistValue": {"values": [{"key": key, "value": text(value)} for key, value in said.items()]}}


RECORDS = [
    record("gen_ai.user.message", fields(content=SECRET), **{"gen_ai.system": "openai"}),
    record("", text(f'{{"content": "{SECRET}"}}'), **{"event.name": "gen_ai.choice"}),
    record(
        "gen_ai.client.inference.operation.details",
        **{s.INPUT_MESSAGES: f'[{{"content": "{SECRET}"}}]', s.REQUEST_MODEL: "m"},
    ),
    record("gen_ai.new.thing", fields(words=SECRET), **{"gen_ai.system": "openai"}),
    record("", text(f"user {SECRET} came"), plain=SECRET),
    record(s.EVALUATION_EVENT, text(f"evaluation: {SECRET}"), **{s.SCORE_ID: SECRET, s.EXPLANATION: f"as {SECRET}"}),
]


def left(policy: ContentPolicy) -> list[dict[str, Any]]:
    logs = ParseDict({"logRecords": RECORDS}, ScopeLogs())
    apply_to_logs(policy, logs)
    return list(MessageToDict(logs).get("logRecords", []))


def test_the_default_policy_touches_nothing() -> None:
    assert left(ContentPolicy()) == RECORDS


def test_redaction_reaches_bodies_and_attributes_and_no_id_of_a_score() -> None:
    found = left(ContentPolicy(lambda value: value.replace(SECRET, "[card]")))
    assert [str(one).count(SECRET) for one in found] == [0, 0, 0, 0, 0, 1]
    assert found[0]["body"] == fields(content="[card]")
    assert found[4] == record("", text("user [card] came"), plain="[card]")
    assert {"key": s.SCORE_ID, "value": text(SECRET)} in found[5]["attributes"]


def test_without_content_messages_do_not_leave_and_an_application_s_own_lines_do() -> None:
    found = left(ContentPolicy(export_content=False))
    assert found == [
        record("gen_ai.client.inference.operation.details", **{s.REQUEST_MODEL: "m"}),
        record("gen_ai.new.thing", **{"gen_ai.system": "openai"}),
        RECORDS[4],
        RECORDS[5],
    ]


def test_a_hook_that_raises_withholds_the_text(swallowed_faults: list[Any]) -> None:
    def broken(_: str) -> str:
        raise RuntimeError("the application's")

    found = left(ContentPolicy(broken))
    assert found[4] == record("", text(FAILED), plain=FAILED)
    assert len(found) == len(RECORDS)
    assert swallowed_faults
    swallowed_faults.clear()


@pytest.mark.parametrize(
    "body", [{"bytesValue": "NDExMQ=="}, {"arrayValue": {"values": [text(SECRET)]}}, {"intValue": "3"}]
)
def test_bodies_of_every_kind_are_read(body: dict[str, Any]) -> None:
    logs = ParseDict({"logRecords": [record("", body)]}, ScopeLogs())
    apply_to_logs(ContentPolicy(lambda value: value.replace("4111", "[card]")), logs)
    assert "4111" not in str(MessageToDict(logs))
