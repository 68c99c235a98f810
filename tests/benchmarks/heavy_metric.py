"""What a metric that keeps the processor busy does to the application beside it (case C118).

``python -m tests.benchmarks.heavy_metric``. An endpoint that takes 1 ms is asked 100 times a second on an event loop; the
metric of every tenth call takes 200 ms of pure Python: two whole cores' worth. Printed is how long the endpoint really
took, without such a metric, with it on our threads (the default), and with ``process=True``. The variants are run in turns.
"""

import argparse
import asyncio
import statistics
import time
from typing import Any

import spangrade as sg
from spangrade.testing import CollectingExporter
from tests.benchmarks.heavy_functions import in_processes, in_threads

RATE = 100
VARIANTS: dict[str, list[Any]] = {
    "no metric": [],
    "on our threads": [in_threads],
    "process=True": [in_processes],
}


@sg.trace
async def endpoint(n: int) -> str:
    await asyncio.sleep(0.001)
    return f"answer {n}"


async def asked(seconds: float) -> list[float]:
    """Milliseconds for each request."""
    times: list[float] = []

    async def one(n: int) -> None:
        began = time.perf_counter()
        await endpoint(n)
        times.append((time.perf_counter() - began) * 1e3)

    async with asyncio.TaskGroup() as group:
        for n in range(int(RATE * seconds)):
            group.create_task(one(n))
            await asyncio.sleep(1 / RATE)
    return times


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=4.0)
    given = parser.parse_args()
    found: dict[str, list[tuple[float, float]]] = {name: [] for name in VARIANTS}
    for _ in range(given.rounds):
        for name, metrics in VARIANTS.items():
            sg.configure(metrics=metrics, exporter=CollectingExporter())
            asyncio.run(asked(0.5))  # workers start
            sg.flush(30)
            cuts = statistics.quantiles(asyncio.run(asked(given.seconds)), n=100)
            found[name].append((cuts[49], cuts[98]))
            sg.shutdown()
    print(f"{given.rounds} rounds of {given.seconds:g} s, {RATE} requests a second; medians over the rounds, ms")
    print(f"{'metric':18}{'p50':>8}{'p99':>8}{'p99, x none':>14}")
    for name, rounds in found.items():
        ratio = statistics.median(mine[1] / none[1] for mine, none in zip(rounds, found["no metric"], strict=True))
        p50, p99 = (statistics.median(column) for column in zip(*rounds, strict=True))
        print(f"{name:18}{p50:>8.2f}{p99:>8.2f}{ratio:>14.1f}")


if __name__ == "__main__":
    main()
