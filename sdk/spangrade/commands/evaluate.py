"""``spangrade evaluate``: a dataset through a task and evaluators, and a gate for CI.

Exit codes: 0 the limits are reached; 1 they are not, or nothing was scored; 2 something cannot work; 130 stopped by Ctrl-C.
"""

import argparse
import json
import os
import sys
from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Final

from spangrade.commands.importing import importable_here, imported
from spangrade.errors import ConfigError
from spangrade.experiments.gate import Finding, findings, limits_of, worse_than_baseline, worst
from spangrade.experiments.results import Results
from spangrade.experiments.run import CONCURRENCY, EvaluationInterrupted, evaluate

OK: Final = 0
BELOW: Final = 1
WRONG: Final = 2
INTERRUPTED: Final = 130


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command; returns its exit code."""
    options = _parser().parse_args(argv)
    try:
        with importable_here(options.config):
            return _run(options)
    except ConfigError as fault:
        print(f"spangrade evaluate: {fault}", file=sys.stderr)
        return WRONG


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="spangrade evaluate",
        description="Run a task over a dataset, grade what it gives, and fail where scores fall under their limits.",
        epilog="exit codes: 0 limits reached, 1 not reached or nothing scored, 2 something cannot work, 130 stopped",
    )
    add = parser.add_argument
    add("dataset", metavar="DATASET", help="JSON Lines or CSV: input, expected, documents, output, metadata, ...")
    add("--task", metavar="MODULE:FUNCTION", help="gives the output for an item; without it outputs are in the dataset")
    add("--metric", metavar="NAME", action="append", default=[], help="a name, or module:attribute; repeatable")
    add("--judge", metavar="MODULE:NAME", action="append", default=[], help="an LlmJudge; repeatable")
    add("--config", metavar="FILE", help="metrics and judges of a configuration file, live or not")
    add("--fail-under", metavar="LIMIT", action="append", default=[],
        help="0.9: every pass rate; NAME=0.8: a mean (lower is better: at most that); NAME.pass_rate=0.9; repeatable")  # fmt: skip
    add("--max-error-rate", metavar="SHARE", type=float, default=0.0,
        help="of the runs, that may fail for a mean to be believed (default 0)")  # fmt: skip
    add("--baseline", metavar="FILE", help="saved results to compare with")
    add("--fail-if-worse", action="store_true", help="fail where the comparison shows a score to be worse")
    add("--output", metavar="FILE", help="save the results as JSON")
    add("--html", metavar="FILE", help="write a report")
    add("--repeats", metavar="N", type=int, default=1, help="how often each item is run (default 1)")
    add("--concurrency", metavar="N", type=int, default=CONCURRENCY, help=f"runs at once (default {CONCURRENCY})")
    add("--timeout", metavar="SECONDS", type=float, help="for the task on one item (default: any time)")
    add(
        "--evaluator-timeout",
        metavar="SECONDS",
        type=float,
        help="for one evaluator on one sample, in place of its own",
    )
    add("--name", metavar="NAME", help="of the experiment")
    add("--metadata", metavar="KEY=VALUE", action="append", default=[], help="kept with the results; repeatable")
    add("--export", action="store_true",
        help="export the runs' traces with their scores, to the file's endpoint or OTEL_EXPORTER_OTLP_ENDPOINT")  # fmt: skip
    add("--json", action="store_true", help="print summary, limits and comparison as JSON, and nothing else")
    add("--no-progress", action="store_true", help="no progress bar")
    return parser


def _run(options: argparse.Namespace) -> int:
    limits = limits_of(options.fail_under)
    if not 0 <= options.max_error_rate <= 1:
        raise ConfigError(f"--max-error-rate {options.max_error_rate:g} is no share from 0 to 1")
    if options.fail_if_worse and options.baseline is None:
        raise ConfigError("--fail-if-worse compares with a baseline; give --baseline FILE")
    for option in ("output", "html"):
        _check_writable(f"--{option}", getattr(options, option))
    if options.html is not None and find_spec("jinja2") is None:
        raise ConfigError('--html needs jinja2: pip install "spangrade[experiments]"')
    task = imported(options.task, "--task") if options.task is not None else None
    evaluators = _evaluators(options)
    if not evaluators:
        raise ConfigError("there is nothing to score with; give --metric, --judge or --config")
    if options.export:
        _export(options.config)
    try:
        results = evaluate(
            options.dataset,
            task,
            evaluators,
            concurrency=options.concurrency,
            repeats=options.repeats,
            baseline=options.baseline,
            name=options.name,
            progress=False if options.no_progress else None,
            metadata=dict(_pair(text) for text in options.metadata),
            timeout=options.timeout,
            evaluator_timeout=options.evaluator_timeout,
        )
    except EvaluationInterrupted as stopped:
        _write(stopped.results, options)
        print(f"spangrade evaluate: stopped after {len(stopped.results.items)} runs", file=sys.stderr)
        return INTERRUPTED
    _write(results, options)
    found = findings(results, limits, options.max_error_rate)
    worse = worse_than_baseline(results) if options.fail_if_worse else []
    nothing = not any(line.n for line in results.summary().values())
    failed = nothing or bool(worse) or any(not one.met for one in found)
    if options.json:
        print(json.dumps(_as_json(results, found, worse, failed), indent=2))
    else:
        _say(results, found, worse, failed)
    if nothing:
        print("spangrade evaluate: nothing was scored", file=sys.stderr)
    return BELOW if failed else OK


def _evaluators(options: argparse.Namespace) -> list[Any]:
    found: list[Any] = [*options.metric, *(imported(path, "--judge") for path in options.judge)]
    if options.config is not None:
        from spangrade.config import FileConfig, load
        from spangrade.scoring.evaluators import placed_evaluators

        config = load(options.config, FileConfig)
        # A judge that is not live grades here all the same; the pipeline's builder would refuse it.
        judges = [judge.model_copy(update={"live": judge.live or True}) for judge in config.judges]
        placed = placed_evaluators(config.metrics, judges, config.judge_endpoints or ())
        found += [one.evaluator for one in placed]
    return found


def _export(config: str | None) -> None:
    import spangrade
    from spangrade.config import FileConfig, load

    file = load(config, FileConfig) if config is not None else FileConfig()
    if file.endpoint is None and not any(name.startswith("OTEL_EXPORTER_OTLP") for name in os.environ):
        raise ConfigError("--export has nowhere to go; set OTEL_EXPORTER_OTLP_ENDPOINT, or endpoint: in --config")
    spangrade.configure(service_name=file.service_name, endpoint=file.endpoint)


def _pair(text: str) -> tuple[str, str]:
    key, mark, value = text.partition("=")
    if not mark or not key.strip():
        raise ConfigError(f"--metadata {text!r} is not KEY=VALUE")
    return key.strip(), value


def _check_writable(option: str, path: str | None) -> None:
    """Before an hour of work, and not after it."""
    if path is None:
        return
    folder = Path(path).resolve().parent
    if not folder.is_dir():
        raise ConfigError(f"{option} {path!r}: there is no folder {str(folder)!r}")
    if not os.access(folder, os.W_OK):
        raise ConfigError(f"{option} {path!r}: the folder {str(folder)!r} cannot be written to")


def _write(results: Results, options: argparse.Namespace) -> None:
    if options.output is not None:
        results.save(options.output)
    if options.html is not None:
        results.to_html(options.html)


def _as_json(results: Results, found: list[Finding], worse: list[str], failed: bool) -> dict[str, Any]:
    plain = results.to_dict()
    return {
        "passed": not failed,
        "run": plain["run"],
        "summary": plain["summary"],
        "limits": [{"name": one.name, "met": one.met, "says": one.sentence} for one in found],
        "worse": worse,
        **({"comparison": results.comparison.to_dict()} if results.comparison is not None else {}),
    }


def _say(results: Results, found: list[Finding], worse: list[str], failed: bool) -> None:
    print(results)
    if results.comparison is not None:
        print(f"\n{results.comparison}")
    if found:
        print()
    for one in found:
        print(f"{'ok  ' if one.met else 'FAIL'}  {one.sentence}")
    for sentence in worse:
        print(f"FAIL  {sentence}")
    if failed and (lines := worst(results)):
        print("\n" + "\n".join(lines))
