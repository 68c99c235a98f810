"""Runs the application with several vendors' SDKs, and tells what arrived where."""

from __future__ import annotations

import json
import os
import re
import subprocess
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from .loopback import ANSWER, JsonObject, Places, serve
from .vendors_venv import ensure_vendors, install_ours

HERE = Path(__file__).parent
PROGRAM = HERE / "beside_others" / "program.py"
EVENT = "gen_ai.evaluation.result"
CALLS = 3
EXIT_S = 5.0  # promised: the exit takes at most five seconds longer
OVERRIDING = "Overriding of current TracerProvider is not allowed"

# Printed at exit where its queue is not empty yet, which is a matter of luck with us and without.
SENTRYS_FAREWELL = re.compile(r"Sentry is attempting to send \d+ pending events\n.*\nPress Ctrl-\S+ to quit\n")


@dataclass
class Ran:
    """How a program ended, and what arrived where."""

    stderr: str
    answers: list[str]
    exit_s: float
    stop_s: float  # the seconds that it took to stop what was to be stopped
    places: Places

    def theirs(self, place: str) -> Counter[str]:
        """The spans at a vendor's place by name, without our evaluation spans."""
        return Counter(span["name"] for span in self.places.spans(place) if not is_evaluation(span))

    def evaluations(self, place: str) -> list[JsonObject]:
        return [span for span in self.places.spans(place) if is_evaluation(span)]

    def scored_spans(self, place: str) -> list[JsonObject]:
        """Spans that came with scores on them."""
        return [span for span in self.places.spans(place) if not is_evaluation(span) and scores(span)]

    def transactions(self) -> list[Any]:
        """Sentry's, each with the names of its spans, without what is different in each run."""
        return sorted(
            [one["transaction"], sorted(str(span.get("op")) for span in one["spans"])]
            for one in self.places.transactions()
        )


class ProgramError(Exception):
    """A program did not end as it should: not what a test that is known to fail may fail with."""


def is_evaluation(span: JsonObject) -> bool:
    return bool(span["scope"] == "spangrade" and span["name"].startswith("evaluation "))


def scores(span: JsonObject) -> list[str]:
    """The evaluators whose scores are events of this span."""
    return [event["attributes"]["gen_ai.evaluation.name"] for event in span["events"] if event["name"] == EVENT]


def scored_calls(spans: list[JsonObject]) -> list[str]:
    """The scored span of each evaluation span."""
    return [span["parent_id"] for span in spans]


Run = Callable[..., Ran]


def runs(versions: str, folder: Path) -> Run:
    """Runs the program with a server of its own; the same program once for all tests, which only look at what came.

    ``versions``: of the vendors' packages, ``newest`` or ``oldest``.
    """
    python = ensure_vendors(HERE / f"vendors_{versions}.txt")
    ours = install_ours(python, folder)
    known: dict[str, Ran] = {}

    def go(*start: str, **said: Any) -> Ran:
        key = json.dumps([start, said])
        if key not in known:
            known[key] = run_program(python, ours, {"start": start, "calls": CALLS, **said})
        assert known[key].exit_s < EXIT_S, known[key].stderr
        return known[key]

    return go


def run_program(python: Path, ours: Path, said: JsonObject) -> Ran:
    env = {name: value for name, value in os.environ.items() if not name.startswith(("OTEL_", "SPANGRADE_", "SENTRY_"))}
    env.update(PYTHONPATH=str(ours), NO_PROXY="127.0.0.1", no_proxy="127.0.0.1", HOME=str(ours))
    with serve() as places:
        command = [str(python), str(PROGRAM), json.dumps({"base": places.base, **said})]
        done = subprocess.run(command, env=env, cwd=ours, capture_output=True, text=True, timeout=90, check=False)
        ended = time.time()
    if done.returncode != 0:
        raise ProgramError(f"exit code {done.returncode}: {done.stderr}")
    (line,) = done.stdout.splitlines()  # quiet: nobody else prints
    told = json.loads(line)
    rounds = 2 if said.get("stop") else 1
    assert told["answers"] == [ANSWER] * said["calls"] * rounds
    assert places.questions == said["calls"] * rounds
    assert places.unknown in ([], ["/langfuse/api/public/ingestion"]), places.unknown
    stderr = SENTRYS_FAREWELL.sub("", done.stderr)
    return Ran(stderr, told["answers"], ended - told["ended_at"], told["stop_s"], places)
