"""Arize Phoenix from PyPI: in a venv of its own once per machine, started on free ports, asked over its REST API."""

from __future__ import annotations

import subprocess
import sys
import sysconfig
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import httpx

from . import otlp, tool_cache
from .jaeger_build import cache_root
from .processes import Server, eventually, free_ports, spawn, up, url

CONSTRAINTS = Path(__file__).with_name("phoenix_constraints.txt")
PORT_VARIABLES = ("PHOENIX_PORT", "PHOENIX_GRPC_PORT")
# About a minute and 850 MB; far above that, for only an installation that hangs should meet it.
INSTALL_TIMEOUT = 20 * 60.0

Span = dict[str, Any]


def cache_name() -> str:
    python = f"py{sys.version_info.major}.{sys.version_info.minor}"
    fingerprint = tool_cache.fingerprint(CONSTRAINTS)
    return f"phoenix-{fingerprint}-{python}-{sysconfig.get_platform()}"


def ensure_phoenix() -> Path:
    """A Python that has Phoenix, installed first if it is not in the cache."""

    def install(folder: Path) -> None:
        tool_cache.run([sys.executable, "-m", "venv", "venv"], folder, timeout=120)
        pip = ["venv/bin/python", "-m", "pip", "install", "--no-input", "--constraint", str(CONSTRAINTS)]
        tool_cache.run([*pip, "arize-phoenix"], folder, timeout=INSTALL_TIMEOUT)
        # One that does not even import must not reach the cache.
        tool_cache.run(["venv/bin/python", "-m", "phoenix.server.main", "--help"], folder, timeout=180)

    # The folder is moved once it is whole. A venv's scripts name the place where they were made, its Python does not.
    return tool_cache.ensure(cache_name(), install) / "venv" / "bin" / "python"


def is_installed() -> bool:
    return (cache_root() / cache_name()).is_dir()


class Phoenix(Server):
    """A running Phoenix: where it takes OTLP, and what it has stored."""

    name = "Phoenix"
    # 12 s of processor time on an idle machine.
    start_timeout = 180.0

    def __init__(self, process: subprocess.Popen[bytes], ports: Mapping[str, int], log_path: Path) -> None:
        super().__init__(process, ports, log_path)
        self.otlp_http = url(ports["PHOENIX_PORT"])
        self._http = httpx.Client(base_url=self.otlp_http, timeout=20.0, trust_env=False)

    @classmethod
    def begin(cls, folder: Path) -> Phoenix:
        """Start it and do not wait until it is up."""
        ports = free_ports(PORT_VARIABLES)
        env = {
            **{name: str(port) for name, port in ports.items()},
            "PHOENIX_HOST": "127.0.0.1",
            "PHOENIX_WORKING_DIR": str(folder),
            # Without these two it asks the internet.
            "PHOENIX_TELEMETRY_ENABLED": "false",
            "PHOENIX_ALLOW_EXTERNAL_RESOURCES": "false",
        }
        command = [str(ensure_phoenix()), "-m", "phoenix.server.main", "serve"]
        return spawn(cls, command, folder / "phoenix.log", env, ports)

    def is_up(self) -> bool:
        try:
            return self._http.get("/healthz").status_code == 200
        except httpx.TransportError:
            return False  # not listening yet

    def wait(self) -> Phoenix:
        """This one once it is up; another if it lost its port to another process."""
        if up(self):
            return self
        assert "address already in use" in self.log(), self.log_tail()
        again = Phoenix.begin(self.log_path.parent)
        assert up(again), again.log_tail()
        return again

    def spans(self, trace_id: str) -> list[Span]:
        """The trace's spans that can be found now."""
        answer = self._http.get("/v1/projects/default/spans", params={"trace_id": trace_id, "limit": 1000})
        # 404: the project comes with its first span.
        assert answer.status_code in (200, 404), answer.text
        found: list[Span] = answer.json()["data"] if answer.status_code == 200 else []
        return found

    def settled(self, trace_id: str) -> list[Span]:
        """The trace with every span that had been sent to this Phoenix before this call: it stores them in order."""
        marker, body = otlp.marker()
        answer = self._http.post("/v1/traces", content=body, headers=otlp.PROTOBUF)
        assert answer.status_code == 200, answer.text
        eventually(lambda: self.spans(marker), bool, "the marker is stored", timeout=30)
        return self.spans(trace_id)

    def stop(self) -> int:
        self._http.close()
        return super().stop()


def scored_events(span: Span, name: str) -> list[dict[str, Any]]:
    """The attributes of the span's events of that name."""
    return [event["attributes"] for event in span["events"] if event["name"] == name]


def named(spans: list[Span], name: str) -> Span:
    """The one span of that name."""
    (found,) = [span for span in spans if span["name"] == name]
    return found
