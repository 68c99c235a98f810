"""One process, several vendors' SDKs: what each of them sends with Spangrade beside it is what it sends without, every call is
scored once, and the scores leave as `configure` says.

The programs are real (beside_others/program.py), and so are the SDKs (vendors_venv.py says which versions go with which
OpenTelemetry). Two orders of set-up matter. They first: theirs is the provider, whose spans go where they went, and scores
leave as evaluation spans through it and as log events to the endpoint that was said. We first: ours is the provider, they
add their processor to it, and scores leave on the spans to our endpoint.
"""

from __future__ import annotations

import pytest

from .beside import CALLS, OVERRIDING, Ran, Run, runs, scored_calls, scores


@pytest.fixture(scope="module")
def run(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Run:
    return runs(getattr(request, "param", "newest"), tmp_path_factory.mktemp("ours"))


# --- each alone with us ----------------------------------------------------------------------------------------------

# vendor, what traces the application's call, the spans of each call at the vendor's place
VENDORS = [
    pytest.param("openinference", "", id="openinference"),
    pytest.param("langfuse", "otel", id="langfuse"),
    pytest.param("logfire", "otel", id="logfire"),
    pytest.param("sentry_otlp", "otel", id="sentry by OTLP"),
]


@pytest.mark.parametrize(("vendor", "trace"), VENDORS)
def test_they_first_their_spans_are_theirs_and_the_scores_are_log_events_for_us(
    vendor: str, trace: str, run: Run
) -> None:
    without, beside = run(vendor, trace=trace), run(vendor, "spangrade", trace=trace)
    assert beside.stderr == without.stderr
    assert beside.theirs(vendor) == without.theirs(vendor)
    assert sum(without.theirs(vendor).values()) >= CALLS
    assert beside.places.spans("ours") == []  # no span of theirs is sent to a new place
    assert beside.scored_spans(vendor) == []
    logs = beside.places.logs("ours")
    assert len({log["span_id"] for log in logs}) == len(logs) == CALLS
    known = {span["span_id"] for span in beside.places.spans(vendor)}
    assert {log["span_id"] for log in logs} <= known
    assert beside.places.used() == {vendor, "ours"}


@pytest.mark.parametrize(("vendor", "trace"), VENDORS)
def test_they_first_each_call_has_one_evaluation_span_through_their_provider(vendor: str, trace: str, run: Run) -> None:
    beside = run(vendor, "spangrade", trace=trace)
    scored = scored_calls(beside.evaluations(vendor))
    assert len(set(scored)) == len(scored) == CALLS
    assert set(scored) == {log["span_id"] for log in beside.places.logs("ours")}


@pytest.mark.parametrize(("vendor", "trace"), [one for one in VENDORS if one.values[0] != "logfire"])
def test_we_first_they_join_our_provider_and_scores_leave_on_the_spans_to_us_only(
    vendor: str, trace: str, run: Run
) -> None:
    without, beside = run(vendor, trace=trace), run("spangrade", vendor, trace=trace)
    assert beside.stderr == without.stderr
    assert beside.theirs(vendor) == without.theirs(vendor)
    assert beside.evaluations(vendor) == beside.scored_spans(vendor) == []
    scored = beside.scored_spans("ours")
    assert [scores(span) for span in scored] == [["yes"]] * CALLS
    ids = [span["span_id"] for span in beside.places.spans("ours")]
    assert len(set(ids)) == len(ids)
    assert beside.evaluations("ours") == []


def test_we_first_logfire_goes_on_with_a_provider_of_its_own_and_traced_functions_are_scored_by_ours(run: Run) -> None:
    """Logfire sets a provider whatever is there, which OpenTelemetry refuses with a warning."""
    without, beside = run("logfire"), run("spangrade", "logfire", trace="spangrade")
    assert beside.stderr.splitlines() == [*without.stderr.splitlines(), OVERRIDING]
    assert beside.theirs("logfire") == without.theirs("logfire")
    assert [(span["name"], scores(span)) for span in beside.places.spans("ours")] == [("answer", ["yes"])] * CALLS


# --- Sentry ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("order", "calls"),
    [
        pytest.param(("sentry", "spangrade"), 200, id="they first, 200 calls"),
        pytest.param(("spangrade", "sentry"), 20, id="we first, 20 calls"),
    ],
)
def test_sentry_keeps_its_tenth_of_the_requests_and_each_call_is_scored_once(
    order: tuple[str, str], calls: int, run: Run
) -> None:
    """C107. Sentry samples its own transactions, not OpenTelemetry's spans: its rate is none of ours."""
    without, beside = run("sentry", calls=calls), run(*order, calls=calls, trace="spangrade")
    assert beside.stderr == without.stderr == ""
    assert len(without.transactions()) == calls // 10
    assert beside.transactions() == without.transactions()
    spans = beside.places.spans("ours")
    assert [scores(span) for span in spans] == [["yes"]] * calls
    assert len({span["span_id"] for span in spans}) == calls
    assert beside.places.used() == {"sentry", "ours"}


