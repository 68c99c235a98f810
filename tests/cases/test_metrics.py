"""C112 to C115, C117, C118 and C120: what metrics return, hang on, call, raise and cost; which traces judges see."""

import asyncio
import decimal
import os
import subprocess
import sys
import threading
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from opentelemetry import trace as trace_api
from tests.cases.conftest import Product

import spangrade as sg
from spangrade import semconv as s
from spangrade.model.outcome import Outcome
from spangrade.otel.engine import current_engine
from spangrade.scoring.outcomes import Counts
from spangrade.scoring.selection import chosen
from spangrade.scoring.settings import Settings
from spangrade.scoring.turn import STRIKES
from spangrade.testing import event_scores


@sg.trace
def answer(question: str) -> str:
    return f"answer to {question}"


def counts(name: str) -> Counts:
    engine = current_engine()
    assert engine is not None
    return next(c for c in engine.ledger.snapshot().values() if c.name == name)


def returns(name: str, value: Any) -> sg.LocalMetric:
    def metric(sample: sg.Sample) -> Any:
        return value() if callable(value) else value

    return sg.metric(name=name)(metric)


# --- C112 ------------------------------------------------------------------------------------------------------------------


class Float32:
    """Like numpy.float32: no float, and has ``item``."""

    def __float__(self) -> float:
        return 0.25

    def item(self) -> float:
        return 0.25


async def later() -> float:
    return 0.75


# What is returned, and what is on the wire: a number, a label, a structured value; None is a skip, an Exception an error.
TABLE: dict[str, tuple[Any, Any]] = {
    "float": (0.5, 0.5),
    "int": (1, 1.0),
    "true": (True, 1.0),
    "false": (False, 0.0),
    "none": (None, None),
    "nan": (float("nan"), ValueError),
    "inf": (float("inf"), ValueError),
    "text_number": ("0.5", ValueError),
    "label": ("good", "good"),
    "empty_text": ("", ValueError),
    "tuple": ((0.5, "because"), (0.5, "because")),
    "dict": ({"score": 0.5, "reason": "because"}, (0.5, "because")),
    "empty_dict": ({}, ValueError),
    "numpy_like": (Float32(), 0.25),
    "decimal": (decimal.Decimal("0.5"), 0.5),
    "list": ([1, 2], [1, 2]),
    "coroutine": (later, 0.75),
    "out_of_range": (7, 7.0),  # a plain metric has no range: numeric_metric(allowed_values=(0, 1)) makes it an error
    "negative": (-1, -1.0),
    "complex": (1 + 2j, ValueError),
    "object": (object(), ValueError),
}


def test_c112_what_a_metric_returns_is_a_number_a_label_a_skip_or_an_error_and_never_a_wrong_number(
    product: Product,
) -> None:
    product.configure(*(returns(name, value) for name, (value, _) in TABLE.items()))
    assert answer("x") == "answer to x"
    events = event_scores(product.only("answer"))
    for name, (_, expected) in TABLE.items():
        event = events.get(name)
        if expected is None:
            assert event is None
            assert counts(name).of(Outcome.SKIPPED) == 1
        elif expected is ValueError:
            assert event is not None
            assert event[s.ERROR_TYPE] == "ReturnError"
            assert not {s.SCORE_VALUE, s.SCORE_LABEL, s.VALUE_JSON} & set(event)
            assert "return" in str(event[s.EXPLANATION])
        elif isinstance(expected, list):
            assert (event or {})[s.VALUE_JSON] == "[1,2]"
        elif isinstance(expected, str):
            assert (event or {})[s.SCORE_LABEL] == expected
            assert s.SCORE_VALUE not in (event or {})
        else:
            value, why = expected if isinstance(expected, tuple) else (expected, None)
            assert ((event or {})[s.SCORE_VALUE], (event or {}).get(s.EXPLANATION)) == (value, why)


def test_c112_a_reason_of_two_megabytes_is_cut_and_the_number_stays(product: Product) -> None:
    product.configure(returns("huge", (0.5, "r" * 2_000_000)))
    answer("x")
    event = event_scores(product.only("answer"))["huge"]
    assert event[s.SCORE_VALUE] == 0.5
    assert 1_000 < len(str(event[s.EXPLANATION])) < 10_000


