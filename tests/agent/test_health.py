"""The admin listener: liveness, readiness, and promise 3's laws in Prometheus' text format."""

import math
import re
from collections.abc import Callable, Mapping
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from spangrade.model.evaluator import EvaluatorInfo
from spangrade.model.outcome import Outcome
from spangrade.scoring.outcomes import Ledger
from spangrade_agent.health import EXPOSITION, Gauge, admin_app, exposition

from .asgi import ask

OVERLAP = EvaluatorInfo("overlap", config_hash="aaaa")
Series = dict[tuple[str, frozenset[tuple[str, str]]], float]


_SERIES = re.compile(r"(?P<name>[a-zA-Z_:][a-zA-Z0-9_:]*)(?:\{(?P<labels>.*)\})? (?P<value>\S+)\Z", re.DOTALL)
_LABEL = re.compile(r'([a-zA-Z_][a-zA-Z0-9_]*)="((?:[^"\\\n]|\\["\\n])*)"(,|\Z)')


def parsed(text: str) -> Series:
    """A strict reader of the format: every family once, its type said before, every series once."""
    assert text.endswith("\n")
    found: Series = {}
    families: list[str] = []
    for line in text[:-1].split("\n"):
        if line.startswith("# HELP "):
            continue
        if line.startswith("# TYPE "):
            _, _, name, kind = line.split(" ")
            assert name not in families
            assert kind in ("counter", "gauge")
            families.append(name)
            continue
        match = _SERIES.match(line)
        assert match is not None, line
        assert families[-1] == match["name"]
        labels, rest = {}, match["labels"] or ""
        while rest:
            label = _LABEL.match(rest)
            assert label is not None, rest
            assert label[1] not in labels
            labels[label[1]] = re.sub(r"\\(.)", lambda m: {"n": "\n"}.get(m[1], m[1]), label[2])
            rest = rest[label.end() :]
        key = (match["name"], frozenset(labels.items()))
        assert key not in found
        found[key] = float(match["value"])
    return found


def value(found: Series, name: str, **labels: str) -> float:
    """One series' number."""
    return found[name, frozenset(labels.items())]


def busy_ledger() -> Ledger:
    """Some of everything."""
    ledger = Ledger()
    for _ in range(10):
        ledger.met(OVERLAP)
    for _ in range(4):
        ledger.ended(OVERLAP, Outcome.SCORED)
    ledger.ended(OVERLAP, Outcome.SKIPPED, "documents missing")
    ledger.ended(OVERLAP, Outcome.ERROR, "KeyError")
    ledger.ended(OVERLAP, Outcome.DROPPED, "queue_full")
    ledger.delivered(OVERLAP, "span_event")
    ledger.delivered(OVERLAP, "log_event")
    ledger.undelivered(OVERLAP, "shutdown")
    ledger.also(OVERLAP, "log_event")
    return ledger


def test_a_process_that_answers_is_alive() -> None:
    reply = ask(admin_app(Ledger()), "/healthz")
    assert (reply.status, reply.body) == (200, "ok\n")


@pytest.mark.parametrize(
    ("ready", "status", "said"),
    [
        (lambda: True, 200, "ready\n"),
        (lambda: "the spool is full", 503, "not ready: the spool is full\n"),
        (lambda: False, 503, "not ready\n"),
    ],
)
def test_readiness_is_told_with_its_reason(ready: Callable[[], bool | str], status: int, said: str) -> None:
    reply = ask(admin_app(Ledger(), ready=ready), "/readyz")
    assert (reply.status, reply.body) == (status, said)


def test_readiness_that_cannot_be_told_is_no_readiness(swallowed_faults: list[Any]) -> None:
    def broken() -> bool:
        raise RuntimeError("secret")

    reply = ask(admin_app(Ledger(), ready=broken), "/readyz")
    assert reply.status == 503
    assert "secret" not in reply.body
    assert [where for where, _ in swallowed_faults] == ["admin.ready"]
    swallowed_faults.clear()


def test_both_laws_can_be_read_off_the_metrics() -> None:
    reply = ask(admin_app(busy_ledger()), "/metrics")
    assert reply.headers["content-type"] == EXPOSITION
    found = parsed(reply.body)
    at = {"evaluator": "overlap"}
    pairs = {dict(labels)["outcome"]: n for (name, labels), n in found.items() if name == "spangrade_pairs_total"}
    assert pairs == {"scored": 4, "skipped": 1, "error": 1, "dropped": 1}
    assert value(found, "spangrade_pairs_total", **at, outcome="skipped", reason="documents missing") == 1
    met, pending = (value(found, f"spangrade_pairs_{name}", **at) for name in ("met_total", "pending"))
    assert (met, pending) == (10, 3)
    assert met == pending + sum(pairs.values())
    delivered = [n for (name, _), n in found.items() if name == "spangrade_scores_delivered_total"]
    undelivered = value(found, "spangrade_scores_undelivered_total", **at, reason="shutdown")
    assert pairs["scored"] == sum(delivered) + undelivered + value(found, "spangrade_scores_in_flight", **at)
    assert value(found, "spangrade_scores_again_total", **at, carrier="log_event") == 1


