"""Runs one of the applications in its library's venv, and tells what Spangrade makes of the spans that came out."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from spangrade.model.span import SpanData
from spangrade.samples.reading import Call

from . import venvs
from .apps.as_json import calls_of, described, plain, root_of
from .collect import Inbox
from .replay import Place

APPS = Path(__file__).parent / "apps"
TIMEOUT = 180.0
# What would send anything elsewhere, or change what a library does.
_FOREIGN = ("OTEL_", "SPANGRADE_", "OPENINFERENCE_", "TRACELOOP_", "LANGFUSE_", "LANGSMITH_", "LANGCHAIN_", "LOGFIRE_",
            "MLFLOW_", "HAYSTACK_", "OPENAI_", "ANTHROPIC_")  # fmt: skip


@dataclass
class Ran:
    """What a program sent. ``scenario`` names are the program's; each is traced apart."""

    inbox: Inbox
    place: Place
    traces: Mapping[str, Sequence[str]]
    stderr: str

    def spans(self, scenario: str) -> list[SpanData]:
        """Those of a scenario, in order of start."""
        return [span for span in self.inbox.spans() if span.trace_hex in self.traces.get(scenario, ())]

    def calls(self, scenario: str, kind: str | None = None) -> list[Call]:
        """The calls among them, of that kind."""
        return [call for call in calls_of(self.spans(scenario)) if kind in (None, call.kind)]

    def call(self, scenario: str, kind: str | None = None, name: str | None = None) -> Call:
        """The only one of that kind and span name."""
        found = [call for call in self.calls(scenario, kind) if name in (None, call.span.name)]
        assert len(found) == 1, [(call.kind, call.span.name) for call in self.calls(scenario)]
        return found[0]

    def sample(self, scenario: str, kind: str | None = None, name: str | None = None) -> dict[str, Any]:
        """`as_json.plain` of that one call's own sample."""
        from spangrade.samples.assemble import sample_of

        return plain(sample_of(self.call(scenario, kind, name)))

    def root(self, scenario: str) -> dict[str, Any]:
        """`as_json.plain` of the end-to-end sample of a scenario that is one trace."""
        assert len(self.traces[scenario]) == 1, self.traces
        found = root_of(self.spans(scenario))
        assert found is not None
        return plain(found)


def run_python(
    app: str, scenarios: Sequence[str], venv: str, place: Place, inbox: Inbox, env: Mapping[str, str] | None = None
) -> Ran:
    """apps/<app>.py with these scenarios. Where Spangrade's requirements fit the venv, its SDK reads the ended spans in that
    process too, and what it makes of them must be what the receiver's spans give."""
    python = venvs.python_of(venv)
    ours = {"IN_PROCESS": "1", "PYTHONPATH": str(venvs.SDK)} if venvs.fits_ours(venv) else {}
    return run_program([str(python), str(APPS / f"{app}.py"), *scenarios], place, inbox, {**ours, **(env or {})})


def run_program(command: Sequence[str], place: Place, inbox: Inbox, env: Mapping[str, str]) -> Ran:
    """A program that sends its spans to the inbox, asks the models of the place, and prints at last what `traced.main` does."""
    clean = {name: value for name, value in os.environ.items() if not name.startswith(_FOREIGN)}
    given = {
        "OTEL_EXPORTER_OTLP_ENDPOINT": inbox.endpoint,
        "OTEL_EXPORTER_OTLP_PROTOCOL": "http/protobuf",
        "REPLAY": place.url,
        "NO_PROXY": "127.0.0.1",
        "no_proxy": "127.0.0.1",
        # Clients want a key before they ask anybody; nobody looks at it.
        "OPENAI_API_KEY": "unused",
        "ANTHROPIC_API_KEY": "unused",
        "PYTHONDONTWRITEBYTECODE": "1",
    }
    done = subprocess.run(
        command, env={**clean, **given, **env}, capture_output=True, text=True, timeout=TIMEOUT, check=False
    )
    assert done.returncode == 0, done.stderr
    printed = json.loads(done.stdout.splitlines()[-1])
    if printed["in_process"] is not None:
        # Through JSON like the other, so that tuples are lists in both.
        assert printed["in_process"] == json.loads(json.dumps(described(inbox.spans()))), (
            "the process and the receiver differ"
        )
    return Ran(inbox, place, printed["traces"], done.stderr)