def test_c112_the_table_is_the_scripts_own() -> None:
    """Nothing that the case lists is left out here."""
    script = Path(__file__).resolve().parents[3] / "shared" / "cases" / "inputs" / "C112_metric_returns.py"
    if not script.is_file():
        pytest.skip("the cases from the field are not beside this checkout (../shared/cases)")
    text = script.read_text(encoding="utf-8")
    named = text[text.index("CASES = {") : text.index("has = None")]
    for name in (*TABLE, "huge_reason"):
        assert f'"{name}":' in named
    assert named.count('": (') == len(TABLE) + 1


# --- C113 ------------------------------------------------------------------------------------------------------------------


def test_c113_one_that_hangs_is_paused_after_repeated_time_outs_and_costs_the_others_nothing(product: Product) -> None:
    """Sync and async alike; what is not run is counted."""
    release = threading.Event()

    @sg.metric(timeout=0.05)
    def sleeper(sample: sg.Sample) -> float:
        release.wait()
        return 1.0

    @sg.metric(timeout=0.05)
    async def never(sample: sg.Sample) -> float:
        await asyncio.Event().wait()
        return 1.0

    product.configure(sleeper, never)
    for n in range(12):
        answer(str(n))
    assert sg.flush(60)
    release.set()
    assert len(product.samples) == counts("seen").of(Outcome.SCORED) == 12
    before = {name: counts(name).of(Outcome.TIMEOUT) for name in ("sleeper", "never")}
    for name in before:
        found = counts(name)
        assert found.met == found.of(Outcome.TIMEOUT) + found.outcomes[Outcome.DROPPED, "paused"] == 12
        assert found.of(Outcome.TIMEOUT) >= STRIKES
    answer("again")
    assert sg.flush(60)
    assert {name: 13 - counts(name).of(Outcome.DROPPED) for name in before} == before


# --- C114, C115 --------------------------------------------------------------------------------------------------------------


def test_c114_what_a_metric_calls_is_never_a_sample_and_in_no_trace_of_the_applications(product: Product) -> None:
    runs: list[str] = []

    @sg.metric
    def home_made_judge(sample: sg.Sample) -> float:
        runs.append(str(sample.output))
        answer(f"please grade: {sample.output}")  # the very function that it scores
        with trace_api.get_tracer("client").start_as_current_span(
            "model", attributes={s.OI_KIND: "LLM", s.OI_INPUT: "q"}
        ):
            return 1.0

    product.configure(home_made_judge)
    answer("one real question")
    assert len(product.samples) == 1
    assert sg.flush(10)  # whatever came of the first
    assert runs == ["answer to one real question"]
    real, inner = product.only("answer"), product.only("model")
    assert inner.context.trace_id != real.context.trace_id
    assert not event_scores(inner)


def test_c115_async_metrics_share_one_loop_and_plain_ones_may_run_their_own(product: Product) -> None:
    loops: list[int] = []

    @sg.metric
    async def keeps_a_client(sample: sg.Sample) -> float:
        loops.append(id(asyncio.get_running_loop()))
        return 1.0

    @sg.metric
    def runs_its_own(sample: sg.Sample) -> float:
        return asyncio.run(asyncio.sleep(0, 0.5))

    product.configure(keeps_a_client, runs_its_own)

    async def handle(n: int) -> str:
        return answer(str(n))

    for n in range(3):
        asyncio.run(handle(n))
    assert sg.flush(10)
    assert len(loops) == 3
    assert len(set(loops)) == 1
    assert counts("runs_its_own").of(Outcome.SCORED) == 3


# --- C117 ------------------------------------------------------------------------------------------------------------------


