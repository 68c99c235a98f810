"""Log records through the pipeline: joined, read once, bounded, and counted."""

from dataclasses import replace
from typing import Any

import pytest

from spangrade import semconv as s
from spangrade.metrics.local import metric
from spangrade.model.sample import Sample
from spangrade.model.span import EventData, SpanData
from spangrade.samples.bounds import AssemblyBounds
from spangrade.samples.log_waits import may_be_told
from spangrade.samples.reading import Call, Reading
from spangrade.scoring import intake
from spangrade.scoring.seam import Offer, Ticket


def model_call(n: int = 1) -> SpanData:
    """A call whose words are elsewhere."""
    attributes = {s.OPERATION_NAME: "chat", s.LEGACY_SYSTEM: "openai", s.REQUEST_MODEL: "m"}
    return SpanData(n, n, None, "chat", 1_000, 2_000, attributes)


def message(role: str, text: str, at: int) -> EventData:
    return EventData(f"gen_ai.{role}.message", {"content": text}, at)


def answer(text: str = "yes", at: int = 9_000) -> EventData:
    return EventData("gen_ai.choice", {"index": 0, "message": {"role": "assistant", "content": text}}, at)


@pytest.fixture
def seen() -> list[Sample]:
    return []


@pytest.fixture
def keeper(seen: list[Sample]) -> Any:
    @metric(requires=("output",))
    def keeper(sample: Sample) -> float:
        seen.append(sample)
        return 1.0

    return keeper


def arrive(h: Any, span: SpanData) -> Ticket:
    """From a host that does not see spans start."""
    ticket = Ticket()
    assert h.pipeline.offer(Offer(span, ticket, None, h.clock.monotonic()))
    return ticket


def test_many_records_that_come_together_after_their_call_are_read_once(
    harness: Any, keeper: Any, seen: list[Sample], monkeypatch: pytest.MonkeyPatch
) -> None:
    reads: list[SpanData] = []
    plain = intake.extract
    monkeypatch.setattr(intake, "extract", lambda span: reads.append(span) or plain(span))
    h = harness(keeper, assembly=AssemblyBounds(logs=5.0))
    arrive(h, model_call())
    for at in range(300):
        h.pipeline.offer_log(1, 1, message("user" if at % 2 else "assistant", f"m{at}", at))
    h.pipeline.offer_log(1, 1, answer())
    assert h.pipeline.drain(10, judges=False)
    assert len(reads) == 2  # the call, and the call with all of it
    assert len(seen[0].context["messages"]) == 300
    assert h.pipeline.ledger.tally.logs == {"joined": 301}


def test_more_records_of_one_call_than_are_kept_are_counted(harness: Any, keeper: Any, seen: list[Sample]) -> None:
    h = harness(keeper, assembly=AssemblyBounds(logs=5.0))
    for at in range(600):
        h.pipeline.offer_log(1, 1, message("user", f"m{at}", at))
    arrive(h, model_call())
    assert h.pipeline.drain(10, judges=False)
    assert h.pipeline.ledger.tally.logs == {"joined": 512, "max_of_a_span": 88}


def test_a_record_that_comes_after_the_decision_is_kept_no_longer_than_a_trace(harness: Any, keeper: Any) -> None:
    h = harness(keeper, assembly=AssemblyBounds(logs=5.0))
    arrive(h, model_call())
    assert h.pipeline.drain(10, judges=False)  # decided as it is
    h.pipeline.offer_log(1, 1, answer())
    assert h.pipeline.drain(10, judges=False)
    assert h.pipeline.waiting().logs == 1
    h.clock.advance(601.0)
    assert h.pipeline.drain(10, judges=False)
    assert h.pipeline.drain(10, judges=False)  # behind the tick
    assert h.pipeline.waiting().logs == 0
    assert h.pipeline.ledger.tally.logs == {"max_age": 1}


def test_what_there_is_no_room_for_is_counted_and_costs_nobody_anything(harness: Any, keeper: Any) -> None:
    h = harness(keeper, max_bytes=1_000)
    h.pipeline.offer_log(1, 1, message("user", "x" * 5_000, 1))
    assert h.pipeline.ledger.tally.logs == {"overload": 1}
    h.pipeline.shutdown(1)
    h.pipeline.offer_log(1, 1, message("user", "x", 1))


@pytest.mark.parametrize(
    ("kind", "said", "waits"),
    [
        ("llm", {}, True),
        ("llm", {"input": "Hi"}, True),
        ("llm", {"output": "Hello"}, True),  # what was asked is still missing
        ("llm", {"input": "Hi", "output": "Hello"}, False),
        ("llm", {"input": "Hi", "tool_calls": ({"name": "look"},)}, False),
        ("chain", {}, False),
        ("tool", {}, False),
    ],
)
def test_only_a_model_call_that_lacks_words_waits_for_records(kind: str, said: dict[str, Any], waits: bool) -> None:
    call = Call(model_call(), Reading("test", kind=kind, **said))
    assert may_be_told(call) is waits
    assert not may_be_told(replace(call, span=replace(call.span, status="error")))
    assert not may_be_told(replace(call, evaluator=True))
