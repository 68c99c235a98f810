"""``spangrade judge``: hold a judge against people's labels, and correct what it counted by its error rates.

Exit codes: 0 done; 1 nothing was graded, or the error rates could not be written; 2 something cannot work; 130 stopped by Ctrl-C.
"""

import argparse
import json
import os
import sys
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Final

from spangrade.commands.importing import importable_here, imported
from spangrade.errors import ConfigError
from spangrade.experiments.run import CONCURRENCY, EvaluationInterrupted
from spangrade.judges.judge import LlmJudge

OK: Final = 0
NOTHING: Final = 1
WRONG: Final = 2
INTERRUPTED: Final = 130

_LABELS: Final = """\
the labels: JSON Lines (or CSV), one row for each item that was labelled
  id, input, output, expected, documents, metadata    as in any dataset; output is required
  label    "pass" or "fail"; or 1 to 5; or a number from 0 to 1; null: not labelled
  labels   {"ann": "pass", "ben": "fail", "cy": null}: of several annotators, in place of label or beside it.
           A label beside labels is the adjudicated one; else what most say counts, of numbers the median
all labels of a file are on one scale

exit codes: 0 done, 1 nothing was graded or no error rates could be written, 2 something cannot work, 130 stopped"""


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command; returns its exit code."""
    options = _parser().parse_args(argv)
    try:
        with importable_here():
            return _calibrate(options) if options.command == "calibrate" else _correct(options)
    except ConfigError as fault:
        print(f"spangrade judge {options.command}: {fault}", file=sys.stderr)
        return WRONG
    except EvaluationInterrupted as stopped:
        print(f"spangrade judge calibrate: stopped; {len(stopped.results.items)} gradings are lost", file=sys.stderr)
        return INTERRUPTED


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="spangrade judge", description="Judges, and how far to trust them.")
    commands = parser.add_subparsers(dest="command", required=True)
    calibrating = commands.add_parser(
        "calibrate",
        help="hold a judge against people's labels",
        description="Grade labelled items with a judge: agreement, kappa, stability, a pass mark, and error rates.",
        epilog=_LABELS,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    add = calibrating.add_argument
    add("--judge", metavar="FILE[:NAME]", required=True,
        help="YAML with a judge's keys, or a configuration file; or module:name of an LlmJudge")  # fmt: skip
    add("--labels", metavar="FILE", required=True, help="items with people's labels; see below")
    add("--label-scale", choices=["pass-fail", "1-5", "0-1"], help="default: what the labels tell")
    add(
        "--label-pass",
        metavar="LABEL",
        type=float,
        help="the least label that is a pass (default: by the judge's threshold)",
    )
    add(
        "--repeats",
        metavar="N",
        type=int,
        default=1,
        help="gradings of each item; from 2 on test-retest is told (default 1)",
    )
    add("--no-order", action="store_true", help="do not grade again with documents or examples in the other order")
    add(
        "--cluster", metavar="KEY", help="metadata key of items that stand or fall together, such as chunks of one text"
    )
    add("--criterion", choices=["balanced_accuracy", "accuracy", "f1", "kappa"], default="balanced_accuracy",
        help="what the chosen threshold makes largest (default balanced_accuracy, which is Youden's J)")  # fmt: skip
    add("--folds", metavar="N", type=int, default=5, help="held-out folds for the threshold (default 5)")
    add("--concurrency", metavar="N", type=int, default=CONCURRENCY, help=f"gradings at once (default {CONCURRENCY})")
    add("--output", metavar="FILE", help="write figures and error rates, for spangrade judge correct")
    add("--estimate", action="store_true", help="say how many calls, tokens and dollars it takes, and ask nothing")
    add("--json", action="store_true", help="print JSON, and nothing else")
    add("--no-progress", action="store_true", help="no progress bar")
    correcting = commands.add_parser(
        "correct",
        help="correct a pass rate by a calibration",
        description="The pass rate that people would see behind the one that the judge saw (Rogan and Gladen, 1978).",
    )
    add = correcting.add_argument
    add("--calibration", metavar="FILE", required=True, help="what spangrade judge calibrate --output wrote")
    add("--passed", metavar="N", type=int, required=True, help="samples that the judge passed")
    add("--n", metavar="N", type=int, required=True, help="samples that it graded")
    add(
        "--threshold",
        choices=["shipped", "chosen"],
        default="shipped",
        help="which pass mark was used (default shipped)",
    )
    add("--confidence", metavar="C", type=float, default=0.95, help="of the interval (default 0.95)")
    add("--json", action="store_true", help="print JSON")
    return parser


def _calibrate(options: argparse.Namespace) -> int:
    from spangrade.experiments.calibration import plan

    if options.output is not None:
        _check_writable(options.output)
    work = plan(
        _judge(options.judge),
        options.labels,
        repeats=options.repeats,
        order=not options.no_order,
        cluster=options.cluster,
        label_scale=options.label_scale,
        label_pass=options.label_pass,
        folds=options.folds,
        criterion=options.criterion,
        concurrency=options.concurrency,
        progress=False if options.no_progress else None,
    )
    cost = work.cost()
    if options.estimate:
        print(json.dumps(asdict(cost)) if options.json else cost)
        return OK
    print(f"spangrade judge calibrate: {cost}", file=sys.stderr)
    found = work.run()
    print(json.dumps(found.to_dict(), indent=2, ensure_ascii=False) if options.json else found)
    if not found.n:
        return NOTHING
    if options.output is None:
        return OK
    try:
        found.save(options.output)
    except ConfigError as fault:
        print(f"spangrade judge calibrate: {options.output} is not written: {fault}", file=sys.stderr)
        return NOTHING
    print(f"spangrade judge calibrate: error rates written to {options.output}", file=sys.stderr)
    return OK


def _judge(given: str) -> LlmJudge:
    from spangrade.experiments.calibration.judge_file import as_judge, is_judge_file, judge_in

    return judge_in(given) if is_judge_file(given) else as_judge(imported(given, "--judge"), given)


def _correct(options: argparse.Namespace) -> int:
    from spangrade.experiments.calibration import read_calibration

    if options.n < 1 or not 0 <= options.passed <= options.n:
        raise ConfigError(f"--passed {options.passed} of --n {options.n} is no share; give how many passed of how many")
    rates = read_calibration(options.calibration)
    if options.threshold not in rates:
        raise ConfigError(
            f"{options.calibration} has no error rates at the {options.threshold} threshold; it has {', '.join(rates) or 'none'}"
        )
    used = rates[options.threshold]
    observed = options.passed / options.n
    found = used.corrected(observed, options.n, options.confidence)
    if options.json:
        plain = {"observed": observed, "corrected": found.value, "low": found.low, "high": found.high}
        print(json.dumps({**plain, "confidence": found.confidence, "threshold": used.threshold}))
        return OK
    print(
        f"the judge passed {observed:.1%} at {used.threshold:g}; people would pass {found.value:.1%} "
        f"[{found.low:.1%}, {found.high:.1%}]"
    )
    return OK


def _check_writable(path: str) -> None:
    """Before the judge is paid, and not after it."""
    folder = Path(path).resolve().parent
    if not folder.is_dir() or not os.access(folder, os.W_OK):
        raise ConfigError(f"--output {path!r}: the folder {str(folder)!r} is not there, or cannot be written to")
