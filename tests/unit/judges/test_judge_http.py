"""The OpenAI-compatible client against a real server: what it sends, learns, waits for, and says when it fails."""

import logging
import re
import subprocess
import sys
import threading
from collections.abc import Callable
from email.utils import formatdate
from typing import Any

import httpx
import pytest
from opentelemetry.instrumentation.httpx import HTTPXClientInstrumentor
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from spangrade._suppress import evaluator_scope
from spangrade.errors import JudgeError
from spangrade.judges.providers import JudgeClient, JudgeRequest, Message, client_from_environment
from spangrade.judges.providers.openai_compatible import OpenAICompatible
from spangrade.judges.providers.retry import RetryPolicy, asked_wait
from spangrade.judges.scale import SCALES

from .conftest import FakeTime, JudgeServer, Reply, completion, graded

KEY = "sk-very-secret-key-0001"


def request(**changes: Any) -> JudgeRequest:
    messages = (Message("system", "SYSTEM TEXT"), Message("user", "USER TEXT"))
    return JudgeRequest(
        **{"model": "m-1", "messages": messages, "schema": SCALES["1-5"].schema, "temperature": 0.0, **changes}
    )


def refuse(**error: Any) -> Reply:
    return Reply(400, {"error": error})


# --- what is sent -------------------------------------------------------------------------------------------------


def test_a_call_sends_the_messages_the_key_and_a_strict_schema(server: JudgeServer, client: OpenAICompatible) -> None:
    reply = client.complete(request())
    (got,) = server.requests
    assert got.path == "/v1/chat/completions"
    assert got.headers["authorization"] == f"Bearer {KEY}"
    assert [m["role"] for m in got.body["messages"]] == ["system", "user"]
    assert (got.body["model"], got.body["temperature"], got.body["max_tokens"]) == ("m-1", 0.0, 1024)
    schema = got.body["response_format"]["json_schema"]
    assert schema["strict"] is True
    assert list(schema["schema"]["properties"]) == ["reasoning", "score"]
    assert schema["schema"]["properties"]["score"]["enum"] == [1, 2, 3, 4, 5]
    assert (reply.model, reply.finish_reason, reply.input_tokens, reply.output_tokens) == (
        "judge-test-1",
        "stop",
        10,
        5,
    )


def test_each_call_carries_a_fresh_unsampled_traceparent(server: JudgeServer, client: OpenAICompatible) -> None:
    for _ in range(3):
        client.complete(request())
    sent = [got.headers["traceparent"] for got in server.requests]
    assert all(re.fullmatch(r"00-[0-9a-f]{32}-[0-9a-f]{16}-00", value) for value in sent)
    assert len(set(sent)) == 3


def test_an_instrumented_http_client_neither_traces_a_judge_call_nor_samples_it(
    server: JudgeServer, client: OpenAICompatible
) -> None:
    exporter = InMemorySpanExporter()
    provider = TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    HTTPXClientInstrumentor().instrument(tracer_provider=provider)
    try:
        with provider.get_tracer("app").start_as_current_span("app"), evaluator_scope():
            client.complete(request())
    finally:
        HTTPXClientInstrumentor().uninstrument()
    assert [span.name for span in exporter.get_finished_spans()] == ["app"]
    assert server.requests[0].headers["traceparent"].endswith("-00")
    provider.shutdown()


def test_no_key_sends_no_authorization(server: JudgeServer) -> None:
    client = OpenAICompatible(server.base_url)
    client.complete(request())
    client.close()
    assert "authorization" not in server.requests[0].headers


@pytest.mark.parametrize(
    ("suffix", "path"),
    [
        ("/", "/v1/chat/completions"),
        ("/chat/completions", "/v1/chat/completions"),
        ("?a=b", "/v1/chat/completions?a=b"),
    ],
)
def test_the_base_url_may_end_as_people_write_it(server: JudgeServer, suffix: str, path: str) -> None:
    client = OpenAICompatible(server.base_url + suffix)
    client.complete(request())
    client.close()
    assert server.requests[0].path == path


