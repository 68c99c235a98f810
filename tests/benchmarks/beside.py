"""What scoring beside an application costs it: the latency of its event loop, and the memory of spans that wait."""

import asyncio
import gc
import os
import statistics
import subprocess
import sys
import threading
import time
from typing import Any

import spangrade as sg
from tests.benchmarks.calls import ANSWER, PAYLOAD, Nowhere

WINDOWS = 8
SECONDS = 1.5
PER_SECOND = 500
HELD = 3_000


async def _pings(seconds: float) -> list[float]:
    """Microseconds that a loopback echo takes, one ping after the other, a millisecond apart."""

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while line := await reader.readline():
                writer.write(line)
        except asyncio.CancelledError:  # the window is over
            writer.close()

    server = await asyncio.start_server(answer, "127.0.0.1", 0)
    reader, writer = await asyncio.open_connection(*server.sockets[0].getsockname()[:2])
    took, end = [], time.perf_counter() + seconds
    while time.perf_counter() < end:
        started = time.perf_counter()
        writer.write(b"ping\n")
        await reader.readline()
        took.append((time.perf_counter() - started) * 1e6)
        await asyncio.sleep(0.001)
    writer.close()
    server.close()
    return took


def scored_beside_an_event_loop() -> None:
    """An asyncio echo, idle and while 500 calls a second are traced on its loop and scored beside it, in turns."""

    @sg.trace
    async def call(payload: Any) -> str:
        return ANSWER

    async def calls(stop: asyncio.Event) -> None:
        while not stop.is_set():
            await call(PAYLOAD)
            await asyncio.sleep(1 / PER_SECOND)

    async def window(busy: bool) -> list[float]:
        stop = asyncio.Event()
        working = asyncio.ensure_future(calls(stop)) if busy else None
        took = await _pings(SECONDS)
        stop.set()
        if working is not None:
            await working
        return took

    found: dict[bool, list[list[float]]] = {False: [], True: []}
    for _ in range(WINDOWS):
        for busy in (False, True):
            found[busy].append(asyncio.run(window(busy)))
            sg.flush(10)
    print("| an asyncio echo beside it | p50 µs | p99 µs | x idle (p99) | goal |")
    print("|---|---|---|---|---|")
    p99 = {busy: [statistics.quantiles(took, n=100)[98] for took in windows] for busy, windows in found.items()}
    for busy, name in ((False, "idle"), (True, "500 calls a second traced and scored")):
        p50 = statistics.median(statistics.median(took) for took in found[busy])
        ratio = statistics.median(a / b for a, b in zip(p99[busy], p99[False], strict=True))
        print(f"| {name} | {p50:.0f} | {statistics.median(p99[busy]):.0f} | {ratio:.2f} | {'2.00' if busy else ''} |")
    print(flush=True)


def held_in_memory() -> None:
    """Spans that wait for a metric, in a process of their own, beside their content alone (two texts each)."""
    found = {
        what: int(
            subprocess.run(
                [sys.executable, "-m", "tests.benchmarks.beside", what], check=True, capture_output=True, text=True
            ).stdout
        )
        for what in ("nothing", "content", "spans")
    }
    content, spans = (found[what] - found["nothing"] for what in ("content", "spans"))
    print("| memory | KB each | x content | goal |")
    print("|---|---|---|---|")
    print(f"| content alone | {content / HELD / 1024:.2f} | 1.00 | |")
    print(f"| a held span with it | {spans / HELD / 1024:.2f} | {spans / content:.2f} | 1.30 |")
    print(flush=True)


def _resident() -> int:
    gc.collect()
    with open("/proc/self/statm") as statm:  # noqa: PTH123
        return int(statm.read().split()[1]) * 4096


def _in_process(what: str) -> None:
    gate = threading.Event()

    @sg.metric(timeout=120)
    def waits(output: str) -> float:
        gate.wait(60)
        return 1.0

    @sg.trace
    def call(text: str) -> str:
        return text + "!"

    sg.configure(metrics=[waits], exporter=Nowhere(), hold=60)
    call("warm up")
    kept = []
    before = _resident()
    for n in range(HELD if what != "nothing" else 0):
        if what == "content":
            question = f"{n} " + ANSWER
            kept.append((question, question + "!"))
        else:
            call(f"{n} " + ANSWER)
    print(_resident() - before, flush=True)
    os._exit(0)  # nothing of it is to be scored any more


if __name__ == "__main__":
    _in_process(sys.argv[1])
