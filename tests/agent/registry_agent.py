"""An agent with a registry and a scripted judge, over real sockets."""

import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

import httpx
import pytest
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor

from spangrade import semconv as s
from spangrade.judges.client import RegistryClient
from spangrade_agent.app import Agent
from spangrade_agent.config import AgentConfig
from tests.unit.judges.conftest import ENVIRONMENT, JudgeServer

ANY = "127.0.0.1:0"
KEY = "sk-the-agents-own-key-0001"
CONFIG = {"name": "helpful", "criteria": "It answers what was asked.", "model": "judge-test-1"}


@dataclass
class Running:
    """``server`` is the model's; ``url`` the page's."""

    agent: Agent
    server: JudgeServer
    headers: dict[str, str] = field(default_factory=dict)

    @property
    def url(self) -> str:
        return f"http://{self.agent.addresses.page}"

    def ask(self, method: str, path: str, body: Any = None, **more: Any) -> httpx.Response:
        given = {"json": body} if body is not None else {}
        with httpx.Client(trust_env=False, headers=self.headers) as http:
            return http.request(method, self.url + path, **given, **more)

    def put(self, config: dict[str, Any] | None = None, **more: Any) -> Any:
        answer = self.ask("POST", "/v1/evaluators", {"config": {**CONFIG, **(config or {})}, **more})
        assert answer.status_code in (200, 201), answer.text
        return answer.json()

    def client(self, **more: Any) -> RegistryClient:
        return RegistryClient(self.url, **more)

    def call(self, output: str = "Parcels arrive within three days.") -> None:
        """One call of an application's, over OTLP/HTTP, graded."""
        exporter = OTLPSpanExporter(f"http://{self.agent.addresses.http}/v1/traces")
        provider = TracerProvider(shutdown_on_exit=False)
        provider.add_span_processor(SimpleSpanProcessor(exporter))
        attributes = {s.OI_KIND: "CHAIN", s.OI_INPUT: "When does it come?", s.OI_OUTPUT: output}
        with provider.get_tracer("app").start_as_current_span("answer", attributes=attributes):
            pass
        provider.shutdown()
        assert self.agent.pipeline.drain(30, judges=True)

    def results(self) -> list[dict[str, Any]]:
        """What the store has of every call, the newest first, by score name and version."""
        assert self.agent.store is not None
        assert self.agent.store.flush(30)
        samples = self.ask("GET", "/api/samples").json()["samples"]
        return [{one["name"]: one for one in sample["results"]} for sample in samples]


def running(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, server: JudgeServer) -> Iterator[Callable[..., Running]]:
    """Makes agents; ``registry`` are more settings of the registry, ``more`` of the agent."""
    for name in ENVIRONMENT:
        monkeypatch.delenv(name, raising=False)
    made: list[Agent] = []

    def make(
        registry: dict[str, Any] | Literal[False] | None = None, page: dict[str, Any] | None = None, **more: Any
    ) -> Running:
        base = {
            "receivers": {"grpc": None, "http": {"listen": ANY}},
            "admin": False,
            "page": {"listen": ANY, **(page or {})},
            "metrics": ["length_words"],
            "judge_endpoints": [{"models": ["judge-*"], "base_url": server.base_url, "api_key": KEY}],
            "registry": registry
            if registry is False
            else {"path": str(tmp_path / "registry.db"), "max_rate": 1.0, **(registry or {})},
        }
        made.append(Agent(AgentConfig.model_validate({**base, **more})))
        made[-1].start()
        return Running(made[-1], server)

    yield make
    for one in made:
        one.stop(10)


def problem(answer: httpx.Response, status: int) -> dict[str, str]:
    """The fields of a problem object and what it says of each; its detail stands under an empty name."""
    assert answer.status_code == status, answer.text
    assert answer.headers["content-type"] == "application/problem+json"
    said = json.loads(answer.text)
    assert (said["type"], said["status"]) == ("about:blank", status)
    return {"": said["detail"], **{error["field"]: error["message"] for error in said["errors"]}}
