"""``spangrade dataset add TRACE_ID``: a live sample from an agent's store becomes an item of a dataset.

Exit codes: 0 it is in the dataset; 1 another item of its id is there; 2 something cannot work.
"""

import argparse
import json
import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

from spangrade.errors import ConfigError
from spangrade.experiments.dataset_append import add_row
from spangrade.experiments.live_sample import LiveSample, choose, fetch, row_of, trace_id_of

OK: Final = 0
DIFFERS: Final = 1
WRONG: Final = 2
TOKEN: Final = "SPANGRADE_TOKEN"


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command; returns its exit code."""
    parser = argparse.ArgumentParser(prog="spangrade dataset", description="Datasets for spangrade evaluate.")
    commands = parser.add_subparsers(dest="command", required=True)
    adding = commands.add_parser(
        "add",
        help="a live sample becomes an item",
        description="Add a live sample, from the agent's store, to a dataset.",
    )
    add = adding.add_argument
    add("trace_id", metavar="TRACE_ID", help="32 hex digits; or a sample's id, as on the agent's page")
    add("--dataset", metavar="FILE", required=True, help="JSON Lines; made if it is not there")
    add("--span", metavar="SPAN_ID", help="which sample of the trace, where there are several")
    add("--target", metavar="TARGET", help="the same: root, llm, retriever, ...")
    add("--expected", metavar="TEXT", help="what the answer should have been")
    add("--expected-output", action="store_true", help="the live answer is what it should be")
    add("--agent", metavar="URL", default="http://127.0.0.1:8080", help="the agent's page (default %(default)s)")
    add("--token", metavar="TOKEN", help=f"of the page; default the environment variable {TOKEN}")
    add("--replace", action="store_true", help="put it in the place of an item of the same id")
    options = parser.parse_args(argv)
    try:
        return _add(options)
    except ConfigError as fault:
        print(f"spangrade dataset add: {fault}", file=sys.stderr)
        return WRONG


def _add(options: argparse.Namespace) -> int:
    if options.expected is not None and options.expected_output:
        raise ConfigError("--expected and --expected-output say two things; give one")
    found = _found(options)
    row = found.row
    if options.expected_output:
        if row.get("output") is None:
            raise ConfigError("--expected-output: the sample has no output")
        row = {**row, "expected": row["output"]}
    done = add_row(Path(options.dataset), row, replace=options.replace)
    if done == "differs":
        print(
            f"spangrade dataset add: {options.dataset} has another item {row['id']!r}; --replace puts this one in its place",
            file=sys.stderr,
        )
        return DIFFERS
    words = {"added": "added to", "there": "is already in", "replaced": "replaced in"}
    print(f"{row['id']} {words[done]} {options.dataset}: {_short(row.get('input'))}")
    for note in found.notes:
        print(f"note: {note}", file=sys.stderr)
    return OK


def _found(options: argparse.Namespace) -> LiveSample:
    trace_id, span, target = trace_id_of(options.trace_id)
    answer = fetch(options.agent, trace_id, options.token or os.environ.get(TOKEN))
    sample = choose(answer["samples"], options.span or span, options.target or target)
    return row_of(sample, str(answer.get("content")), options.expected)


def _short(value: Any) -> str:
    text = " ".join((value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)).split())
    return text if len(text) <= 60 else f"{text[:59]}…"