@pytest.mark.parametrize("order", [("sentry", "spangrade"), ("spangrade", "sentry")], ids="-".join)
def test_what_a_judge_and_our_exporters_send_is_no_part_of_the_request_that_sentry_traces(
    order: tuple[str, str], run: Run
) -> None:
    without = run("sentry", calls=1, judge=True)
    beside = run(*order, calls=1, judge=True, trace="spangrade")
    assert len(beside.places.judged) == 1
    assert beside.transactions() == without.transactions()
    assert not any(name.lower() == "sentry-trace" for name in beside.places.judged[0])


def test_sentrys_span_processor_without_an_exporter_is_no_reason_to_send_its_spans_anywhere(run: Run) -> None:
    """Its integration of before: a processor that sends by a way of its own, on a provider that nobody else exports."""
    without = run("sentry_otel", trace="otel")
    beside = run("sentry_otel", "spangrade", trace="otel", endpoint=None)
    assert beside.stderr == without.stderr
    requests = [one for one in beside.transactions() if not one[0].startswith("evaluation ")]
    assert requests == without.transactions() == [["answer", []]] * CALLS
    assert beside.places.used() == {"sentry"}


def test_sentrys_span_processor_still_gets_all_where_the_spans_are_held_for_our_endpoint(run: Run) -> None:
    without, beside = run("sentry_otel", trace="otel"), run("sentry_otel", "spangrade", trace="otel")
    assert beside.stderr == without.stderr
    assert beside.transactions() == without.transactions()
    assert [scores(span) for span in beside.places.spans("ours")] == [["yes"]] * CALLS


# --- all of them -----------------------------------------------------------------------------------------------------

ALL = ("sentry", "langfuse", "openinference", "logfire")


BOTH = pytest.mark.parametrize("run", ["newest", "oldest"], indirect=True)


@BOTH
def test_all_of_them_first_and_each_gets_what_it_gets_without_us(run: Run) -> None:
    without, beside = run(*ALL, trace="otel"), run(*ALL, "spangrade", trace="otel")
    check_all(without, beside)
    assert beside.places.spans("ours") == []
    # Langfuse's was the first provider, so scores leave through that, for its exporter and OpenInference's.
    for place in ("langfuse", "openinference"):
        scored = scored_calls(beside.evaluations(place))
        assert len(set(scored)) == len(scored) == CALLS, place
    assert len({log["span_id"] for log in beside.places.logs("ours")}) == len(beside.places.logs("ours")) == CALLS


@BOTH
def test_we_before_all_of_them_and_each_gets_what_it_gets_without_us(run: Run) -> None:
    without, beside = run(*ALL, trace="otel"), run("spangrade", *ALL, trace="otel")
    check_all(without, beside)
    assert sum(map(len, map(beside.evaluations, ("langfuse", "openinference", "logfire", "ours")))) == 0
    assert [scores(span) for span in beside.scored_spans("ours")] == [["yes"]] * CALLS


def check_all(without: Ran, beside: Ran) -> None:
    assert beside.stderr == without.stderr
    for place in ("langfuse", "openinference", "logfire"):
        assert beside.theirs(place) == without.theirs(place), place
        assert sum(without.theirs(place).values()) >= CALLS
    assert beside.transactions() == without.transactions()
    assert beside.places.used() == {*ALL, "ours"}


# --- the end of one is not the end of the others ---------------------------------------------------------------------


@pytest.mark.parametrize(
    "order", [("langfuse", "spangrade"), ("spangrade", "langfuse"), ("logfire", "spangrade")], ids="-".join
)
def test_after_our_shutdown_they_get_all_calls_where_the_provider_is_theirs(order: tuple[str, str], run: Run) -> None:
    vendor = next(one for one in order if one != "spangrade")
    beside = run(*order, trace="otel", stop=["spangrade"])
    # Our own provider ends with us; whoever added a processor to it is told so by nobody but its spans.
    assert beside.theirs(vendor)["answer"] == (CALLS if order[0] == "spangrade" else 2 * CALLS)
    scored = beside.scored_spans("ours") or beside.places.logs("ours")
    assert len(scored) == CALLS


@pytest.mark.parametrize("order", [("langfuse", "spangrade"), ("spangrade", "langfuse")], ids="-".join)
def test_after_langfuses_shutdown_every_call_is_still_scored(order: tuple[str, str], run: Run) -> None:
    beside = run(*order, trace="otel", stop=["langfuse"])
    logs = beside.places.logs("ours")
    assert len({log["span_id"] for log in logs}) == len(logs) == 2 * CALLS


def test_logfires_shutdown_ends_the_provider_and_every_call_before_it_is_scored_at_once(run: Run) -> None:
    """It asks for our flush under the lock that its `get_tracer` takes; a score that then asked for a tracer waited 30 s."""
    without = run("logfire", trace="otel", stop=["logfire"])
    beside = run("logfire", "spangrade", trace="otel", stop=["logfire"])
    assert beside.stop_s < 15
    assert beside.stderr == without.stderr
    assert beside.theirs("logfire") == without.theirs("logfire")
    assert len(beside.places.logs("ours")) == CALLS


def test_an_application_with_a_provider_of_its_own_and_nobody_at_our_endpoint_ends_in_time(run: Run) -> None:
    run("empty", "spangrade", trace="spangrade", endpoint="http://127.0.0.1:9")
