"""`LlmJudge.register` and `preview(client=)`: what is sent to a registry, and what becomes of its answers."""

import json
import traceback
from collections.abc import Iterator
from datetime import UTC, datetime
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from typing import Any

import pytest
from opentelemetry.instrumentation.httpx import HTTPXClientInstrumentor
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor

from spangrade.errors import ConfigError, JudgeError
from spangrade.judges import EvaluatorPreviewResponse, EvaluatorResponse, LlmJudge
from spangrade.judges.client import RegistryClient
from spangrade.testing import CollectingExporter, ScriptedJudgeClient

TOKEN = "the-token-of-the-page-0001"
CREATED = {
    "id": "ev_1",
    "name": "helpful",
    "version": 2,
    "config_hash": "abc",
    "status": "paused",
    "project_id": "default",
    "created": "2026-11-30T20:00:00.5Z",
    "something": "new",
}
JUDGE = LlmJudge("helpful", "is helpful", model="m-1", live=True, threshold=0.75)


class RegistryServer:
    """Answers each request with ``status`` and ``body``, and keeps what it got."""

    def __init__(self) -> None:
        self.status, self.body, self.headers = 201, json.dumps(CREATED), {}
        self.requests: list[tuple[str, dict[str, str], Any]] = []
        outer = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
                outer.requests.append((self.path, {k.lower(): v for k, v in self.headers.items()}, body))
                data = outer.body.encode()
                self.send_response(outer.status)
                for name, value in {**outer.headers, "Content-Length": str(len(data))}.items():
                    self.send_header(name, value)
                self.end_headers()
                self.wfile.write(data)

            def log_message(self, *_args: Any) -> None:
                pass

        self._http = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self._http.server_address[1]}"
        self._thread = Thread(target=self._http.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True)
        self._thread.start()

    def close(self) -> None:
        self._http.shutdown()
        self._thread.join()
        self._http.server_close()

    def says(self, status: int, detail: str = "", **errors: str) -> None:
        found = [{"field": field, "message": message} for field, message in errors.items()]
        self.status, self.body = status, json.dumps({"title": "x", "status": status, "detail": detail, "errors": found})


@pytest.fixture
def registry(monkeypatch: pytest.MonkeyPatch) -> Iterator[RegistryServer]:
    for name in ("SPANGRADE_AGENT_URL", "SPANGRADE_TOKEN"):
        monkeypatch.delenv(name, raising=False)
    made = RegistryServer()
    yield made
    made.close()


@pytest.fixture
def client(registry: RegistryServer) -> Iterator[RegistryClient]:
    with RegistryClient(registry.url, TOKEN) as made:
        yield made


def test_register_sends_what_identifies_the_judge_and_gives_what_the_registry_has(
    registry: RegistryServer, client: RegistryClient
) -> None:
    found = JUDGE.register(client, project_id="shop")
    created = datetime(2026, 11, 30, 20, 0, 0, 500_000, UTC)
    assert found == EvaluatorResponse("ev_1", "helpful", 2, "abc", "paused", "default", created)
    ((path, headers, body),) = registry.requests
    assert (path, headers["authorization"]) == ("/v1/evaluators", f"Bearer {TOKEN}")
    assert body == {"config": JUDGE.config(), "threshold": 0.75, "live": True, "project_id": "shop"}


