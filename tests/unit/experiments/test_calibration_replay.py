"""Recorded judgements of real models, replayed over HTTP: the figures that ../shared/data/README.md states, and how each comes about.

Every figure goes through the whole path: prompt with fences, httpx, the reply's reading, `calibrate`.
"""

import json
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from fractions import Fraction
from typing import Any

import pytest
from tests.unit.experiments import calibration_replay as replay
from tests.unit.experiments.calibration_replay import Recording

from spangrade import LlmJudge
from spangrade.commands.judge import main
from spangrade.experiments.calibration import Calibration, calibrate
from spangrade.judges.providers import Endpoint, close_connections

RESAMPLES = 200  # the figures are what is asked for here, and not their intervals


@contextmanager
def replayed(recording: Recording, **judge: Any) -> Iterator[LlmJudge]:
    """A judge whose endpoint is a server of the recording's; every item that it asks about is one that was recorded."""
    server = recording.served()
    endpoint = Endpoint(base_url=server.base_url, api_key="unused")
    try:
        yield LlmJudge(name="recorded", criteria="As it was asked.", model="recorded", **judge).at([endpoint])
        assert recording.unknown == 0
    finally:
        close_connections()
        server.close()


# --- Prometheus: test-retest -----------------------------------------------------------------------------------------


def test_prometheus_quadratic_kappa_between_repeats_is_from_80_to_88() -> None:
    """Each pair of the three recorded scores, for each of the two files by itself (320 responses each): six kappas.

    One grading at a time, so that the first request about an item is its first repeat.
    """
    kappas = []
    for name in ("mt_bench_eval", "vicuna_eval"):
        items, recording = replay.prometheus_items(name)
        with replayed(recording) as judge:
            found = calibrate(judge, items, repeats=3, concurrency=1, progress=False, resamples=RESAMPLES)
        assert (found.n, found.errors) == (960, {})
        assert found.retest is not None
        assert found.retest.n == 320
        kappas += found.retest.kappas
    assert kappas == pytest.approx([0.8355, 0.8759, 0.8411, 0.7985, 0.8037, 0.8197], abs=6e-5)
    assert (f"{min(filter(None, kappas)):.2f}", f"{max(filter(None, kappas)):.2f}") == ("0.80", "0.88")


# --- LLMBar: order ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("model", "prompt", "kappa", "flips"),
    [("GPT-4", "CoT", 0.756, 17), ("ChatGPT", "Vanilla_NoRules", 0.307, 56)],
)
def test_llmbar_pairs_in_both_orders(model: str, prompt: str, kappa: float, flips: int) -> None:
    """The 146 pairs that are in the shared data (Natural, 100, and Adversarial Manual, 46), both orders pooled.

    The figures stated of LLMBar (.623 with 10.7 % and -.206 with 38.9 %) are of pairs that are not there: 10.7 % and 38.9 %
    are no share of 146, but 45 and 163 of the 419 of all five sets (34 and 124 of the 319 adversarial ones).
    """
    pairs = replay.llmbar_pairs(model, prompt)
    assert not [k for k in range(147) if f"{k / 146:.3f}" in ("0.107", "0.389")]
    with replayed(replay.llmbar_recording(pairs), scale="binary", fields=("input", "documents", "output")) as judge:
        found = calibrate(judge, replay.llmbar_items(pairs), progress=False, resamples=RESAMPLES)
    (order,) = found.order
    assert (order.what, order.n, found.errors) == ("documents", 146, {})
    assert order.flips == pytest.approx(flips / 146)
    assert order.kappa_both == pytest.approx(kappa, abs=5e-4)
    assert order.kappa_both == pytest.approx(_llmbar_kappa(pairs), abs=1e-12)


def test_a_recorded_answer_without_a_verdict_is_an_error_and_no_number() -> None:
    """ChatGPT with reasoning finds both outputs equally good, once in either order: nothing is made of that."""
    pairs = replay.llmbar_pairs("ChatGPT", "CoT")
    with replayed(replay.llmbar_recording(pairs), scale="binary", fields=("input", "documents", "output")) as judge:
        found = calibrate(judge, replay.llmbar_items(pairs), progress=False, resamples=RESAMPLES)
    assert (found.n, found.gradings, found.errors) == (145, 146, {"unparseable": 1})
    (order,) = found.order
    assert (order.n, order.errors) == (144, {"unparseable": 1})
    assert sum(map(sum, found.confusion.counts)) == 145


