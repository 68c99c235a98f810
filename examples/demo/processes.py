"""The processes of the demo beside the application: the model, the agent, the receiver.

`ReceiverProcess` is useful in a test too:

    with ReceiverProcess() as receiver:
        ...                                # export to receiver.base_url
        spans = receiver.spans()
"""

from __future__ import annotations

import json
import urllib.request
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from examples.demo.child_process import ChildError, ChildProcess, JsonObject

AGENT_CONFIG = Path(__file__).with_name("agent.yaml")


class LlmProcess(ChildProcess):
    """The local model. Exit code 3 in a ChildError means that this machine cannot run it."""

    def __init__(
        self,
        *,
        ready_within: float = 90.0,
        log_file: Path | None = None,
        on_wait: Callable[[float], None] | None = None,
    ) -> None:
        super().__init__("examples.demo.local_llm", ready_within=ready_within, log_file=log_file, on_wait=on_wait)

    @property
    def model(self) -> str:
        return str(self.facts["model"])


class AgentProcess(ChildProcess):
    """The agent, set up by `agent.yaml`. `base_url` is what an application's endpoint is set to.

    `sends_to` is an OTLP/HTTP receiver. `judge` holds the variables that name the judge's model, endpoint and key; they
    reach the agent through its environment only.
    """

    def __init__(
        self,
        *,
        sends_to: str,
        judge: Mapping[str, str],
        ready_within: float = 60.0,
        log_file: Path | None = None,
        on_wait: Callable[[float], None] | None = None,
    ) -> None:
        super().__init__(
            "examples.demo.agent",
            "--config",
            str(AGENT_CONFIG),
            ready_within=ready_within,
            log_file=log_file,
            on_wait=on_wait,
            environment={**judge, "SPANGRADE_DEMO_RECEIVER": sends_to},
        )

    @property
    def page_url(self) -> str:
        return str(self.facts["page_url"])

    def _read_facts(self, lines: Sequence[str]) -> JsonObject | None:
        """The agent prints a line for each thing that listens: what it is, and its address."""
        addresses = dict(words for line in lines if len(words := line.split()) == 2)
        if not {"OTLP/HTTP", "page"} <= addresses.keys():
            return None
        return {"base_url": addresses["OTLP/HTTP"], "page_url": addresses["page"]}


class ReceiverProcess(ChildProcess):
    """An OTLP/HTTP receiver. `base_url` is what an exporter's endpoint is set to."""

    def __init__(self, *, port: int = 0, ready_within: float = 30.0, log_file: Path | None = None) -> None:
        super().__init__(
            "examples.demo.otlp_receiver", "--port", str(port), ready_within=ready_within, log_file=log_file
        )

    def spans(self, *, after: int = 0, wait: float = 0.0) -> list[JsonObject]:
        """Spans received, oldest first. With `wait`, blocks up to that many seconds for one numbered above `after`."""
        return self._read("spans", after, wait)

    def logs(self, *, after: int = 0, wait: float = 0.0) -> list[JsonObject]:
        """Log records received, oldest first. `after` and `wait` as for `spans`."""
        return self._read("logs", after, wait)

    def clear(self) -> None:
        """Forget everything received so far."""
        self._request("DELETE", "/", timeout=10.0)

    def _read(self, what: str, after: int, wait: float) -> list[JsonObject]:
        items: list[JsonObject] = json.loads(
            self._request("GET", f"/{what}?after={after}&wait={wait}", timeout=wait + 10.0)
        )
        return items

    def _request(self, method: str, path: str, timeout: float) -> bytes:
        request = urllib.request.Request(self.base_url + path, method=method)
        # No proxy: an HTTP_PROXY in the environment must not come between us and the loopback.
        opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
        try:
            with opener.open(request, timeout=timeout) as response:
                body: bytes = response.read()
        except OSError as error:
            self.check()
            raise ChildError(f"{self.name} does not answer: {error}", None) from error
        return body
