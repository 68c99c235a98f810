"""Spangrade's agent as a process of its own, as a user starts it."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Sequence
from pathlib import Path

import httpx
import pytest

from .processes import Server, spawn, up

ANY = "127.0.0.1:0"
LISTENERS = ("grpc", "http", "admin", "page")


class AgentProcess(Server):
    """A running agent: where it listens, and what it says of itself."""

    name = "Agent"

    @classmethod
    def start(
        cls,
        folder: Path,
        *,
        forward: str,
        metrics: Sequence[str] = ("overlap", "length_words"),
        path: Path | None = None,
    ) -> AgentProcess:
        """Run it on free ports, sending to ``forward``; metrics of the application's own are found in ``path``."""
        command = [sys.executable, "-m", "spangrade_agent", "run", "--forward", forward]
        for listener in LISTENERS:
            command += [f"--{listener}", ANY]
        for metric in metrics:
            command += ["--metric", metric]
        folder.mkdir(parents=True, exist_ok=True)
        env = {}
        if path is not None:
            env["PYTHONPATH"] = os.pathsep.join(filter(None, [os.environ.get("PYTHONPATH"), str(path)]))
        agent = spawn(cls, command, folder / "agent.log", env, stdout=folder / "agent.out")
        if not up(agent):
            code = agent.process.returncode
            pytest.fail(f"the agent ended at its start with exit code {code}:\n{agent.log_tail()}", pytrace=False)
        return agent

    def is_up(self) -> bool:
        return len(self._addresses()) == len(LISTENERS)

    def _addresses(self) -> dict[str, str]:
        """What it prints when it is ready: one line per listener, its name and its address."""
        printed = self.log_path.with_suffix(".out").read_text(encoding="utf-8")
        whole = printed[: printed.rfind("\n") + 1]
        return dict(line.split(maxsplit=1) for line in whole.splitlines())

    @property
    def grpc(self) -> str:
        """host:port, as a Collector's exporter wants it."""
        return self._addresses()["OTLP/gRPC"]

    @property
    def http(self) -> str:
        return self._addresses()["OTLP/HTTP"]

    def endpoint(self, protocol: str) -> str:
        """The URL that an application is given."""
        return self.http if protocol == "http" else f"http://{self.grpc}"

    def admin(self, path: str) -> httpx.Response:
        health = self._addresses()["health"]
        with httpx.Client(timeout=5.0, trust_env=False) as client:
            return client.get(health.removesuffix("/healthz") + path)

    def counters(self) -> dict[str, float]:
        """/metrics: each series, with its labels as it writes them, and its value."""
        lines = re.findall(r"^(?!#)(\S.*) (\S+)$", self.admin("/metrics").text, re.MULTILINE)
        return {series: float(value) for series, value in lines}

    def faults(self) -> float:
        """Spangrade's own faults that were stopped."""
        return self.counters()["spangrade_faults_total"]

    def drain(self) -> None:
        """SIGTERM: whatever it has taken has been sent on when this returns."""
        code = self.stop()
        assert code == 0, f"the agent ended with exit code {code}:\n{self.log_tail()}"
