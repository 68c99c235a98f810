"""The same spans and log records, in any order and any batches within the window, give the same Samples (promise 6)."""

import random
from dataclasses import dataclass, field
from typing import Any, Final

from hypothesis import given, settings
from hypothesis import strategies as st

from spangrade import semconv as s
from spangrade.model.sample import Sample
from spangrade.model.span import EventData, SpanData
from spangrade.samples.bounds import AssemblyBounds
from spangrade.samples.reading import Call
from spangrade.samples.tally import Tally
from spangrade.samples.window import Lineage
from spangrade.scoring.intake import Intake
from spangrade.scoring.seam import LogOffer, Offer, Ticket
from spangrade.scoring.settings import Settings
from spangrade.scoring.wants import Wanted, Wants
from spangrade.testing import CollectingSink, FakeClock

TARGETS: Final = ("root", "llm", "agent", "retriever", "tool", "session")
KINDS: Final = ("http", "chain", "agent", "llm", "llm", "retriever", "tool", "evaluator")
START: Final = 1_700_000_000_000_000_000
MS: Final = 1_000_000

Item = SpanData | LogOffer


@dataclass
class Host:
    """An intake by itself, with a clock that stands still."""

    bounds: AssemblyBounds = field(default_factory=lambda: AssemblyBounds(logs=5.0))
    targets: tuple[str, ...] = TARGETS

    def __post_init__(self) -> None:
        self.sink = CollectingSink()
        self.clock = FakeClock()
        self.tally = Tally()
        self.samples: dict[tuple[str, int], Sample] = {}
        self.tickets: list[Ticket] = []
        wants = Wants(Wanted.of(self.targets), lambda _trace_id, _state: False)
        config = Settings(assembly=self.bounds)
        self.intake = Intake(
            self.sink, wants, config, self.clock, self.start, lambda _at: None, self.tally, lambda _call, _ticket: None
        )

    def start(self, call: Call, sample: Sample, ticket: Ticket, target: str, partial: bool) -> None:
        key = (target, call.span.span_id)
        assert key not in self.samples, "graded twice"
        self.samples[key] = sample

    def take(self, item: Item, lineage: Lineage | None = None) -> None:
        now = self.clock.monotonic()
        if isinstance(item, LogOffer):
            self.intake.hear(LogOffer(item.trace_id, item.span_id, item.event, now, 1))
            return
        self.tickets.append(Ticket())
        self.intake.read(Offer(item, self.tickets[-1], lineage, now, 1))

    def finish(self) -> None:
        """Time goes by, until nothing waits."""
        for seconds in (0.1, 0.7, 5.0, 300.0, 600.0):
            self.clock.advance(seconds)
            self.intake.tick(self.clock.monotonic())
        waiting = {ticket: self.sink.waiting.get(ticket, 1) for ticket in self.tickets}
        assert not any(waiting.values()), "a span waits for nothing"
        assert self.intake.waiting().traces == self.intake.waiting().sessions == self.intake.waiting().logs == 0


def attributes(draw: Any, kind: str, n: int) -> dict[str, Any]:
    if kind == "http":
        return {"http.route": "/"}
    if kind == "llm":
        return {s.OPERATION_NAME: "chat", s.PROVIDER_NAME: "openai", s.REQUEST_MODEL: "m", s.INPUT_TOKENS: n}
    found: dict[str, Any] = {s.OI_KIND: kind.upper()}
    if kind in ("chain", "agent") and draw(st.booleans()):
        found |= {s.OI_INPUT: f"question {n}", s.OI_OUTPUT: f"answer {n}", s.SESSION_ID: draw(st.sampled_from("ab"))}
    if kind == "retriever":
        found |= {s.OI_INPUT: f"query {n}", "retrieval.documents.0.document.content": f"document {n}"}
    if kind == "tool":
        found |= {s.TOOL_NAME: f"tool {n}", s.OI_INPUT: f"argument {n}", s.OI_OUTPUT: f"result {n}"}
    return found


