"""``spangrade explain``: what the evaluators see of a trace and what they do with it, and why.

Exit codes: 0 all of it was read; 1 something in the files could not be read, and is named; 2 it cannot work.
"""

import argparse
import json
import os
import re
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

from spangrade.errors import ConfigError
from spangrade.experiments.live_sample import fetch, trace_id_of
from spangrade.scoring.evaluators import redact_by_patterns
from spangrade.scoring.explain import ExplainError, explain
from spangrade_agent.config import import_paths, read
from spangrade_agent.evaluators import evaluators_of
from spangrade_agent.explain.form import explanation
from spangrade_agent.explain.text import lines
from spangrade_agent.explain.trace_file import read_traces

OK: Final = 0
PARTIAL: Final = 1
WRONG: Final = 2
TOKEN: Final = "SPANGRADE_TOKEN"
CONFIG: Final = "SPANGRADE_CONFIG"


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command; returns its exit code."""
    parser = argparse.ArgumentParser(
        prog="spangrade explain",
        description="Shows for each span of a trace which dialect it is read as, the Sample that each evaluator would see, "
        "what the evaluator would do with it and why, and the setting that would change that. Judges are never asked.",
    )
    add = parser.add_argument
    add(
        "trace",
        nargs="+",
        metavar="TRACE",
        help="files of OTLP JSON (one document, or one a line as the Collector's file exporter writes them; traces and logs), "
        "- for standard input; or the id of a trace that a running agent scored",
    )
    add(
        "--config", metavar="FILE", help=f"whose metrics and judges; default {CONFIG}, else the agent's default metrics"
    )
    add("--run", action="store_true", help="run the metrics too, and show their scores")
    add("--span", metavar="ID", help="only this span (its id, or how it begins)")
    add("--json", action="store_true", help="the whole explanation as JSON, texts uncut")
    add("--agent", metavar="URL", default="http://127.0.0.1:8080", help="the agent's page (default %(default)s)")
    add("--token", metavar="TOKEN", help=f"of the page; default the environment variable {TOKEN}")
    options = parser.parse_args(argv)
    try:
        live = _is_id(options.trace)
        explained = _live(options) if live else _of_files(options)
        _show(_only(explained, options.span), as_json=options.json)
        return PARTIAL if explained["notes"] and not live else OK
    except (ConfigError, ExplainError) as fault:
        print(f"spangrade explain: {fault}", file=sys.stderr)
        return WRONG
    except BrokenPipeError:  # `| head`
        sys.stdout = open(os.devnull, "w")  # noqa: SIM115, PTH123 - what is flushed at the exit goes nowhere
        return OK


def _is_id(given: Sequence[str]) -> bool:
    """One word that is no file, and looks like an id."""
    return (
        len(given) == 1
        and not Path(given[0]).exists()
        and re.fullmatch(r"[0-9a-fA-F-]{32,}(-[a-z]+)?", given[0]) is not None
    )


def _of_files(options: argparse.Namespace) -> dict[str, Any]:
    path = options.config or os.environ.get(CONFIG) or None
    undo = import_paths(path)
    try:
        config = read(path)
        placed = evaluators_of(config)
        found = read_traces(
            ("standard input", sys.stdin.buffer.read()) if name == "-" else Path(name) for name in options.trace
        )
        stories = explain(found.spans, placed, run=options.run)
        return explanation(stories, found.notes, redact_by_patterns(config.redact))
    finally:
        undo()


def _live(options: argparse.Namespace) -> dict[str, Any]:
    trace_id, _, _ = trace_id_of(options.trace[0])
    token = options.token or os.environ.get(TOKEN)
    return fetch(options.agent, f"{trace_id}/explain", token, holds="spans")


def _only(explained: dict[str, Any], span: str | None) -> dict[str, Any]:
    if span is None:
        return explained
    wanted = span.lower()
    kept = [one for one in explained["spans"] if one["span_id"].startswith(wanted)]
    if not kept:
        there = ", ".join(one["span_id"] for one in explained["spans"][:20]) or "none"
        raise ConfigError(f"no span {span!r} is there; there are: {there}")
    return {**explained, "spans": kept}


def _show(explained: dict[str, Any], *, as_json: bool) -> None:
    if as_json:
        print(json.dumps(explained, ensure_ascii=True, indent=2))
        return
    encoding = sys.stdout.encoding or "utf-8"
    for line in lines(explained):
        print(line.encode(encoding, "replace").decode(encoding))
    if not explained["spans"]:
        print("no spans")