def test_c117_a_metric_that_raises_is_an_error_of_its_own_said_once_and_the_others_score(
    product: Product, caplog: pytest.LogCaptureFixture
) -> None:
    @sg.metric
    def divides(sample: sg.Sample) -> float:
        return len(str(sample.output)) / 0

    product.configure(returns("before", 0.5), divides, returns("after", 1.0))
    with caplog.at_level("INFO", logger="spangrade"):
        for n in range(50):
            answer(str(n))
        spans = product.named("answer")
    assert len(spans) == 50
    for span in spans:
        events = event_scores(span)
        assert (events["before"][s.SCORE_VALUE], events["after"][s.SCORE_VALUE]) == (0.5, 1.0)
        assert (events["divides"][s.ERROR_TYPE], events["divides"][s.EXPLANATION]) == (
            "ZeroDivisionError",
            "division by zero",
        )
        assert s.SCORE_VALUE not in events["divides"]
    said = [record.getMessage() for record in caplog.records if "divides" in record.getMessage()]
    assert len(said) == 1
    assert "ZeroDivisionError" in said[0]


# --- C118 ------------------------------------------------------------------------------------------------------------------


def test_c118_a_metric_may_occupy_two_threads_and_no_more_however_many_calls_come(product: Product) -> None:
    gate, lock, now, most = threading.Event(), threading.Lock(), 0, 0

    @sg.metric(timeout=60)
    def heavy(sample: sg.Sample) -> float:
        nonlocal now, most
        with lock:
            now += 1
            most = max(most, now)
        gate.wait(30)
        with lock:
            now -= 1
        return 1.0

    others = threading.Semaphore(0)

    @sg.metric
    def light(sample: sg.Sample) -> None:
        others.release()

    product.configure(heavy, light)
    for n in range(30):
        answer(str(n))
    for _ in range(30):  # all others are done: this one alone is at its limit
        assert others.acquire(timeout=30)
    gate.set()
    assert sg.flush(30)
    assert most == Settings().metric_limit == 2


@pytest.mark.skipif(not hasattr(os, "sched_getaffinity"), reason="asks the system how much processor time this took")
def test_c118_a_heavy_metric_takes_no_processor_time_of_the_applications_with_process_true(
    product: Product, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "heavy_app.py").write_text(
        "import os, time, spangrade as sg\n\n\n"
        "@sg.metric(process=True, timeout=60, verdict=False)\n"
        "def heavy(output):\n"
        "    began = time.process_time()\n"
        "    while time.process_time() - began < 0.5:\n"
        "        sum(range(1_000))\n"
        "    return {'pid': os.getpid(), 'took': time.process_time() - began}\n"
    )
    monkeypatch.syspath_prepend(str(tmp_path))
    import heavy_app  # type: ignore[import-not-found]

    before = os.times()
    product.configure(heavy_app.heavy, hold=60)
    answer("x")
    assert sg.flush(60)
    after = os.times()
    event = event_scores(product.only("answer"))
    assert event["heavy.pid"][s.SCORE_VALUE] != os.getpid()
    assert event["heavy.took"][s.SCORE_VALUE] >= 0.5
    assert after.user - before.user < 0.5  # in this process, whatever else the machine does


# --- C120 --------------------------------------------------------------------------------------------------------------------


IDS = """
import hashlib, sys
from spangrade.scoring.selection import chosen
ids = (int.from_bytes(hashlib.sha256(str(n).encode()).digest()[:16], "big") for n in range(5_000))
print(hashlib.sha256("".join("01"[chosen(i, "helpful", 0.1)] for i in ids).encode()).hexdigest())
"""


def test_c120_a_tenth_is_the_same_tenth_in_every_process_and_for_every_part_of_a_trace() -> None:
    """The agent asks the same function (`tests/agent/test_agent.py` compares the two hosts)."""
    said = Counter(
        subprocess.run(
            [sys.executable, "-c", IDS],
            env={**os.environ, "PYTHONHASHSEED": str(seed), "PYTHONPATH": os.pathsep.join(sys.path)},
            capture_output=True,
            text=True,
            check=True,
            timeout=120,
        ).stdout
        for seed in (1, 2)
    )
    assert len(said) == 1
    selected = sum(chosen(n * 0x9E3779B97F4A7C15F39CC0605CEDC835 % 2**128, "helpful", 0.1) for n in range(1, 100_001))
    assert 9_500 <= selected <= 10_500