def test_two_configurations_of_one_evaluator_are_one_series() -> None:
    ledger = Ledger()
    for config_hash in ("aaaa", "bbbb"):
        info = EvaluatorInfo("overlap", config_hash=config_hash)
        ledger.met(info)
        ledger.ended(info, Outcome.SCORED)
    found = parsed(exposition(ledger))
    assert value(found, "spangrade_pairs_met_total", evaluator="overlap") == 2
    assert value(found, "spangrade_pairs_total", evaluator="overlap", outcome="scored", reason="") == 2


@given(st.text(st.characters(exclude_categories=()), min_size=1, max_size=40))
def test_any_name_and_reason_is_one_label_value(name: str) -> None:
    ledger = Ledger()
    info = EvaluatorInfo(name)
    ledger.met(info)
    ledger.ended(info, Outcome.ERROR, name)
    found = parsed(exposition(ledger).encode("utf-8", "replace").decode())
    shown = name.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    assert value(found, "spangrade_pairs_total", evaluator=shown, outcome="error", reason=shown) == 1


def test_the_callers_table_is_shown_beside() -> None:
    by_signal: Mapping[tuple[tuple[str, str], ...], float] = {(("signal", "traces"),): 3, (("signal", "logs"),): 0.5}
    table = [
        Gauge("spangrade_spans_received_total", "Spans\nthat came \\ in", "counter", lambda: by_signal),
        Gauge("spangrade_spans_held", "Spans that wait", "gauge", lambda: 7),
        Gauge("spangrade_queue_full_ratio", "How full", "gauge", lambda: math.nan),
    ]
    text = ask(admin_app(Ledger(), table), "/metrics").body
    found = parsed(text)
    assert r"# HELP spangrade_spans_received_total Spans\nthat came \\ in" in text.split("\n")
    assert value(found, "spangrade_spans_received_total", signal="logs") == 0.5
    assert value(found, "spangrade_spans_held") == 7
    assert math.isnan(value(found, "spangrade_queue_full_ratio"))


def test_one_broken_instrument_does_not_hide_the_others(swallowed_faults: list[Any]) -> None:
    table = [
        Gauge("spangrade_broken", "", "gauge", lambda: 1 / 0),
        Gauge("spangrade_bad_label", "", "gauge", lambda: {(("no-name", "x"),): 1}),
        Gauge("spangrade_good", "", "gauge", lambda: 1),
    ]
    found = parsed(ask(admin_app(Ledger(), table), "/metrics").body)
    assert {name for name, _ in found} == {"spangrade_build_info", "spangrade_faults_total", "spangrade_good"}
    assert len(swallowed_faults) == 2
    swallowed_faults.clear()


def test_labels_that_are_cut_to_the_same_text_are_added_up() -> None:
    long = [f"{'a' * 1_000}{number}{'b' * 1_000}" for number in range(3)]
    table = [Gauge("g", "", "gauge", lambda: {(("name", text),): 1 for text in long})]
    assert sum(n for (name, _), n in parsed(exposition(Ledger(), table)).items() if name == "g") == 3


@pytest.mark.parametrize(
    ("name", "kind"),
    [("with space", "gauge"), ("1st", "gauge"), ("x\n", "gauge"), ("spans", "counter"), ("h", "histogram")],
)
def test_an_instrument_that_prometheus_would_refuse_is_refused_at_the_start(name: str, kind: Any) -> None:
    with pytest.raises(ValueError, match="instrument"):
        Gauge(name, "", kind, lambda: 1)


@pytest.mark.parametrize("name", ["spangrade_twice", "spangrade_pairs_pending", "spangrade_build_info"])
def test_no_two_instruments_have_one_name(name: str) -> None:
    table = [Gauge(name, "", "gauge", lambda: 1)] * 2
    with pytest.raises(ValueError, match=name):
        admin_app(Ledger(), table)


def test_other_methods_and_paths_are_refused() -> None:
    app = admin_app(Ledger())
    head = ask(app, "/healthz", "HEAD")
    assert (head.status, head.body, head.headers["content-length"]) == (200, "", "3")
    refused = ask(app, "/healthz", "POST")
    assert (refused.status, refused.headers["allow"]) == (405, "GET, HEAD")
    for path in ("/", "/metrics/", "/samples", "/api/samples"):
        assert ask(app, path).status == 404
