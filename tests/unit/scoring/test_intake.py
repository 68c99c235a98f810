"""What the intake asks its host's timer for."""

from spangrade import semconv as s
from spangrade.model.span import SpanData
from spangrade.samples.tally import Tally
from spangrade.scoring.intake import Intake
from spangrade.scoring.seam import Offer, Ticket
from spangrade.scoring.settings import Settings
from spangrade.scoring.wants import Wanted, Wants
from spangrade.testing import CollectingSink, FakeClock

BASE = 1_750_000_000_000_000_000


def test_a_call_that_comes_after_its_root_is_looked_at_after_the_grace_and_not_when_its_hold_runs_out() -> None:
    """As behind another agent, which sends the root on at once and the call when it has scored it."""
    clock, started, ticks = FakeClock(), [], []
    wants = Wants(Wanted.of(["root"]), lambda _trace_id, _state: False)
    settings = Settings(metric_hold=10.0)
    intake = Intake(
        CollectingSink(), wants, settings, clock, lambda call, *_: started.append(call.span.name), ticks.append, Tally(),
        lambda _call, _ticket: None,
    )  # fmt: skip
    root = SpanData(1, 1, None, "POST /", BASE, BASE + 9, {"http.route": "/"})
    call = SpanData(1, 2, 1, "chat", BASE + 1, BASE + 8, {s.OI_KIND: "LLM", s.OI_INPUT: "q", s.OI_OUTPUT: "a"})
    intake.read(Offer(root, None, None, clock.monotonic(), 1))
    clock.advance(1.0)
    intake.tick(clock.monotonic())
    ticks.clear()
    intake.read(Offer(call, Ticket(), None, clock.monotonic(), 1))
    grace = settings.assembly.grace
    assert min(ticks) <= clock.monotonic() + grace
    clock.advance(grace)
    intake.tick(clock.monotonic())
    assert started == ["chat"]