def test_many_threads_share_one_client(server: JudgeServer, client: OpenAICompatible) -> None:
    texts: list[str] = []
    threads = [threading.Thread(target=lambda: texts.append(client.complete(request()).text)) for _ in range(20)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(texts) == len(server.requests) == 20


FORK = """
import os, sys
from spangrade.judges.providers import JudgeRequest, Message
from spangrade.judges.providers.openai_compatible import OpenAICompatible
client = OpenAICompatible(sys.argv[1])
request = JudgeRequest("m", (Message("user", "x"),))
client.complete(request)
pid = os.fork()
if pid == 0:
    client.complete(request)
    os._exit(0)
assert os.waitpid(pid, 0)[1] == 0
client.complete(request)
"""


@pytest.mark.skipif(not hasattr(__import__("os"), "fork"), reason="no fork on this platform")
def test_a_forked_child_has_connections_of_its_own_and_the_parent_keeps_its_own(server: JudgeServer) -> None:
    subprocess.run([sys.executable, "-c", FORK, server.base_url], check=True, timeout=60)
    parent, child, parent_again = [got.peer for got in server.requests]
    assert parent == parent_again != child


# --- what is learned (case C079) ----------------------------------------------------------------------------------


def test_max_tokens_is_renamed_once_and_remembered(server: JudgeServer, client: OpenAICompatible) -> None:
    server.script = [
        refuse(param="max_tokens", message="send max_completion_tokens", code="unsupported_parameter"),
        graded(),
    ]
    client.complete(request())
    client.complete(request())
    assert [("max_tokens" in r.body, "max_completion_tokens" in r.body) for r in server.requests] == [
        (True, False),
        (False, True),
        (False, True),
    ]


def test_temperature_is_dropped_once_and_remembered(server: JudgeServer, client: OpenAICompatible) -> None:
    server.script = [refuse(param="temperature", message="takes no temperature but its default of 1"), graded()]
    client.complete(request())
    client.complete(request())
    assert ["temperature" in r.body for r in server.requests] == [True, False, False]


def test_the_replys_form_steps_down_from_schema_to_tool_to_json_to_text(
    server: JudgeServer, client: OpenAICompatible
) -> None:
    no_format, no_tools = refuse(message="response_format is not supported"), refuse(message="no tools here")
    server.script = [no_format, no_tools, no_format, graded()]
    client.complete(request())
    client.complete(request())
    forms = [
        r.body.get("response_format", {}).get("type") or r.body.get("tool_choice", {}).get("type")
        for r in server.requests
    ]
    assert forms == ["json_schema", "function", "json_object", None, None]


def test_what_one_model_refuses_is_not_held_against_another(server: JudgeServer, client: OpenAICompatible) -> None:
    server.script = [refuse(param="temperature"), graded()]
    client.complete(request())
    client.complete(request(model="m-2"))
    assert "temperature" in server.requests[-1].body


def test_a_refusal_is_read_from_the_message_when_it_names_no_parameter(
    server: JudgeServer, client: OpenAICompatible
) -> None:
    server.script = [Reply(400, {"error": "Unsupported value: 'temperature'"}), graded()]
    client.complete(request())
    assert "temperature" not in server.requests[-1].body


@pytest.mark.parametrize("param", ["max_tokens", "temperature", "response_format"])
def test_an_endless_400_ends(server: JudgeServer, client: OpenAICompatible, param: str) -> None:
    server.script = [refuse(param=param)]
    with pytest.raises(JudgeError, match="answered 400") as caught:
        client.complete(request())
    assert caught.value.kind == "http_status"
    assert len(server.requests) == 2


def test_a_context_that_is_too_long_is_no_refused_parameter(server: JudgeServer, client: OpenAICompatible) -> None:
    text = "maximum context length is 8192 tokens, you asked for 9000 (1024 in max_tokens)"
    server.script = [refuse(code="context_length_exceeded", message=text)]
    with pytest.raises(JudgeError, match="maximum context length"):
        client.complete(request())
    assert len(server.requests) == 1


# --- retries (case C078) ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("status", [429, 500, 502, 503, 504, 529])
def test_a_passing_fault_is_tried_again(
    server: JudgeServer, client: OpenAICompatible, fake_time: FakeTime, status: int
) -> None:
    server.script = [Reply(status, "<html>bad gateway</html>"), Reply(status, "busy"), graded()]
    assert client.complete(request()).text
    first, second = fake_time.slept
    assert 0.25 <= first <= 0.75
    assert 0.5 <= second <= 1.5


@pytest.mark.parametrize(
    ("reply", "billed"),
    [
        (Reply(502, {"error": {}}), 1),
        (Reply(504, {"error": {}}), 1),
        (Reply(drop=True), 1),
        (Reply(429, {"error": {}}), 0),
        (Reply(503, {"error": {}}), 0),
    ],
    ids=["502", "504", "dropped", "429", "503"],
)
def test_tries_that_may_have_been_billed_are_told_and_asked_about(
    server: JudgeServer, client: OpenAICompatible, reply: Reply, billed: int
) -> None:
    asked: list[bool] = []

    def again() -> bool:
        asked.append(True)
        return True

    server.script = [reply, graded()]
    assert client.complete(request(again=again)).unanswered == billed
    assert len(asked) == billed
    server.requests.clear()
    server.script = [reply]
    with pytest.raises(JudgeError) as stays:
        client.complete(request(again=again))
    assert stays.value.unanswered == 3 * billed
    assert len(server.requests) == 3
    server.requests.clear()
    with pytest.raises(JudgeError) as refused:
        client.complete(request(again=lambda: False))
    assert refused.value.unanswered == billed
    assert len(server.requests) == (1 if billed else 3)


def test_a_time_out_and_a_reply_that_is_none_may_have_been_billed_and_what_was_not_sent_was_not(
    server: JudgeServer, client: OpenAICompatible, fake_time: FakeTime
) -> None:
    server.script = [Reply(hang=True), Reply(200, {"choices": []}), Reply(401, {"error": {}})]
    tried = []
    for options in ({"timeout": 0.05}, {}, {}, {}):  # the last meets an open circuit
        with pytest.raises(JudgeError) as caught:
            client.complete(request(**options))
        tried.append((caught.value.kind, caught.value.unanswered))
    assert tried == [("timeout", 1), ("empty", 1), ("http_status", 0), ("circuit_open", 0)]
    nobody = OpenAICompatible("http://127.0.0.1:9/v1", retry=fake_time.policy())
    with pytest.raises(JudgeError) as unsent:
        nobody.complete(request())
    assert (unsent.value.kind, unsent.value.unanswered) == ("connection", 0)


def test_at_most_two_retries(server: JudgeServer, client: OpenAICompatible) -> None:
    server.script = [Reply(503, "down")]
    with pytest.raises(JudgeError, match="answered 503: down") as caught:
        client.complete(request())
    assert caught.value.kind == "http_status"
    assert len(server.requests) == 3


@pytest.mark.parametrize(
    ("headers", "waited"),
    [
        ({"Retry-After": "2"}, 2.0),
        ({"retry-after-ms": "300", "Retry-After": "2"}, 0.3),
        ({"Retry-After": formatdate(1_000_007, usegmt=True)}, 7.0),
        ({"Retry-After": formatdate(999_000, usegmt=True)}, 0.0),
    ],
)
def test_the_server_is_waited_for_as_it_asks(
    server: JudgeServer, client: OpenAICompatible, fake_time: FakeTime, headers: dict[str, str], waited: float
) -> None:
    server.script = [Reply(429, {"error": {}}, headers), graded()]
    client.complete(request())
    assert fake_time.slept == [pytest.approx(waited)]


@pytest.mark.parametrize("asked", ["Wed, 21 Oct 2099 07:28:00 GMT", "3600", "21"])
def test_a_wait_beyond_the_cap_fails_at_once(
    server: JudgeServer, client: OpenAICompatible, fake_time: FakeTime, asked: str
) -> None:
    server.script = [Reply(429, {"error": {"message": "slow down"}}, {"Retry-After": asked}), graded()]
    with pytest.raises(JudgeError, match="answered 429: slow down"):
        client.complete(request())
    assert fake_time.slept == []


def test_no_wait_goes_beyond_the_judges_time(
    server: JudgeServer, client: OpenAICompatible, fake_time: FakeTime
) -> None:
    server.script = [Reply(429, {"error": {}}, {"Retry-After": "2"}), graded()]
    with pytest.raises(JudgeError, match="answered 429"):
        client.complete(request(timeout=1.5))
    assert fake_time.slept == []


@pytest.mark.parametrize("text", ["soon", "", "nan", "-5", "inf", "Wed, 99 Foo"])
def test_a_retry_after_that_cannot_be_read_is_ignored(text: str) -> None:
    assert asked_wait({"retry-after": text}, 0.0) is None


@pytest.mark.parametrize(
    "reply",
    [
        Reply(429, {"error": {"code": "insufficient_quota", "message": "You exceeded your quota"}}),
        Reply(401, {"error": {"message": "no"}}),
        Reply(404, {"error": {"message": "no such model"}}),
        Reply(400, {"error": {"message": "bad"}}),
    ],
)
def test_a_fault_that_stays_is_not_tried_again(server: JudgeServer, client: OpenAICompatible, reply: Reply) -> None:
    server.script = [reply]
    with pytest.raises(JudgeError) as caught:
        client.complete(request())
    assert caught.value.kind == "http_status"
    assert str(reply.status) in str(caught.value)
    assert len(server.requests) == 1


# --- faults on the way --------------------------------------------------------------------------------------------


def test_a_dropped_connection_is_tried_again(server: JudgeServer, client: OpenAICompatible) -> None:
    server.script = [Reply(drop=True), graded()]
    assert client.complete(request()).text


def test_nobody_there_is_a_connection_error(fake_time: FakeTime) -> None:
    client = OpenAICompatible("http://127.0.0.1:9/v1", KEY, retry=fake_time.policy())
    with pytest.raises(JudgeError, match=r"no connection to http://127\.0\.0\.1:9") as caught:
        client.complete(request())
    client.close()
    assert caught.value.kind == "connection"
    assert len(fake_time.slept) == 2


def test_a_server_that_hangs_is_a_timeout_within_the_limit(server: JudgeServer) -> None:
    server.script = [Reply(hang=True)]
    client = OpenAICompatible(server.base_url, KEY)
    with pytest.raises(JudgeError) as caught:
        client.complete(request(timeout=1.0))
    client.close()
    assert caught.value.kind == "timeout"
    assert len(server.requests) == 1


def test_no_time_left_sends_nothing(server: JudgeServer, client: OpenAICompatible) -> None:
    with pytest.raises(JudgeError) as caught:
        client.complete(request(timeout=0))
    assert caught.value.kind == "timeout"
    assert server.requests == []


@pytest.mark.parametrize(
    ("reply", "kind"),
    [
        (Reply(200, "<html>login</html>"), "unparseable"),
        (Reply(200, "[" * 100_000), "unparseable"),
        (Reply(200, "[]"), "unparseable"),
        (Reply(200, {"id": "x", "choices": []}), "empty"),
        (Reply(200, {"error": {"message": "upstream down"}}), "http_status"),
        (Reply(200, {"choices": [{"message": {"content": "4"}}] * 2}), "several_verdicts"),
        (Reply(200, b" " * (4 * 1024 * 1024 + 1)), "unparseable"),
        (Reply(400, {"error": {"code": "content_filter", "message": "filtered"}}), "content_filter"),
        (
            Reply(400, {"error": {"code": "x", "innererror": {"code": "ResponsibleAIPolicyViolation"}}}),
            "content_filter",
        ),
    ],
)
def test_a_reply_that_is_no_completion_is_an_error_with_its_kind(
    server: JudgeServer, client: OpenAICompatible, reply: Reply, kind: str
) -> None:
    server.script = [reply]
    with pytest.raises(JudgeError) as caught:
        client.complete(request())
    assert caught.value.kind == kind
    assert len(server.requests) == 1


@pytest.mark.parametrize(
    ("reply", "text"),
    [
        (completion([{"type": "thinking", "text": "5"}, {"type": "text", "text": "4"}]), "4"),
        (completion(None), ""),
        (completion({"odd": 1}), ""),
        (Reply(200, {"choices": ["odd"], "usage": "odd", "model": 7}), ""),
    ],
)
def test_odd_completions_are_read_without_a_fault(
    server: JudgeServer, client: OpenAICompatible, reply: Reply, text: str
) -> None:
    server.script = [reply]
    assert client.complete(request()).text == text


def test_unknown_usage_is_absent_and_never_zero(server: JudgeServer, client: OpenAICompatible) -> None:
    body = {"choices": [{"message": {"content": "4"}}], "usage": {"prompt_tokens": None, "completion_tokens": "5"}}
    server.script = [Reply(200, body)]
    reply = client.complete(request())
    assert (reply.input_tokens, reply.output_tokens) == (None, None)


# --- secrets stay (promise 10) ------------------------------------------------------------------------------------


def _chain(fault: BaseException) -> list[BaseException]:
    found: list[BaseException] = []
    left: list[BaseException | None] = [fault]
    while left:
        one = left.pop()
        if one is not None and one not in found:
            found.append(one)
            left += [one.__cause__, one.__context__]
    return found


def test_the_key_is_in_no_error_log_or_repr(
    server: JudgeServer, fake_time: FakeTime, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    client = OpenAICompatible(server.base_url, KEY, retry=fake_time.policy())
    leak = f"bad key {KEY}, also seen as sk-abc123 and Bearer {KEY}, {'x' * 5000}"
    for reply in (Reply(401, {"error": {"message": leak}}), Reply(500, leak), Reply(drop=True), Reply(200, leak)):
        server.script = [reply]
        with pytest.raises(JudgeError) as caught:
            client.complete(request())
        for fault in _chain(caught.value):
            assert KEY not in f"{fault}{fault!r}{vars(fault)}"
            assert "sk-abc123" not in str(fault)
            assert len(str(fault)) < 500
            assert not hasattr(fault, "request")
    client.close()
    assert KEY not in repr(client)
    assert KEY not in caplog.text
    assert "USER TEXT" not in caplog.text
    assert "SYSTEM TEXT" not in caplog.text


def test_the_messages_are_in_no_repr() -> None:
    assert "TEXT" not in repr(request())


@pytest.mark.parametrize("key", ["sk-line\nbreak-secret", "sk-sm\u00f6rg-secret", "sk two-secret"])
def test_a_key_that_no_header_takes_is_refused_without_showing_it(key: str) -> None:
    with pytest.raises(JudgeError) as caught:
        OpenAICompatible("http://127.0.0.1:9/v1", key)
    assert caught.value.kind == "configuration"
    assert "secret" not in "".join(f"{fault}{fault!r}" for fault in _chain(caught.value))


@pytest.mark.parametrize("url", ["", "localhost:8000/v1", "ftp://host/v1", "http://", "http://[::1", "sk-oops"])
def test_a_base_url_that_is_none_is_refused_and_not_shown(url: str) -> None:
    with pytest.raises(JudgeError, match="SPANGRADE_JUDGE_BASE_URL") as caught:
        OpenAICompatible(url)
    assert caught.value.kind == "configuration"


def test_a_password_in_the_base_url_is_not_shown(fake_time: FakeTime) -> None:
    client = OpenAICompatible("http://user:secret@127.0.0.1:9/v1?token=secret", retry=fake_time.policy())
    with pytest.raises(JudgeError) as caught:
        client.complete(request())
    client.close()
    assert "secret" not in f"{caught.value}{client!r}"


# --- the environment ----------------------------------------------------------------------------------------------


def sent_key(server: JudgeServer) -> str | None:
    client, _ = client_from_environment()
    assert isinstance(client, JudgeClient)
    client.complete(request())
    assert isinstance(client, OpenAICompatible)
    client.close()
    return server.requests[-1].headers.get("authorization")


def test_the_environment_names_endpoint_and_key(server: JudgeServer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_BASE_URL", "http://127.0.0.1:9/v1")
    monkeypatch.setenv("OPENAI_API_KEY", "sk-theirs")
    monkeypatch.setenv("SPANGRADE_JUDGE_BASE_URL", server.base_url)
    monkeypatch.setenv("SPANGRADE_JUDGE_API_KEY", "sk-ours")
    assert sent_key(server) == "Bearer sk-ours"


def test_openais_variables_do_where_ours_are_absent(server: JudgeServer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_BASE_URL", server.base_url)
    monkeypatch.setenv("OPENAI_API_KEY", "sk-theirs")
    assert sent_key(server) == "Bearer sk-theirs"


def test_openais_key_is_not_sent_to_a_host_it_was_not_made_for(
    server: JudgeServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-theirs")
    monkeypatch.setenv("SPANGRADE_JUDGE_BASE_URL", server.base_url)
    assert sent_key(server) is None


def test_neither_key_nor_base_url_is_a_configuration_error_that_says_how() -> None:
    with pytest.raises(JudgeError, match=r"SPANGRADE_JUDGE_API_KEY.*SPANGRADE_JUDGE_BASE_URL") as caught:
        client_from_environment()
    assert caught.value.kind == "configuration"


def test_judges_of_one_endpoint_share_a_client(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SPANGRADE_JUDGE_BASE_URL", "http://127.0.0.1:9/v1")
    assert client_from_environment()[0] is client_from_environment()[0]


@pytest.mark.parametrize(
    "break_it",
    [
        pytest.param(
            ("SSL_CERT_FILE", "/no/such/file"),
            marks=pytest.mark.skipif(httpx.__version__ < "0.28", reason="httpx 0.27 leaves a missing file out"),
        ),
        ("HTTPS_PROXY", "nonsense://user:secret@host"),
    ],
)
def test_a_broken_proxy_or_certificate_setting_is_a_configuration_error(
    break_it: tuple[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(*break_it)
    with pytest.raises(JudgeError, match="HTTPS_PROXY, ALL_PROXY and SSL_CERT_FILE") as caught:
        OpenAICompatible("https://127.0.0.1:9/v1").complete(request())
    assert caught.value.kind == "configuration"
    assert "secret" not in str(caught.value)


def test_the_default_policy_really_waits() -> None:
    policy = RetryPolicy()
    wait: Callable[..., float | None] = policy.wait_before
    assert 0.25 <= (wait(1, {}, 60) or 0) <= 0.75
    assert wait(3, {}, 60) is None
