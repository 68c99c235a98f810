"""Which endpoint a judge's model goes to, and with which key: by the model's name, the environment, and other packages."""

import importlib
import json
import ssl
import threading
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from tests.agent.certificate import make_certificate, needs_openssl

import spangrade as sg
from spangrade.config import FileConfig, load
from spangrade.errors import JudgeError
from spangrade.judges.breaker import FAILURES
from spangrade.judges.providers import (
    Endpoint,
    JudgeRequest,
    client_at,
    client_from_environment,
    close_connections,
)
from spangrade.judges.providers.anthropic import AnthropicMessages
from spangrade.judges.providers.endpoint import VENDORS, from_environment
from spangrade.judges.providers.openai_compatible import OpenAICompatible
from spangrade.scoring.evaluators import placed_evaluators
from spangrade.testing import CollectingExporter

from .conftest import JudgeServer, completion, graded, message
from .test_judge_http import refuse, request


@pytest.mark.parametrize(
    ("model", "variables", "base_url", "provider", "key", "name"),
    [
        ("gpt-5", {"OPENAI_API_KEY": "k"}, "https://api.openai.com/v1", "openai", "k", "gpt-5"),
        ("openai/gpt-5", {"OPENAI_API_KEY": "k"}, "https://api.openai.com/v1", "openai", "k", "gpt-5"),
        ("gpt-5", {"SPANGRADE_JUDGE_API_KEY": "o", "OPENAI_API_KEY": "k"}, "https://api.openai.com/v1", "openai", "o", "gpt-5"),
        ("claude-x", {"ANTHROPIC_API_KEY": "k"}, "https://api.anthropic.com", "anthropic", "k", "claude-x"),
        ("anthropic/claude-x", {"SPANGRADE_JUDGE_API_KEY": "k"}, "https://api.anthropic.com", "anthropic", "k", "claude-x"),
        ("claude-x", {"ANTHROPIC_BASE_URL": "http://h:1", "ANTHROPIC_API_KEY": "k"}, "http://h:1", "anthropic", "k", "claude-x"),
        ("claude-x", {"SPANGRADE_JUDGE_BASE_URL": "http://h:1/v1", "ANTHROPIC_API_KEY": "k"}, "http://h:1/v1", "openai", None, "claude-x"),
        ("x", {"SPANGRADE_JUDGE_BASE_URL": "https://api.anthropic.com/", "ANTHROPIC_API_KEY": "k"}, "https://api.anthropic.com/", "anthropic", "k", "x"),
        ("x", {"SPANGRADE_JUDGE_BASE_URL": "http://h:1/v1/messages"}, "http://h:1/v1/messages", "anthropic", None, "x"),
        ("x", {"SPANGRADE_JUDGE_BASE_URL": "http://h:1", "SPANGRADE_JUDGE_PROVIDER": "anthropic"}, "http://h:1", "anthropic", None, "x"),
        ("x", {"SPANGRADE_JUDGE_PROVIDER": "anthropic", "ANTHROPIC_API_KEY": "k"}, "https://api.anthropic.com", "anthropic", "k", "x"),
        ("groq/llama/3", {"GROQ_API_KEY": "k"}, "https://api.groq.com/openai/v1", "openai", "k", "llama/3"),
        ("together/m", {"TOGETHER_API_KEY": "k"}, "https://api.together.xyz/v1", "openai", "k", "m"),
        ("openrouter/a/b", {"OPENROUTER_API_KEY": "k"}, "https://openrouter.ai/api/v1", "openai", "k", "a/b"),
        ("a/b", {"SPANGRADE_JUDGE_BASE_URL": "https://openrouter.ai/api/v1", "OPENROUTER_API_KEY": "k"}, "https://openrouter.ai/api/v1", "openai", "k", "a/b"),
        ("meta-llama/x", {"OPENAI_BASE_URL": "http://h:1/v1"}, "http://h:1/v1", "openai", None, "meta-llama/x"),
        ("ollama/qwen3:4b", {}, "http://127.0.0.1:11434/v1", "openai", None, "qwen3:4b"),
        ("ollama/q", {"OLLAMA_HOST": "box:9"}, "http://box:9/v1", "openai", None, "q"),
        ("azure/dep", {"AZURE_OPENAI_ENDPOINT": "https://r.openai.azure.com", "AZURE_OPENAI_API_KEY": "k"}, "https://r.openai.azure.com", "openai", "k", "dep"),
    ],
)  # fmt: skip
def test_the_models_name_and_the_environment_choose_the_endpoint(
    model: str, variables: dict[str, str], base_url: str, provider: str, key: str | None, name: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    for variable, value in variables.items():
        monkeypatch.setenv(variable, value)
    endpoint, there = from_environment(model)
    assert (endpoint.base_url, endpoint.provider, endpoint.api_key, there) == (base_url, provider, key, name)


def test_a_vendors_key_goes_to_no_other_host(monkeypatch: pytest.MonkeyPatch) -> None:
    for vendor in VENDORS.values():
        for variable in vendor.keys:
            monkeypatch.setenv(variable, f"secret-{variable}")
    monkeypatch.setenv("SPANGRADE_JUDGE_BASE_URL", "https://somewhere.example/v1")
    assert from_environment("gpt-5")[0].api_key is None
    monkeypatch.delenv("SPANGRADE_JUDGE_BASE_URL")
    assert from_environment("groq/x")[0].api_key == "secret-GROQ_API_KEY"
    assert "secret" not in repr(from_environment("groq/x")[0])


@pytest.mark.parametrize(
    ("model", "names"),
    [
        ("gpt-5", "SPANGRADE_JUDGE_API_KEY (or OPENAI_API_KEY) for OpenAI"),
        ("claude-x", "SPANGRADE_JUDGE_API_KEY (or ANTHROPIC_API_KEY) for Anthropic"),
        ("groq/x", "GROQ_API_KEY"),
        ("azure/x", "AZURE_OPENAI_ENDPOINT"),
    ],
)
def test_a_missing_key_or_address_is_named(model: str, names: str) -> None:
    with pytest.raises(JudgeError) as caught:
        from_environment(model)
    assert caught.value.kind == "configuration"
    assert names in str(caught.value)


def test_a_judge_of_a_named_vendor_asks_for_the_model_by_its_name_there(
    server: JudgeServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ANTHROPIC_BASE_URL", server.base_url)
    server.script = [message(json.dumps({"reasoning": "r", "score": 5}))]
    judge = sg.LlmJudge("helpful", "It helps.", model="anthropic/claude-x")
    verdict = judge.evaluate(sg.Sample(input="q", output="a"))
    assert verdict.scores[0].value == 1.0
    assert (server.requests[0].path, server.requests[0].body["model"]) == ("/v1/messages", "claude-x")
    assert judge.config()["model"] == "anthropic/claude-x"
    client, _ = client_from_environment("anthropic/claude-x")
    assert isinstance(client, AnthropicMessages)
    client.close()


def test_azure_takes_its_key_in_its_own_header_and_a_path_of_its_own() -> None:
    whole = "https://r.openai.azure.com/openai/deployments/d?api-version=2024-10-21"
    for given, there in (
        ("https://r.openai.azure.com", "https://r.openai.azure.com/openai/v1/chat/completions"),
        ("https://r.openai.azure.com/openai/v1/", "https://r.openai.azure.com/openai/v1/chat/completions"),
        (whole, whole.replace("?", "/chat/completions?")),
    ):
        client = OpenAICompatible(given, "k")
        assert str(client._connection._url) == there
        assert client.authorization("k") == {"api-key": "k"}
    assert OpenAICompatible("http://h/v1").authorization("k") == {"Authorization": "Bearer k"}


# --- the tool's form, over chat completions ---------------------------------------------------------------------------


def test_the_arguments_of_the_forced_tool_are_the_reply(server: JudgeServer) -> None:
    call = {"type": "function", "function": {"name": "verdict", "arguments": '{"reasoning": "r", "score": 2}'}}
    server.script = [
        refuse(message="response_format is not supported"),
        completion(None, "tool_calls", tool_calls=[call]),
        completion(None, "tool_calls", tool_calls=[call, call]),
    ]
    client = OpenAICompatible(server.base_url)
    judge = sg.LlmJudge("helpful", "It helps.", model="m").with_client(client)
    assert judge.evaluate(sg.Sample(input="q", output="a")).scores[0].value == 0.25
    with pytest.raises(JudgeError) as caught:
        judge.evaluate(sg.Sample(input="q", output="a"))
    assert caught.value.kind == "several_verdicts"
    client.close()


def test_an_endpoint_that_does_not_look_at_the_schema_is_asked_another_way_next_time(server: JudgeServer) -> None:
    server.script = [completion("A good answer, I should say."), graded()]
    client = OpenAICompatible(server.base_url)
    client.complete(request())
    client.complete(request())
    client.close()
    assert ["response_format" in r.body for r in server.requests] == [True, False]
    assert server.requests[1].body["tool_choice"]["function"]["name"] == "verdict"


# --- keys, headers, certificates, proxies -------------------------------------------------------------------------------


def test_a_key_file_is_read_again_when_it_has_changed(server: JudgeServer, tmp_path: Path) -> None:
    file = tmp_path / "key"
    file.write_text("first-key\n")
    client = client_at(Endpoint(base_url=server.base_url, api_key_file=str(file)))
    assert isinstance(client, OpenAICompatible)
    client.complete(request())
    file.write_text("second-key-longer\n")
    client.complete(request())
    assert [r.headers["authorization"] for r in server.requests] == ["Bearer first-key", "Bearer second-key-longer"]
    for spoil, said in ((lambda: file.write_text("  "), "is empty"), (file.unlink, "cannot be read")):
        spoil()
        with pytest.raises(JudgeError, match=said) as caught:
            client.complete(request())
        assert caught.value.kind == "configuration"
        assert "second-key" not in str(caught.value)
    client.close()


def test_headers_go_with_every_request_and_are_not_shown(server: JudgeServer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SPANGRADE_JUDGE_BASE_URL", server.base_url)
    monkeypatch.setenv("SPANGRADE_JUDGE_HEADERS", "X-Team=rag, X-Token=se=cret")
    client, _ = client_from_environment("m")
    client.complete(request())
    assert isinstance(client, OpenAICompatible)
    client.close()
    got = server.requests[0].headers
    assert (got["x-team"], got["x-token"]) == ("rag", "se=cret")
    assert "cret" not in f"{client!r}{from_environment('m')[0]!r}"
    monkeypatch.setenv("SPANGRADE_JUDGE_HEADERS", "nonsense")
    with pytest.raises(JudgeError, match="SPANGRADE_JUDGE_HEADERS"):
        from_environment("m")
    with pytest.raises(JudgeError, match="'X-Bad'"):
        OpenAICompatible(server.base_url, headers={"X-Bad": "line\nbreak"})


@needs_openssl
def test_a_ca_file_is_trusted_and_without_it_the_connection_is_refused(tmp_path: Path) -> None:
    certificate = make_certificate(tmp_path)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate.cert, certificate.key)
    server = JudgeServer(tls=context)
    try:
        trusting = OpenAICompatible(f"{server.origin}/v1", ca_file=certificate.cert)
        assert trusting.complete(request()).model == "judge-test-1"
        trusting.close()
        doubting = OpenAICompatible(f"{server.origin}/v1")
        with pytest.raises(JudgeError) as caught:
            doubting.complete(request(timeout=0.6))
        doubting.close()
        assert caught.value.kind == "connection"
    finally:
        server.close()
    with pytest.raises(JudgeError, match=r"ca_file .*nowhere\.pem") as wrong:
        OpenAICompatible("https://h/v1", ca_file=str(tmp_path / "nowhere.pem")).complete(request())
    assert wrong.value.kind == "configuration"


def test_a_proxy_of_the_endpoints_own_is_asked(server: JudgeServer) -> None:
    client = OpenAICompatible("http://model.example/v1", proxy=server.base_url.removesuffix("/v1"))
    client.complete(request())
    client.close()
    assert server.requests[0].path == "http://model.example/v1/chat/completions"


# --- the configuration file ---------------------------------------------------------------------------------------------

FILE = """
judges:
  - {{name: a, criteria: c, model: gpt-5, live: {{rate: 1.0}}}}
  - {{name: b, criteria: c, model: claude-x, live: {{rate: 1.0}}}}
judge_endpoints:
  - {{models: ["claude-*"], provider: anthropic, base_url: "{url}", api_key: "${{env:THE_KEY}}", headers: {{X-Team: rag}}}}
  - {{base_url: "{url}/v1"}}
"""


def test_a_file_says_which_endpoint_serves_which_model(
    server: JudgeServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("THE_KEY", "very-secret")
    server.script = [graded()]
    file = tmp_path / "spangrade.yaml"
    file.write_text(FILE.format(url=server.base_url.removesuffix("/v1")))
    config = load(file, FileConfig)
    assert "very-secret" not in repr(config)
    a, b = placed_evaluators([], config.judges, config.judge_endpoints)
    for placed in (a, b):
        with suppress(JudgeError):  # the scripted reply is no message of Anthropic's
            placed.evaluator.evaluate(sg.Sample(input="q", output="a"))
    by_model = {got.body["model"]: got for got in server.requests}
    assert by_model["gpt-5"].path == "/v1/chat/completions"
    assert "authorization" not in by_model["gpt-5"].headers
    assert by_model["claude-x"].path == "/v1/messages"
    assert (by_model["claude-x"].headers["x-api-key"], by_model["claude-x"].headers["x-team"]) == ("very-secret", "rag")
    close_connections()


@pytest.mark.parametrize(
    ("endpoints", "said"),
    [
        ("[{base_url: nonsense}]", "judge 'a': judge_endpoints: .*no http"),
        ("[{base_urls: x}]", "unknown key 'judge_endpoints.0.base_urls'"),
        ("{api_key: very-secret}", "'judge_endpoints' is dict: "),
        ("[{api_key: {a: very-secret}}]", "'judge_endpoints.0.api_key' is dict: "),
        ("[{provider: nobody}]", "no provider 'nobody'"),
    ],
)
def test_a_wrong_endpoint_is_refused_at_the_start_and_no_key_is_shown(
    tmp_path: Path, endpoints: str, said: str
) -> None:
    file = tmp_path / "spangrade.yaml"
    file.write_text(f"judges: [{{name: a, criteria: c, model: m, live: true}}]\njudge_endpoints: {endpoints}\n")
    with pytest.raises(sg.ConfigError, match=said) as caught:
        sg.configure(config_file=str(file), exporter=CollectingExporter())
    assert "very-secret" not in str(caught.value)


def test_an_endpoint_for_no_judge_of_it_and_a_client_of_ones_own_change_nothing(server: JudgeServer) -> None:
    judge = sg.LlmJudge("a", "c", model="m")
    assert judge.at([Endpoint(base_url=server.base_url, models=("other-*",))]) is judge
    mine = judge.with_client(OpenAICompatible(server.base_url))
    assert mine.at([Endpoint(base_url=server.base_url)]) is mine


# --- providers of other packages ----------------------------------------------------------------------------------------

PACKAGE = """
from spangrade.judges.providers import JudgeReply

class Client:
    asked = []  # (called at the start of a call)
    def __init__(self, endpoint):
        self.endpoint = endpoint
    def complete(self, request):
        for one in self.asked:
            one(request)
        return JudgeReply('{"reasoning": "by acme", "score": 5}', model=f"acme:{request.model}")

def broken(endpoint):
    raise RuntimeError(endpoint.api_key)

def useless(endpoint):
    return object()
"""


@pytest.fixture
def acme(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A package that is installed, as far as Python can tell, with three providers."""
    (tmp_path / "acme_judges.py").write_text(PACKAGE)
    info = tmp_path / "acme_judges-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: acme-judges\nVersion: 1.0\n")
    offers = "\n".join(f"{name} = acme_judges:{what}" for name, what in
                       (("acme", "Client"), ("acme-broken", "broken"), ("acme-useless", "useless")))  # fmt: skip
    (info / "entry_points.txt").write_text(f"[spangrade.judge_providers]\n{offers}\n")
    monkeypatch.syspath_prepend(tmp_path)


@pytest.mark.usefixtures("acme")
def test_another_packages_provider_is_named_by_the_model_or_by_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    sample = sg.Sample(input="q", output="a")
    verdict = sg.LlmJudge("helpful", "It helps.", model="acme/big").evaluate(sample)
    assert verdict.scores[0].value == 1.0
    assert verdict.details["spangrade.judge.model"] == "acme:big"
    monkeypatch.setenv("SPANGRADE_JUDGE_PROVIDER", "acme")
    verdict = sg.LlmJudge("helpful", "It helps.", model="small").evaluate(sample)
    assert verdict.details["spangrade.judge.model"] == "acme:small"


@pytest.mark.usefixtures("acme")
def test_a_provider_that_fails_or_is_unknown_is_named_and_no_key_is_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SPANGRADE_JUDGE_API_KEY", "very-secret")
    for model, said in (("acme-broken/x", "acme_judges:broken"), ("acme-useless/x", "no client with `complete`")):
        with pytest.raises(JudgeError, match=said) as caught:
            client_from_environment(model)
        assert caught.value.kind == "configuration"
        assert "very-secret" not in str(caught.value)
    with pytest.raises(JudgeError, match=r"no provider 'nobody' for the judge; there are acme, .*anthropic, openai"):
        client_at(Endpoint(provider="nobody"))


@pytest.fixture
def asked(acme: None, monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """What the package's client calls before it answers."""
    module = importlib.import_module("acme_judges")
    monkeypatch.setattr(module.Client, "asked", [])
    found: list[Any] = module.Client.asked
    return found


def test_another_packages_provider_keeps_within_the_endpoints_limit(asked: list[Any]) -> None:
    lock, now, most, two = threading.Lock(), 0, 0, threading.Barrier(2)

    def one(_request: JudgeRequest) -> None:
        nonlocal now, most
        with lock:
            now += 1
            most = max(most, now)
        two.wait(20)  # two are here at once, or none gets on
        with lock:
            now -= 1

    asked.append(one)
    client = client_at(Endpoint(provider="acme", api_key="of two", max_concurrency=2))
    threads = [threading.Thread(target=client.complete, args=(request(),)) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(30)
    assert most == 2


def test_judges_of_one_provider_of_another_package_share_its_limiter_and_the_lane_asks_it(
    acme: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SPANGRADE_JUDGE_MAX_CONCURRENCY", "7")
    one, other = (sg.LlmJudge(name, "c", model="acme/big").gate for name in ("one", "other"))
    assert one is other is not None
    assert one.state().host == "acme"
    placed = sg.LlmJudge("three", "c", model="big").at([Endpoint(provider="acme", api_key="another")])
    assert placed.gate is not None
    assert placed.gate is not one
    assert placed.gate.state().limit == 7


@pytest.mark.parametrize("fault", [JudgeError("connection", "nobody there"), RuntimeError("of a library")])
def test_another_packages_provider_that_fails_is_left_alone(asked: list[Any], fault: Exception) -> None:
    calls: list[JudgeRequest] = []

    def fails(got: JudgeRequest) -> None:
        calls.append(got)
        raise fault

    asked.append(fails)
    client = client_at(Endpoint(provider="acme", api_key=f"fails by {fault}"))
    for _ in range(FAILURES):
        with pytest.raises(type(fault)):
            client.complete(request())
    with pytest.raises(JudgeError) as refused:
        client.complete(request())
    assert refused.value.kind == "circuit_open"
    assert len(calls) == FAILURES
    assert all(0 < got.timeout <= request().timeout for got in calls)


def test_another_packages_provider_says_when_there_are_too_many_calls(asked: list[Any]) -> None:
    def refuses(_request: JudgeRequest) -> None:
        raise JudgeError("rate_limited", "too many requests")

    asked.append(refuses)
    endpoint = Endpoint(provider="acme", api_key="is busy")
    assert endpoint.limiter is not None
    before = endpoint.limiter.state().limit
    with pytest.raises(JudgeError):
        client_at(endpoint).complete(request())
    assert endpoint.limiter.state().limit < before
    assert endpoint.limiter.state().in_flight == 0
