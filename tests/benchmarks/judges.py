"""Judges under load: what one process gets out of an endpoint, what that costs the application, and how it finds a limit.

``make bench-judges``, or ``python -m tests.benchmarks.judges``; about two minutes. The endpoint is a process of its own, on the loopback.
Windows with busy and idle judges are in turns, in both of them 105 calls a second are traced; what is printed is the median of
windows. On a machine that others use too the ratios say more than the milliseconds, and what a bare loop of calls reaches says
what the machine gives.
"""

import argparse
import os
import statistics
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import spangrade as sg
from spangrade.errors import JudgeError
from spangrade.judges.providers.base import JudgeRequest, Message
from spangrade.judges.providers.openai_compatible import OpenAICompatible
from tests.benchmarks.calls import ANSWER, Nowhere
from tests.benchmarks.judge_bare import bare
from tests.benchmarks.judge_server import serving, stats

CONCURRENCY = 200
DELAY_S = 2.0
ALLOWED = CONCURRENCY / DELAY_S  # Little's law: calls a second = calls at once / seconds that one takes
RAMP_S = 60
SERVER_LIMIT = 20
SERVER_DELAY_S = 0.5
SERVER_ALLOWED = SERVER_LIMIT / SERVER_DELAY_S


@sg.trace(kind="tool")  # never a root: no judge looks at it
def not_judged(question: str) -> str:
    """The application's call that is timed, and the load beside idle judges."""
    return ANSWER


@sg.trace
def judged(question: str) -> str:
    """A call that a judge grades."""
    return ANSWER


@contextmanager
def _load(call: Callable[[str], str], per_second: float) -> Iterator[None]:
    """Calls from another thread, evenly."""
    over = threading.Event()

    def work() -> None:
        due = time.perf_counter()
        while not over.wait(max(0.0, due - time.perf_counter())):
            call("What does a span hold?")
            due += 1 / per_second

    thread = threading.Thread(target=work)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()


def _timed(seconds: float) -> list[float]:
    """Microseconds that a traced call takes on the application's thread, one every two milliseconds."""
    took, end = [], time.perf_counter() + seconds
    while time.perf_counter() < end:
        started = time.perf_counter()
        not_judged("What does a span hold?")
        took.append((time.perf_counter() - started) * 1e6)
        time.sleep(0.002)
    return took


def _status(name: str) -> int:
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith(name):
            return int(line.split()[1])
    return 0


def _until_all_are_under_way(judge: sg.LlmJudge) -> None:
    """Wait for the limiter to let `CONCURRENCY` calls go. It may not: where the machine is so busy that replies are late, that
    looks to it like an endpoint with fewer slots."""
    deadline = time.perf_counter() + RAMP_S
    while (gate := judge.gate) is None or gate.state().in_flight < CONCURRENCY:
        if time.perf_counter() > deadline:
            raise SystemExit(f"not {CONCURRENCY} calls under way after {RAMP_S} s, but this: {gate and gate.state()}")
        time.sleep(0.05)