def messages(span: SpanData, n: int) -> list[LogOffer]:
    """What a model call said, as log records of its span."""
    at = span.start_ns
    said = (
        EventData("gen_ai.user.message", {"content": f"asked {n}"}, at + 1),
        EventData("gen_ai.choice", {"index": 0, "message": {"role": "assistant", "content": f"said {n}"}}, at + 2),
    )
    return [LogOffer(span.trace_id, span.span_id, event, 0.0, 1) for event in said]


@st.composite
def traces(draw: Any) -> list[Item]:
    """One to three traces, in the order in which their spans end; model calls speak in log records, or do not."""
    items: list[Item] = []
    n = 0
    for trace_id in range(1, draw(st.integers(1, 3)) + 1):
        spans: list[SpanData] = []
        for at in range(draw(st.integers(1, 7))):
            n += 1
            above = draw(st.sampled_from(spans)) if spans else None
            kind = draw(st.sampled_from(KINDS))
            # Each within the time of what is above it, and no two at the same time.
            start = above.start_ns + (at + 1) * MS if above is not None else START + trace_id * 10_000 * MS
            end = above.end_ns - (at + 1) * MS if above is not None else start + 5_000 * MS
            spans.append(
                SpanData(
                    trace_id, n, above.span_id if above is not None else None, f"{kind} {n}", start, end,
                    attributes(draw, kind, n), parent_is_remote=None if above is None else False,
                )
            )  # fmt: skip
            if kind == "llm" and draw(st.booleans()):
                items += messages(spans[-1], n)
        items += sorted(spans, key=lambda span: span.end_ns)
    return items


@given(traces(), st.randoms(use_true_random=False))
@settings(max_examples=150, deadline=None)
def test_any_order_and_any_batches_give_the_same_samples(items: list[Item], chance: random.Random) -> None:
    straight, shuffled = Host(), Host()
    for item in items:
        straight.take(item)
    straight.finish()
    mixed = list(items)
    chance.shuffle(mixed)
    mixed += chance.sample([item for item in mixed if isinstance(item, LogOffer)], chance.randint(0, 1) if items else 0) \
        if any(isinstance(item, LogOffer) for item in mixed) else []  # fmt: skip
    for at, item in enumerate(mixed):
        if at and chance.random() < 0.3:  # another request, a moment later
            shuffled.clock.advance(0.05 / len(mixed))
            shuffled.intake.tick(shuffled.clock.monotonic())
        shuffled.take(item)
    shuffled.clock.advance(0.01)
    shuffled.finish()
    assert shuffled.samples == straight.samples
    assert shuffled.tally.partial == straight.tally.partial == {}


@given(traces())
@settings(max_examples=100, deadline=None)
def test_a_host_that_sees_spans_start_gives_the_same_root_samples(items: list[Item]) -> None:
    without, seen = Host(targets=("root", "session")), Host(targets=("root", "session"))
    spans = {item.span_id: item for item in items if isinstance(item, SpanData)}
    kinds = {n: span.name.partition(" ")[0] for n, span in spans.items()}
    for item in items:
        without.take(item)
        if isinstance(item, LogOffer):
            seen.take(item)
            continue
        above, at = [], item.parent_span_id
        while at is not None:
            above.append(at)
            at = spans[at].parent_span_id
        calls = [n for n in above if kinds[n] != "http"]
        if any(kinds[n] == "evaluator" for n in above):
            continue  # which its host does not offer
        within = next((kinds[n] for n in calls if kinds[n] != "chain"), None)
        root = above[-1] if above else item.span_id
        if kinds[item.span_id] in ("http", "evaluator"):
            if root == item.span_id:
                seen.intake.root_ended(item.trace_id, item.span_id)
            continue
        seen.take(item, Lineage(root, bool(calls), within=within, over=calls[0] if calls else None))
    without.finish()
    seen.finish()
    assert seen.samples == without.samples
