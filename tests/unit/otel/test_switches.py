"""The kill switches, at the start and while the process runs: for our calls and for spans of others, from any thread."""

import asyncio
import cProfile
import os
import subprocess
import sys
import threading
from collections.abc import AsyncIterator, Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from opentelemetry import trace as trace_api
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from tests.unit.otel.others import CALL, answer, their_provider, yes
from tests.unit.tracing.conftest import by_public_api

import spangrade as sg
from spangrade import semconv as s
from spangrade._switches import Switch
from spangrade.judges.live import live
from spangrade.model.outcome import Outcome
from spangrade.otel.engine import current_engine
from spangrade.testing import CollectingExporter, ScriptedJudgeClient, event_scores

PASSING = '{"reasoning": "fine", "verdict": "pass"}'
OFF = {"SPANGRADE_DISABLED": "true", "SPANGRADE_SCORING": "off"}
BOTH = pytest.mark.parametrize("switch", OFF)


@pytest.fixture(autouse=True, params=["lazily", "publicly"])
def both_ways(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """With lazily filled spans, and with those that any SDK gives."""
    if request.param == "publicly":
        by_public_api(monkeypatch)


def foreign() -> None:
    with trace_api.get_tracer("theirs").start_as_current_span("foreign", attributes=CALL):
        """Another instrumentation's call."""


def ours(exporter: CollectingExporter) -> None:
    sg.configure(metrics=[yes], exporter=exporter)


def placed(exporter: CollectingExporter) -> None:
    their_provider(sg.SpangradeProcessor(SimpleSpanProcessor(exporter)))
    sg.configure(metrics=[yes])


def scoring_exporter(exporter: CollectingExporter) -> None:
    their_provider(SimpleSpanProcessor(sg.ScoringExporter(exporter)))
    sg.configure(metrics=[yes])


SETUPS = pytest.mark.parametrize("set_up", [ours, placed, scoring_exporter])


@BOTH
@SETUPS
def test_it_acts_at_once_on_and_off_again_and_no_span_of_others_is_lost(
    set_up: Any, switch: str, exporter: CollectingExporter, monkeypatch: pytest.MonkeyPatch
) -> None:
    set_up(exporter)
    found: list[dict[str, bool]] = []
    for on in (False, True, False, True):
        if on:
            monkeypatch.setenv(switch, OFF[switch])
        else:
            monkeypatch.delenv(switch, raising=False)
        before = len(exporter.spans)
        assert answer("a") == "answer to a"
        foreign()
        calls = 1 if on and switch == "SPANGRADE_DISABLED" else 2
        assert sg.flush(10)
        assert exporter.wait_for(lambda spans, enough=before + calls: len(spans) >= enough)  # type: ignore[misc]
        found.append({span.name: bool(event_scores(span)) for span in exporter.spans[before:]})
    scored, off = {"answer": True, "foreign": True}, {"answer": False, "foreign": False}
    if switch == "SPANGRADE_DISABLED":
        del off["answer"]
    assert found == [scored, off, scored, off]


def test_another_thread_may_turn_it(exporter: CollectingExporter, monkeypatch: pytest.MonkeyPatch) -> None:
    sg.configure(metrics=[yes], exporter=exporter)
    for value in ("TRUE ", "0"):
        thread = threading.Thread(target=lambda value=value: monkeypatch.setenv("SPANGRADE_DISABLED", value))  # type: ignore[misc]
        thread.start()
        thread.join()
        answer("a")
    assert sg.flush(10)
    assert len(exporter.spans) == 1


def test_threads_that_ask_while_it_turns_agree_in_the_end(monkeypatch: pytest.MonkeyPatch) -> None:
    switch, wrong = Switch("SPANGRADE_TEST", "on"), list[str]()
    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    done = threading.Event()

    def ask() -> None:
        while not done.is_set():
            switch()

    threads = [threading.Thread(target=ask) for _ in range(3)]
    for thread in threads:
        thread.start()
    try:
        for n in range(300):
            value = ("on", "off")[n % 2]
            monkeypatch.setenv("SPANGRADE_TEST", value)
            switch()
            if switch() is not (value == "on"):
                wrong.append(value)
    finally:
        done.set()
        for thread in threads:
            thread.join()
        sys.setswitchinterval(interval)
    assert switch() is False
    assert wrong == []


# --- what is under way when it turns ------------------------------------------------------------------------------------------


@sg.trace
def parts() -> Iterator[str]:
    yield "a"
    yield "b"


@sg.trace
async def later() -> AsyncIterator[str]:
    yield "a"
    yield "b"


def test_a_stream_that_is_half_read_ends_as_it_began(
    exporter: CollectingExporter, monkeypatch: pytest.MonkeyPatch
) -> None:
    sg.configure(exporter=exporter)
    on = parts()
    next(on)
    monkeypatch.setenv("SPANGRADE_DISABLED", "true")
    off = parts()
    next(off)
    assert list(on) == ["b"]
    monkeypatch.delenv("SPANGRADE_DISABLED")
    assert list(off) == ["b"]
    assert sg.flush(10)
    (span,) = exporter.spans
    assert (span.attributes or {})[s.OI_OUTPUT] == "ab"
    assert trace_api.get_current_span() is trace_api.INVALID_SPAN


def test_an_async_stream_and_a_coroutine_end_as_they_began(
    exporter: CollectingExporter, monkeypatch: pytest.MonkeyPatch
) -> None:
    sg.configure(exporter=exporter)

    @sg.trace
    async def turns(value: str | None) -> str:
        await asyncio.sleep(0)
        if value is None:
            monkeypatch.delenv("SPANGRADE_DISABLED")
        else:
            monkeypatch.setenv("SPANGRADE_DISABLED", value)
        return "done"

    async def main() -> None:
        stream = later()
        await anext(stream)
        assert await turns("true") == "done"
        assert [part async for part in stream] == ["b"]
        assert await turns(None) == "done"

    asyncio.run(main())
    assert sg.flush(10)
    assert sorted(str((span.attributes or {})[s.OI_OUTPUT]) for span in exporter.spans) == ["ab", "done"]


@pytest.mark.parametrize("starts", ["on", "off"])
def test_a_block_ends_as_it_began(starts: str, exporter: CollectingExporter, monkeypatch: pytest.MonkeyPatch) -> None:
    sg.configure(exporter=exporter)
    if starts == "off":
        monkeypatch.setenv("SPANGRADE_DISABLED", "true")
    with sg.trace("block") as block:
        monkeypatch.setenv("SPANGRADE_DISABLED", "true" if starts == "on" else "")
        assert block is not None
    monkeypatch.delenv("SPANGRADE_DISABLED")
    assert sg.flush(10)
    assert [span.name for span in exporter.spans] == (["block"] if starts == "on" else [])
    assert trace_api.get_current_span() is trace_api.INVALID_SPAN


def test_setters_are_quiet_while_it_is_off(
    exporter: CollectingExporter, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    sg.configure(exporter=exporter)
    with sg.trace("block"):
        monkeypatch.setenv("SPANGRADE_DISABLED", "true")
        sg.set_input("a"), sg.set_output("b"), sg.set_metadata(c=1), sg.set_context(d=1)
        sg.set_session("e", user="f"), sg.set_retrieval_documents(["g"])
        monkeypatch.delenv("SPANGRADE_DISABLED")
    monkeypatch.setenv("SPANGRADE_DISABLED", "true")
    sg.set_input("outside of any call")
    monkeypatch.delenv("SPANGRADE_DISABLED")
    assert sg.flush(10)
    assert dict(exporter.spans[0].attributes or {}) == {s.OI_KIND: "CHAIN"}
    assert "ignored" not in caplog.text


@BOTH
def test_a_judge_that_is_asked_already_is_heard_and_those_behind_it_are_not_asked(
    switch: str, exporter: CollectingExporter, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked, gate = threading.Event(), threading.Event()

    def waits(_request: Any) -> str:
        asked.set()
        gate.wait(10)
        return PASSING

    client = ScriptedJudgeClient(waits)
    judge = sg.LlmJudge(name="helpful", criteria="good", scale="binary", model="m", live=True).with_client(client)
    sg.configure(judges=[live(judge, rate=1.0)], exporter=exporter)
    for n in range(40):
        answer(str(n))
    assert asked.wait(10)
    monkeypatch.setenv(switch, OFF[switch])
    in_flight = len(client.requests)
    gate.set()
    assert sg.flush(10)
    engine = current_engine()
    assert engine is not None
    (counts,) = engine.ledger.snapshot().values()
    assert counts.pending == 0
    assert counts.met == 40
    assert counts.of(Outcome.SCORED) >= in_flight
    assert counts.outcomes[Outcome.DROPPED, "switched_off"] == 40 - counts.of(Outcome.SCORED)
    assert counts.of(Outcome.SCORED) < 40
    assert len(exporter.spans) == 40


# --- at the start -------------------------------------------------------------------------------------------------------------

START = """
import sys, threading
sys.path.insert(0, {sdk!r})
import spangrade as sg
from opentelemetry import trace

imported, threads = set(sys.modules), threading.active_count()
sg.configure(service_name="app", endpoint="http://127.0.0.1:9", metrics=["overlap"], judges=[], instrument=["openai"])


@sg.trace
def answer(question):
    sg.set_metadata(a=1)
    sg.set_retrieval_documents(["x"])
    return question


assert answer("a") == "a"
with sg.trace("block"):
    pass
assert sg.flush(1)
assert isinstance(trace.get_tracer_provider(), trace.ProxyTracerProvider)
assert threading.active_count() == threads
more = sorted(name for name in set(sys.modules) - imported if "." in name and "exporter" in name)
assert not more, more
sg.shutdown()
print("nothing")
"""


@pytest.mark.parametrize("switch", ["SPANGRADE_DISABLED", "OTEL_SDK_DISABLED"])
def test_at_the_start_nothing_is_made_started_or_imported(switch: str, tmp_path: Path) -> None:
    sdk = str(Path(sg.__file__).parent.parent)
    environment = {k: v for k, v in os.environ.items() if not k.startswith(("OTEL_", "SPANGRADE_"))}
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", START.format(sdk=sdk)],
        check=False, env={**environment, switch: "true"},
        capture_output=True, text=True, timeout=60, cwd=tmp_path,
    )  # fmt: skip
    assert (done.returncode, done.stdout, done.stderr) == (0, "nothing\n", "")


# --- what it costs --------------------------------------------------------------------------------------------------------------


def function_calls(run: Callable[[], Any]) -> int:
    def once() -> int:
        profile = cProfile.Profile()
        profile.enable()
        run()
        profile.disable()
        return sum(entry.callcount for entry in profile.getstats()) - 1

    return min(once() for _ in range(5))


@pytest.mark.parametrize("why", ["disabled", "no provider"])
def test_a_call_that_is_not_traced_takes_at_most_12_function_calls_more(
    why: str, exporter: CollectingExporter, monkeypatch: pytest.MonkeyPatch
) -> None:
    if why == "disabled":
        sg.configure(metrics=[yes], exporter=exporter)
        monkeypatch.setenv("SPANGRADE_DISABLED", "true")
    untraced = function_calls(lambda: answer.__wrapped__("a"))  # type: ignore[attr-defined]
    assert function_calls(lambda: answer("a")) - untraced <= 12