def _llmbar_kappa(pairs: Sequence[dict[str, Any]]) -> float:
    """By hand, from the file: people's label and the winner, both orders."""
    said = [
        (str(pair["label"]), pair["results"][0][order]["winner"])
        for pair in pairs
        for order in ("swap = False", "swap = True")
    ]
    n = len(said)
    people, judge = Counter(p for p, _ in said), Counter(j for _, j in said)
    seen = Fraction(sum(p == j for p, j in said), n)
    chance = sum((Fraction(people[k] * judge[k], n * n) for k in ("1", "2")), Fraction())
    return float((seen - chance) / (1 - chance))


# --- WiCE: agreement -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("scale", ["1-5", "binary"])
@pytest.mark.parametrize("model", ["gpt-4-0613", "gpt-3.5-turbo-0613"])
def test_all_600_answers_on_wice_are_read_as_they_were_given(model: str, scale: str) -> None:
    """Each item labelled with the recorded answer itself: whatever is lost or misread on the way is a disagreement."""
    rows = replay.wice_rows(model)
    items = replay.wice_items(rows, [row["answer"] for row in rows], scale)
    found = _wice(rows, items, scale)
    assert (found.n, found.gradings, found.clusters) == (300, 300, 100)
    assert found.agreement.value == 1.0
    assert found.kappa.value == 1.0


@pytest.mark.parametrize(
    ("model", "three_way", "binary"),
    [("gpt-4-0613", (0.371, 195), (0.493, 243)), ("gpt-3.5-turbo-0613", (0.152, 124), (0.124, 152))],
)
def test_wice_kappas_against_people_are_those_that_are_stated(
    model: str, three_way: tuple[float, int], binary: tuple[float, int]
) -> None:
    """Kappa without weights over 300 judgements: each of the three chunks of the 100 claims by itself against the label of its
    claim, nothing merged. Three-way: not, partially, fully supported as levels 1, 3, 5. Binary: supported, or one of the others.
    """
    rows = replay.wice_rows(model)
    people = replay.wice_people(rows)
    assert Counter(people) == {"supported": 66, "partially_supported": 219, "not_supported": 15}
    levels = _wice(rows, replay.wice_items(rows, people, "1-5"), "1-5")
    verdicts = _wice(rows, replay.wice_items(rows, people, "binary"), "binary")
    assert levels.level_kappa is not None
    for kappa, agreement, (stated, agreeing) in (
        (levels.level_kappa, levels.agreement, three_way),
        (verdicts.kappa, verdicts.agreement, binary),
    ):
        assert agreement.value == pytest.approx(agreeing / 300)
        assert kappa.value == pytest.approx(stated, abs=5e-4)
        assert kappa.interval is not None
        assert kappa.interval.units == 100  # whole claims are drawn
        assert kappa.interval.holds(stated)


def _wice(rows: list[dict[str, Any]], items: list[dict[str, Any]], scale: str) -> Calibration:
    with replayed(replay.wice_recording(rows, scale), scale=scale, fields=("documents", "output")) as judge:
        return calibrate(judge, items, cluster="claim", progress=False, resamples=RESAMPLES)


# --- the command -----------------------------------------------------------------------------------------------------


def test_the_command_reads_a_judge_of_a_file_and_labels_of_a_file(
    tmp_path: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    pairs = replay.llmbar_pairs("GPT-4", "CoT")
    labels = tmp_path / "labels.jsonl"
    labels.write_text("\n".join(json.dumps(row) for row in replay.llmbar_items(pairs)), encoding="utf-8")
    recording = replay.llmbar_recording(pairs)
    server = recording.served()
    judge = tmp_path / "j.yaml"
    judge.write_text(
        "name: better\ncriteria: The output is the better one of the two documents.\nscale: binary\nmodel: gpt-4\n"
        f"fields: [input, documents, output]\njudge_endpoints: [{{base_url: '{server.base_url}', api_key: k}}]\n",
        encoding="utf-8",
    )
    out = tmp_path / "calibration.json"
    try:
        code = main(["calibrate", "--judge", str(judge), "--labels", str(labels), "--json", "--output", str(out)])
    finally:
        close_connections()
        server.close()
    said = json.loads(capsys.readouterr().out)
    assert (code, recording.unknown) == (0, 0)
    assert said["kappa"]["value"] == pytest.approx(0.736, abs=5e-4)
    assert said["order"][0]["kappa_both"] == pytest.approx(0.756, abs=5e-4)
    assert main(["correct", "--calibration", str(out), "--passed", "65", "--n", "146", "--json"]) == 0
    corrected = json.loads(capsys.readouterr().out)
    assert corrected["corrected"] == pytest.approx(64 / 146, abs=1e-9)  # the very items: what people passed of them
