"""What was decided without all that belongs to it: counted by reason on `/metrics`, and said on the page."""

import threading
from typing import Any

import pytest
from opentelemetry import metrics as metrics_api
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import InMemoryMetricReader

from spangrade.delivery.instruments import OutcomeInstruments
from spangrade.model.span import EventData
from spangrade.samples.tally import Tally
from spangrade.scoring.outcomes import Ledger
from spangrade.scoring.pipeline import Pipeline
from spangrade.testing import CollectingSink
from spangrade_agent.health import exposition
from spangrade_agent.held_gauges import assembly_gauges
from spangrade_agent.page.incomplete import incomplete


@pytest.fixture
def tally() -> Tally:
    made = Tally()
    made.partial.update({"no_root": 1_200, "max_traces": 3})
    made.conversations.update({"shutdown": 1})
    made.late.update({"call": 1, "turn": 1})
    made.logs.update({"joined": 9, "max_age": 1})
    return made


def test_the_page_says_nothing_where_nothing_is_missing() -> None:
    fine = Tally()
    fine.logs["joined"] = 7
    assert incomplete(fine) is None


def test_the_page_says_what_was_missing_and_which_setting_it_is(tally: Tally) -> None:
    assert incomplete(tally) == (
        "1,203 samples decided as they were (no_root 1,200, max_traces 3), "
        "1 conversation graded in part (shutdown 1), 2 calls came too late, 1 log record met no call; "
        "see assembly: in the configuration"
    )


def test_all_of_it_is_on_metrics(tally: Tally) -> None:
    ledger = Ledger()
    ledger.tally = tally
    pipeline = Pipeline([], CollectingSink(), ledger=ledger)
    lines = exposition(ledger, assembly_gauges(pipeline)).splitlines()
    for line in (
        'spangrade_assembly_partial_total{reason="no_root"} 1200',
        'spangrade_assembly_sessions_partial_total{reason="shutdown"} 1',
        'spangrade_assembly_late_total{what="turn"} 1',
        'spangrade_assembly_log_records_total{result="max_age"} 1',
        "spangrade_assembly_traces 0",
        "spangrade_assembly_session_bytes 0",
    ):
        assert line in lines


def test_the_sdk_has_them_as_instruments(tally: Tally) -> None:
    reader = InMemoryMetricReader()
    provider: metrics_api.MeterProvider = MeterProvider([reader])
    ledger = Ledger()
    ledger.tally = tally
    OutcomeInstruments(ledger, provider)
    data: Any = reader.get_metrics_data()
    found = {
        (metric.name, *point.attributes.values()): point.value
        for metric in data.resource_metrics[0].scope_metrics[0].metrics
        for point in metric.data.data_points
    }
    assert found["spangrade.assembly.partial", "no_root"] == 1_200
    assert found["spangrade.assembly.late", "call"] == 1
    assert found["spangrade.assembly.log_records", "joined"] == 9
    assert found["spangrade.assembly.sessions.partial", "shutdown"] == 1


def test_what_waits_can_be_asked_for_while_it_changes() -> None:
    pipeline = Pipeline([], CollectingSink())
    done = threading.Event()

    def offer() -> None:
        for n in range(1, 200):
            pipeline.offer_log(n, n, EventData("gen_ai.choice", {"content": "x"}))
        done.set()

    threading.Thread(target=offer, daemon=True).start()
    while not done.is_set():
        assert pipeline.waiting().logs >= 0
    assert pipeline.drain(10, judges=True)
    assert pipeline.waiting().logs == 199
    pipeline.shutdown(1)
