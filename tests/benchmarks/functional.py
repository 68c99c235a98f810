"""What a functional metric costs beside its function, and beside ragas 0.4.3's `score` of the same function.

Run by ``make bench-functional``. Ragas is installed in a venv of its own (tests/integration/vendors_venv.py); both libraries
run there, in one process, in turns, on the same functions and inputs. Each figure is the median over the rounds of a
round's median call; the ratio is the median of the rounds' ratios.
"""

import argparse
import asyncio
import os
import statistics
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

from pydantic import BaseModel

from tests.benchmarks.calls import Timed, one_by_one

ROOT = Path(__file__).resolve().parents[2]
GOAL = 20
ANSWER = "A refund takes five working days after the parcel has arrived."
ROWS = 1_000
HEADER = "| functional metric | function µs | ragas 0.4.3 µs | spangrade µs | ragas / spangrade | goal | beside the function µs |"


class Document(BaseModel):
    content: str
    score: float = 0.0


def same(predicted: str, expected: str) -> str:
    return "pass" if predicted.lower() == expected.lower() else "fail"


async def same_later(predicted: str, expected: str) -> str:
    return "pass" if predicted.lower() == expected.lower() else "fail"


def supported(answer: str, documents: list[Document]) -> str:
    # By item: what ragas hands over are dicts.
    texts = [d["content"] if isinstance(d, dict) else d.content for d in documents]
    return "pass" if any(answer in text for text in texts) else "fail"


PAIR = {"predicted": ANSWER, "expected": ANSWER.upper()}
NESTED = {"answer": ANSWER, "documents": [{"content": ANSWER, "score": 0.5}] * 5}


class Row(NamedTuple):
    """The same work, done three times: by the function alone, by ragas, by ours. ``each``: items in one call."""

    name: str
    bare: Callable[[], Any]
    ragas: Callable[[], Any]
    ours: Callable[[], Any]
    each: int = 1
    goal: int | None = None


def rows() -> list[Row]:
    """What is measured."""
    from ragas.metrics import discrete_metric as theirs  # type: ignore[import-not-found]

    import spangrade as sg

    def row(name: str, fn: Callable[..., Any], inputs: dict[str, Any], goal: int | None = None) -> Row:
        ours, ragas = sg.discrete_metric(name="m")(fn), theirs(name="m")(fn)
        assert ours.score(**inputs).value == ragas.score(**inputs).value == "pass"
        return Row(name, lambda: fn(**inputs), lambda: ragas.score(**inputs), lambda: ours.score(**inputs), goal=goal)

    later, their_later = sg.discrete_metric(same_later), theirs()(same_later)
    plain, their_plain = sg.discrete_metric(same), theirs()(same)
    many = [PAIR] * ROWS
    return [
        row("two texts", same, PAIR, GOAL),
        row("a text and five nested models", supported, NESTED),
        Row(
            "two texts, a coroutine function",
            lambda: asyncio.run(same_later(**PAIR)),
            lambda: their_later.score(**PAIR),
            lambda: later.score(**PAIR),
        ),
        Row(
            f"two texts, each of {ROWS} in batch_score",
            lambda: [same(**item) for item in many],
            lambda: their_plain.batch_score(many),
            lambda: plain.batch_score(many),
            ROWS,
        ),
    ]


def measure(rounds: int, calls: int) -> None:
    """In the venv: print the table."""
    print(HEADER)
    print("|---|---|---|---|---|---|---|")
    for row in rows():
        timed: list[Timed] = [one_by_one(call) for call in (row.bare, row.ragas, row.ours)]
        found = []
        for _ in range(rounds):
            times = max(3, calls // row.each)
            found.append([statistics.median(one(times)) / 1e3 / row.each for one in timed])
        bare, ragas, ours = (statistics.median(column) for column in zip(*found, strict=True))
        ratio = statistics.median(r / o for _, r, o in found)
        beside = statistics.median(o - b for b, _, o in found)
        goal = f"{row.goal}" if row.goal else ""
        print(
            f"| {row.name} | {bare:.2f} | {ragas:.0f} | {ours:.2f} | {ratio:.0f} | {goal} | {beside:.2f} |", flush=True
        )


def main() -> None:
    """Install ragas where it is missing, and measure there."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--calls", type=int, default=200)
    parser.add_argument("--here", action="store_true", help="measure with this Python, which has ragas")
    options = parser.parse_args()
    if options.here:
        measure(options.rounds, options.calls)
        return
    from tests.integration.vendors_venv import ensure_vendors

    python = ensure_vendors(Path(__file__).with_name("ragas.txt"))
    command = [str(python), "-m", "tests.benchmarks.functional", "--here"]
    numbers = ["--rounds", str(options.rounds), "--calls", str(options.calls)]
    path = os.pathsep.join((str(ROOT / "sdk"), str(ROOT)))
    # Ragas counts its users over the network unless it is told not to.
    env = {**os.environ, "PYTHONPATH": path, "RAGAS_DO_NOT_TRACK": "true"}
    sys.exit(subprocess.run([*command, *numbers], env=env, cwd=ROOT, check=False).returncode)


if __name__ == "__main__":
    main()
