"""Anthropic's messages against a real server, and the recorded replies of the real one."""

import gzip
import json
from pathlib import Path
from typing import Any

import pytest
import yaml

import spangrade as sg
from spangrade.errors import JudgeError
from spangrade.judges.providers.anthropic import AnthropicMessages

from .conftest import FakeTime, JudgeServer, Reply, message
from .test_judge_http import KEY, refuse, request

CASSETTES = Path(__file__).parents[4] / "shared" / "data" / "cassettes" / "anthropic"
VERDICT = {"reasoning": "It answers.", "score": 4}


@pytest.fixture
def client(server: JudgeServer, fake_time: FakeTime) -> Any:
    made = AnthropicMessages(server.base_url, KEY, retry=fake_time.policy())
    yield made
    made.close()


def called(given: Any = VERDICT, name: str = "verdict") -> dict[str, Any]:
    return {"type": "tool_use", "id": "toolu_1", "name": name, "input": given}


def test_the_system_message_stands_apart_and_the_key_is_in_its_own_header(
    server: JudgeServer, client: AnthropicMessages
) -> None:
    server.script = [message(json.dumps(VERDICT), cache_read_input_tokens=7)]
    reply = client.complete(request())
    (got,) = server.requests
    assert got.path == "/v1/messages"
    assert (got.headers["x-api-key"], got.headers["anthropic-version"]) == (KEY, "2023-06-01")
    assert "authorization" not in got.headers
    assert got.body["system"] == "SYSTEM TEXT"
    assert got.body["messages"] == [{"role": "user", "content": "USER TEXT"}]
    assert (got.body["model"], got.body["max_tokens"], got.body["temperature"]) == ("m-1", 1024, 0.0)
    assert list(got.body["output_config"]["format"]["schema"]["properties"]) == ["reasoning", "score"]
    assert (json.loads(reply.text), reply.model, reply.finish_reason) == (VERDICT, "claude-test-1", "end_turn")
    assert (reply.input_tokens, reply.output_tokens) == (17, 5)


@pytest.mark.parametrize(
    ("suffix", "path"), [("", "/v1/messages"), ("/v1/", "/v1/messages"), ("/x/v1/messages", "/x/v1/messages")]
)
def test_the_base_url_may_end_as_people_write_it(server: JudgeServer, suffix: str, path: str) -> None:
    server.script = [message("{}")]
    client = AnthropicMessages(server.base_url.removesuffix("/v1") + suffix)
    client.complete(request())
    client.close()
    assert server.requests[0].path == path
    assert "//" not in str(client._connection._url).removeprefix("http://")


def test_a_model_without_schemas_is_made_to_call_a_tool_and_one_that_cannot_be_is_asked_in_words(
    server: JudgeServer, client: AnthropicMessages
) -> None:
    old = refuse(type="invalid_request_error", message="output_config: Extra inputs are not permitted")
    server.script = [old, message("let me see", called(), stop_reason="tool_use")]
    reply = client.complete(request())
    assert json.loads(reply.text) == VERDICT
    sent = server.requests[-1].body
    assert sent["tool_choice"] == {"type": "tool", "name": "verdict"}
    assert sent["tools"][0]["input_schema"]["required"] == ["reasoning", "score"]
    server.script = [refuse(message="tool_choice cannot force a tool with this model"), message("4")]
    server.requests.clear()
    assert client.complete(request()).text == "4"
    client.complete(request())
    assert ["tools" in r.body for r in server.requests] == [True, False, False]


def test_a_model_that_does_not_call_the_tool_is_asked_in_words_from_then_on(
    server: JudgeServer, client: AnthropicMessages
) -> None:
    server.script = [refuse(message="no output_config"), message("Score: 4"), message("Score: 4")]
    assert client.complete(request()).text == "Score: 4"
    client.complete(request())
    assert ["tools" in r.body for r in server.requests] == [False, True, False]