def frontier(rounds: int, seconds: float) -> None:
    """An endpoint that takes two seconds and answers two hundred at once."""
    rates: list[float] = []
    bares: list[float] = []
    times: dict[bool, list[list[float]]] = {False: [], True: []}
    with serving(DELAY_S) as origin:
        os.environ |= {"SPANGRADE_JUDGE_BASE_URL": f"{origin}/v1", "SPANGRADE_JUDGE_MODEL": "bench"}
        helpful = sg.LlmJudge("helpful", "It answers the question.")
        sg.configure(judges=[sg.live(helpful, rate=1.0)], exporter=Nowhere())
        not_judged("warm up")
        before_kb, before_cpu = _status("VmRSS:"), time.process_time()
        began = time.perf_counter()
        ramp = 0.0
        threads = kb = 0
        for turn in range(rounds):
            with _load(not_judged, ALLOWED * 1.05):
                times[False].append(_timed(seconds))
            for _ in range(CONCURRENCY * (2 if turn else 4)):  # enough to do while the limit is being found
                judged("What does a span hold?")
            with _load(judged, ALLOWED * 1.05):
                began = began if turn else time.perf_counter()
                _until_all_are_under_way(helpful)
                ramp = ramp or time.perf_counter() - began
                first = stats(origin)
                times[True].append(_timed(seconds))
                last = stats(origin)
                rates.append((last.replies - first.replies) / (last.at - first.at))
                threads, kb = threading.active_count(), _status("VmRSS:")
            sg.flush(60)
            with serving(DELAY_S) as another:
                bares.append(bare(another, CONCURRENCY, seconds))
        done = stats(origin)
        calls, most = done.replies, done.most
        cpu = time.process_time() - before_cpu
    sg.shutdown()
    print(f"| endpoint: {DELAY_S:g} s a reply, {CONCURRENCY} at once | calls/s | of what Little's law allows | goal |")
    print("|---|---|---|---|")
    for name, found in (("one process, judges busy", rates), ("a bare loop, in turns with them", bares)):
        rate = statistics.median(found)
        print(
            f"| {name} | {rate:.1f} ({min(found):.1f}-{max(found):.1f}) | {rate / ALLOWED:.1%} | {'95%' if found is rates else ''} |"
        )
    ratio = statistics.median(a / b for a, b in zip(rates, bares, strict=True))
    print(f"\njudges / bare loop: {ratio:.1%}; what it does not reach, the machine does not give now\n")
    print(
        f"{ramp:.1f} s from the first call to {CONCURRENCY} under way; at most {most} at once; {threads} threads, "
        f"{(kb - before_kb) / 1024:.0f} MB more than before; {cpu / calls * 1e3:.1f} ms of processor time per judged call, "
        "all traced calls included\n"
    )
    print("| a traced call on the application's thread | p50 µs | p99 µs | x idle (p50) | x idle (p99) |")
    print("|---|---|---|---|---|")
    p50 = {busy: [statistics.median(took) for took in windows] for busy, windows in times.items()}
    p99 = {busy: [statistics.quantiles(took, n=100)[98] for took in windows] for busy, windows in times.items()}
    for busy, name in ((False, "judges idle"), (True, f"judges busy, {CONCURRENCY} calls under way")):
        x50, x99 = (statistics.median(a / b for a, b in zip(p[busy], p[False], strict=True)) for p in (p50, p99))
        print(
            f"| {name} | {statistics.median(p50[busy]):.0f} | {statistics.median(p99[busy]):.0f} | {x50:.2f} | {x99:.2f} |"
        )
    print(flush=True)


def adaptive(seconds: float) -> None:
    """An endpoint that refuses more than twenty at once, called by sixty threads that each want an answer."""
    request = JudgeRequest("bench", (Message("system", "s"), Message("user", "u")), timeout=60)
    limits: list[int] = []
    errors: list[str] = []
    with serving(SERVER_DELAY_S, SERVER_LIMIT) as origin:
        client = OpenAICompatible(f"{origin}/v1")
        end = time.perf_counter() + seconds

        def work() -> None:
            while time.perf_counter() < end:
                try:
                    client.complete(request)
                except JudgeError as fault:
                    errors.append(str(fault))

        threads = [threading.Thread(target=work) for _ in range(3 * SERVER_LIMIT)]
        for thread in threads:
            thread.start()
        time.sleep(seconds / 4)  # the limit is found
        first = stats(origin)
        while time.perf_counter() < end:
            limits.append(client.limiter.state().limit)
            time.sleep(0.1)
        last = stats(origin)
        for thread in threads:
            thread.join()
        client.close()
    replies, refused = last.replies - first.replies, last.refused - first.refused
    rate, low, high = replies / (last.at - first.at), min(limits), max(limits)
    print(
        f"| endpoint: 429 above {SERVER_LIMIT} at once | limit, median (range) | calls/s | of Little's law | refused |"
    )
    print("|---|---|---|---|---|")
    print(
        f"| 60 callers | {statistics.median(limits):g} ({low}-{high}) | {rate:.1f} | {rate / SERVER_ALLOWED:.1%} | "
        f"{refused / (replies + refused):.2%} |\n"
    )
    print(f"while the limit was being found: {first.refused} refused; calls that failed in the end: {len(errors)}")


def main() -> None:
    """Print all tables."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--seconds", type=float, default=10.0, help="of a window")
    options = parser.parse_args()
    frontier(options.rounds, options.seconds)
    adaptive(options.seconds * 3)


if __name__ == "__main__":
    main()
