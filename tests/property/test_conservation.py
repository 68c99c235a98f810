"""The two conservation laws, under whatever evaluators, loads and endings."""

import threading
import time
from typing import Any, ClassVar

from hypothesis import given, settings
from hypothesis import strategies as st

from spangrade import semconv as s
from spangrade.delivery.carriers import OtelCarriers
from spangrade.delivery.content import ContentPolicy
from spangrade.delivery.hold import Held
from spangrade.delivery.sink import SpanSink
from spangrade.judges.judge import LlmJudge
from spangrade.judges.live import live
from spangrade.metrics.local import LocalMetric
from spangrade.model.outcome import Outcome
from spangrade.model.policy import Placed
from spangrade.model.sample import Sample
from spangrade.model.score import Score
from spangrade.model.span import SpanData
from spangrade.samples.window import Lineage
from spangrade.scoring.outcomes import Ledger
from spangrade.scoring.pipeline import Pipeline, Settings
from spangrade.scoring.seam import Offer
from spangrade.testing import ScriptedJudgeClient

RETURNS = st.sampled_from(
    [
        1,
        0.5,
        True,
        None,
        float("nan"),
        "label",
        "",
        Score(0.3),
        Score(label="skipped"),
        {"a": 1, "b": None},
        {"a": 1, "b": float("nan")},
        {"a": "", "b": object()},
        object(),
        ZeroDivisionError(),
        SystemExit(1),
    ]
)


class NowhereRoute:
    """Spans go nowhere; nothing raises."""

    exports = True
    settles = False

    def forward(self, span: Any) -> None: ...

    def tracer(self) -> Any:
        from opentelemetry.trace import NoOpTracer

        return NoOpTracer()


class FakeSpan:
    """As much of a ReadableSpan as the hold's copy looks at when nothing rides on it."""

    events = ()
    attributes: ClassVar[dict[str, Any]] = {}


def evaluator(index: int, result: Any, *, on_loop: bool = False) -> Placed:
    def fn(sample: Sample) -> Any:
        if isinstance(result, BaseException):
            raise result
        return result

    async def later(sample: Sample) -> Any:
        return fn(sample)

    return Placed(LocalMetric(later if on_loop else fn, name=f"m{index}"))


def span(n: int, kind: str) -> SpanData:
    attributes = {s.OI_KIND: kind, s.OI_INPUT: "q", s.OI_OUTPUT: f"a{n}"}
    return SpanData(n * 0x9E3779B97F4A7C15F39CC0605CEDC835 % 2**128 or 1, n, None, "s", 0, n, attributes)


@given(
    results=st.lists(RETURNS, max_size=4),
    judged=st.sampled_from([None, '{"reasoning": "r", "verdict": "pass"}', "rubbish"]),
    kinds=st.lists(st.sampled_from(["CHAIN", "LLM", "RETRIEVER", "TOOL", "EVALUATOR"]), max_size=30),
    max_steps=st.sampled_from([3, 1000]),
    max_bytes=st.sampled_from([12_000, 64 * 2**20]),
    on_loop=st.booleans(),
    drain=st.booleans(),
)
@settings(max_examples=60, deadline=None)
def test_every_pair_ends_exactly_once_and_every_score_leaves_or_is_counted(
    results: list[Any], judged: str | None, kinds: list[str], max_steps: int, max_bytes: int, on_loop: bool, drain: bool
) -> None:
    placed = [evaluator(i, result, on_loop=on_loop) for i, result in enumerate(results)]
    if judged is not None:
        judge = LlmJudge(name="j", criteria="c", scale="binary", model="m").with_client(ScriptedJudgeClient(judged))
        placed.append(live(judge, rate=0.5))
    ledger = Ledger()
    sink = SpanSink(ledger, OtelCarriers(ContentPolicy()))
    left: list[Any] = []
    sink.hold._release = left.append  # the copy itself is another test's business
    bounds = Settings(
        metric_hold=60, judge_hold=60, max_steps=max_steps, max_bytes=max_bytes
    )  # the machine may be busy
    pipeline = Pipeline(placed, sink, bounds, ledger=ledger)
    tickets = []
    for n, kind in enumerate(kinds, 1):
        held = Held(FakeSpan(), NowhereRoute(), 10, 1e12)
        tickets.append(held)
        sink.hold.put(held)
        if not pipeline.offer(Offer(span(n, kind), held, Lineage(n, False), time.monotonic())):
            sink.hold.settle(held)
    if drain:
        assert pipeline.drain(60, judges=True)
    pipeline.shutdown(5)
    assert pipeline._jobs.room.used == 0
    assert sorted(map(id, left)) == sorted(map(id, tickets))
    offered = sum(kind in ("CHAIN", "LLM") for kind in kinds)
    for counts in ledger.snapshot().values():
        assert counts.met == offered
        assert counts.pending == 0
        assert counts.met == sum(counts.of(outcome) for outcome in Outcome)
    on_spans = sum(any(r.error_type is None for r in pair) for held in tickets for pair in held.pairs)
    assert on_spans == sum(c.of(Outcome.SCORED) for c in ledger.snapshot().values())


def test_offers_from_many_threads_are_all_accounted_for() -> None:
    ledger = Ledger()
    sink = SpanSink(ledger, OtelCarriers(ContentPolicy()))
    pipeline = Pipeline([evaluator(0, 1.0)], sink, Settings(metric_hold=60), ledger=ledger)

    def work(start: int) -> None:
        for n in range(start, start + 200):
            held = Held(FakeSpan(), NowhereRoute(), 10, 1e12)
            sink.hold.put(held)
            if not pipeline.offer(Offer(span(n, "CHAIN"), held, Lineage(n, False), time.monotonic())):
                sink.hold.settle(held)

    sink.hold._release = lambda held: None
    threads = [threading.Thread(target=work, args=(1 + 1000 * t,)) for t in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert pipeline.drain(60, judges=True)
    (counts,) = ledger.snapshot().values()
    assert counts.met == counts.of(Outcome.SCORED) == 1600
    assert len(sink.hold) == 0
    pipeline.shutdown(1)