def test_a_refused_temperature_is_dropped_and_max_tokens_is_never_renamed(
    server: JudgeServer, client: AnthropicMessages
) -> None:
    server.script = [refuse(message="temperature is not supported"), message("{}")]
    client.complete(request())
    assert "temperature" not in server.requests[-1].body
    server.script = [refuse(message="max_tokens: 1024 > 512, which is the maximum")]
    with pytest.raises(JudgeError, match="answered 400"):
        client.complete(request())
    assert "max_tokens" in server.requests[-1].body


@pytest.mark.parametrize(
    ("reply", "kind"),
    [
        (message("I can't grade this.", stop_reason="refusal"), "refused"),
        (message(stop_reason="refusal"), "refused"),
        (message('{"reasoning": "it', stop_reason="max_tokens"), "truncated"),
        (message(stop_reason="end_turn"), "empty"),
        (message({"type": "thinking", "thinking": '{"score": 5}', "signature": "x"}), "empty"),
        (message(json.dumps({"reasoning": "r", "score": 9})), "out_of_range"),
        (Reply(200, {"type": "error", "error": {"type": "api_error", "message": "oops"}}), "http_status"),
        (Reply(200, {"hello": 1}), "unparseable"),
        (
            Reply(401, {"type": "error", "error": {"type": "authentication_error", "message": f"bad {KEY}"}}),
            "http_status",
        ),
    ],
)
def test_a_failure_is_never_a_number(server: JudgeServer, client: AnthropicMessages, reply: Reply, kind: str) -> None:
    server.script = [reply]
    judge = sg.LlmJudge("helpful", "It helps.", model="claude-x").with_client(client)
    with pytest.raises(JudgeError) as caught:
        judge.evaluate(sg.Sample(input="q", output="a"))
    assert caught.value.kind == kind
    assert KEY not in str(caught.value)


def test_two_calls_of_the_tool_are_two_verdicts(server: JudgeServer, client: AnthropicMessages) -> None:
    server.script = [refuse(message="no output_config"), message(called(), called({"reasoning": "", "score": 1}))]
    with pytest.raises(JudgeError) as caught:
        client.complete(request())
    assert caught.value.kind == "several_verdicts"


def test_an_overloaded_server_is_tried_again(
    server: JudgeServer, client: AnthropicMessages, fake_time: FakeTime
) -> None:
    server.script = [Reply(529, {"error": {"type": "overloaded_error", "message": "Overloaded"}}), message("{}")]
    client.complete(request())
    assert len(fake_time.slept) == 1


def test_unknown_usage_is_absent_and_never_zero(server: JudgeServer, client: AnthropicMessages) -> None:
    server.script = [Reply(200, {"content": [{"type": "text", "text": "{}"}]})]
    reply = client.complete(request())
    assert (reply.input_tokens, reply.output_tokens, reply.model) == (None, None, None)


def _recorded() -> list[Any]:
    found = []
    for file in sorted(CASSETTES.glob("*.yaml")):
        for exchange in yaml.safe_load(file.read_text())["interactions"]:
            data = exchange["response"]["body"].get("string") or b""
            data = data.encode() if isinstance(data, str) else data
            data = gzip.decompress(data) if data[:2] == b"\x1f\x8b" else data
            if exchange["request"]["uri"].partition("?")[0].endswith("/messages") and data[:1] == b"{":
                found.append(pytest.param(data, exchange["response"]["status"]["code"], id=file.stem))
    return found


@pytest.mark.skipif(not CASSETTES.is_dir(), reason="needs ../shared/data/cassettes beside the repository")
def test_the_recorded_replies_of_the_real_server_are_read(server: JudgeServer, client: AnthropicMessages) -> None:
    read = 0
    for case in _recorded():
        data, status = case.values
        body = json.loads(data)
        server.script = [Reply(status, data)]
        server.requests.clear()
        if status != 200:
            with pytest.raises(JudgeError, match=str(status)):
                client.complete(request())
            continue
        reply = client.complete(request(schema=None))
        assert reply.text == "".join(part["text"] for part in body["content"] if part["type"] == "text"), case.id
        assert (reply.model, reply.output_tokens) == (body["model"], body["usage"]["output_tokens"])
        assert reply.input_tokens is not None
        assert reply.input_tokens >= body["usage"]["input_tokens"]
        read += 1
    assert read >= 15