def test_register_without_a_client_asks_the_agent_that_the_environment_names(
    registry: RegistryServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SPANGRADE_AGENT_URL", f" {registry.url}/ ")
    monkeypatch.setenv("SPANGRADE_TOKEN", TOKEN)
    monkeypatch.setenv("HTTP_PROXY", "http://127.0.0.1:9")  # nobody stands between this host and itself
    assert JUDGE.register().version == 2
    ((path, headers, body),) = registry.requests
    assert (path, headers["authorization"]) == ("/v1/evaluators", f"Bearer {TOKEN}")
    assert "project_id" not in body


def test_a_policy_can_be_registered_with_the_judge(registry: RegistryServer, client: RegistryClient) -> None:
    client.register(JUDGE, live={"rate": 0.05, "when": "overlap.fail"})
    assert registry.requests[0][2]["live"] == {"rate": 0.05, "when": "overlap.fail"}


def test_preview_with_a_registry_has_the_agent_grade(registry: RegistryServer, client: RegistryClient) -> None:
    answer = {"score": 0.25, "explanation": "Vague.", "prompt": "p", "error": None}
    registry.status, registry.body = 200, json.dumps(answer)
    judge = JUDGE.with_client(ScriptedJudgeClient(JudgeError("connection", "nobody is to be asked here")))
    found = judge.preview(
        output="o",
        input={"q": 1},
        expected_output="e",
        documents=["d"],
        metadata={"k": 1},
        client=client,
        project_id="p",
    )
    assert found == EvaluatorPreviewResponse(0.25, "Vague.", "p", None)
    ((path, _, body),) = registry.requests
    assert path == "/v1/evaluators/preview"
    assert body["project_id"] == "p"
    sample = {"input": {"q": 1}, "output": "o", "expected": "e", "documents": [{"content": "d"}], "metadata": {"k": 1}}
    assert body["sample"] == sample


def test_preview_grades_here_unless_a_registry_is_given(
    registry: RegistryServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SPANGRADE_AGENT_URL", registry.url)
    verdict = '{"reasoning": "fine", "score": 5}'
    assert JUDGE.with_client(ScriptedJudgeClient(verdict)).preview(output="o").score == 1.0
    assert JUDGE.preview(output="o", client=ScriptedJudgeClient(verdict), project_id="p").score == 1.0
    assert registry.requests == []


@pytest.mark.parametrize("status", [400, 404, 409, 413, 415, 421, 422])
def test_a_refusal_is_a_config_error_with_the_registrys_sentence(
    registry: RegistryServer, client: RegistryClient, status: int
) -> None:
    registry.says(status, "it cannot be taken", **{"config.model": "no endpoint serves 'm-1'"})
    with pytest.raises(
        ConfigError, match=rf"says {status}: it cannot be taken; config\.model: no endpoint serves 'm-1'"
    ):
        JUDGE.register(client)
    found = JUDGE.preview(output="o", client=client)
    assert (found.score, found.prompt) == (None, "")
    assert str(found.error).startswith("configuration: ")
    assert "no endpoint serves 'm-1'" in str(found.error)


def test_a_missing_token_says_where_to_put_it(registry: RegistryServer) -> None:
    registry.says(401, "give the token")
    with pytest.raises(ConfigError, match=r"SPANGRADE_TOKEN \(page\.token in the agent's configuration\)"):
        JUDGE.register(RegistryClient(registry.url))
    assert "authorization" not in registry.requests[0][1]


@pytest.mark.parametrize("status", [301, 429, 500, 503])
def test_an_agent_that_cannot_answer_now_is_a_judge_error(
    registry: RegistryServer, client: RegistryClient, status: int
) -> None:
    registry.says(status, "in a moment")
    registry.headers = {"Location": "http://127.0.0.1:9/elsewhere"}
    with pytest.raises(JudgeError, match=f"says {status}: in a moment") as caught:
        JUDGE.register(client)
    assert caught.value.kind == "http_status"
    assert str(JUDGE.preview(output="o", client=client).error).startswith("http_status: ")


@pytest.mark.parametrize(
    "body",
    ["", "nonsense", "[]", "{}", "[" * 100_000, '{"id": 1}', json.dumps({**CREATED, "version": "2"}),
     json.dumps({**CREATED, "status": "asleep"}), json.dumps({**CREATED, "created": "soon"}), "x" * 2_000_000],
)  # fmt: skip
def test_an_answer_that_is_no_registrys_is_an_error_that_says_so(
    registry: RegistryServer, client: RegistryClient, body: str
) -> None:
    registry.body = body
    with pytest.raises(JudgeError, match="is no registry of a Spangrade agent") as caught:
        JUDGE.register(client)
    assert caught.value.kind == "unparseable"


@pytest.mark.parametrize(
    "answer",
    [{}, {"score": 7, "error": None}, {"score": True}, {"score": None, "error": None}, {"score": 1, "error": "both"},
     {"score": 1, "explanation": 7}],
)  # fmt: skip
def test_a_preview_that_is_none_is_an_error_and_never_a_number(
    registry: RegistryServer, client: RegistryClient, answer: dict[str, Any]
) -> None:
    registry.status, registry.body = 200, json.dumps(answer)
    found = JUDGE.preview(output="o", client=client)
    assert found.score is None
    assert str(found.error).startswith("unparseable: ")


def test_nobody_at_the_address_is_a_connection_error_that_says_what_to_start() -> None:
    with pytest.raises(JudgeError, match=r"start one with `spangrade agent run`.*SPANGRADE_AGENT_URL") as caught:
        JUDGE.register(RegistryClient("http://127.0.0.1:9"))
    assert caught.value.kind == "connection"


def test_an_agent_that_does_not_answer_in_time_is_a_timeout() -> None:
    silent = ThreadingHTTPServer(("127.0.0.1", 0), BaseHTTPRequestHandler)  # listens, and takes nothing
    address = f"http://127.0.0.1:{silent.server_address[1]}"
    with pytest.raises(JudgeError, match=r"no answer within 0\.05 s") as caught:
        JUDGE.register(RegistryClient(address, timeout=0.05))
    assert caught.value.kind == "timeout"
    silent.server_close()


@pytest.mark.parametrize("url", ["", "agent:8080", "ftp://agent", "http://", "http://agent/?token=x"])
def test_an_address_that_is_none_is_refused_by_name(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SPANGRADE_AGENT_URL", url or "nonsense")
    with pytest.raises(ConfigError, match=r"SPANGRADE_AGENT_URL is no http\(s\) address"):
        RegistryClient()
    if url:
        with pytest.raises(ConfigError, match="base_url is no http"):
            RegistryClient(url)


def test_the_token_is_in_no_error_repr_or_traceback(registry: RegistryServer) -> None:
    client = RegistryClient(registry.url, TOKEN)
    registry.says(422, f"you sent {TOKEN}", **{TOKEN: TOKEN})
    said = [repr(client)]
    for action in (
        lambda: JUDGE.register(client),
        lambda: JUDGE.register(RegistryClient("http://127.0.0.1:9", TOKEN)),
        lambda: RegistryClient(registry.url, f"{TOKEN}\r\nx: y"),
        lambda: RegistryClient(f"http://user:{TOKEN}@agent"),
    ):
        with pytest.raises((ConfigError, JudgeError)) as caught:
            action()
        said.append("".join(traceback.format_exception(caught.value)))
    assert TOKEN not in "".join(line for text in said for line in text.splitlines() if "lambda" not in line)


def test_what_is_no_registry_is_refused_with_a_sentence() -> None:
    with pytest.raises(ConfigError, match=r"register takes a RegistryClient.*not ScriptedJudgeClient"):
        JUDGE.register(ScriptedJudgeClient("x"))  # type: ignore[arg-type]


def test_nothing_that_the_client_does_is_traced_and_its_traceparent_is_unsampled(
    registry: RegistryServer, client: RegistryClient
) -> None:
    exporter, provider = CollectingExporter(), TracerProvider(shutdown_on_exit=False)
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    HTTPXClientInstrumentor().instrument(tracer_provider=provider)
    try:
        with provider.get_tracer("app").start_as_current_span("outer"):
            JUDGE.register(client)
    finally:
        HTTPXClientInstrumentor().uninstrument()
    assert [span.name for span in exporter.spans] == ["outer"]
    assert registry.requests[0][1]["traceparent"].endswith("-00")


def test_a_version_stands_on_the_scores_and_not_in_the_identity() -> None:
    versioned = JUDGE.with_version("7")
    assert (versioned.info.version, JUDGE.info.version) == ("7", None)
    assert versioned.config() == JUDGE.config()
    assert versioned.info.key == JUDGE.info.key
    assert versioned.with_target("llm").with_timeout(3).info.version == "7"
