"""What an application names becomes what the pipeline runs: each once, and told apart."""

import importlib
import linecache
import shutil
import sys
from pathlib import Path
from typing import Any

import pytest

import spangrade as sg
from spangrade.delivery.payload import attributes_of
from spangrade.errors import ConfigError
from spangrade.model.sample import Sample
from spangrade.scoring.evaluators import placed_evaluators
from spangrade.semconv import CONFIG_HASH, EVALUATOR_VERSION, SCORE_ID

from .conftest import call_span


def cites(output: str) -> float:
    return 0.5


def test_two_metrics_of_one_name_and_config_are_refused() -> None:
    for one, two in (
        (sg.metric(cites), sg.metric(cites)),
        (sg.metric(version=2)(cites), sg.metric(version=2, threshold=0.9)(cites)),  # a threshold is no identity
        ("overlap", "overlap"),
        (cites, sg.metric(name="cites")(lambda output: 1)),
    ):
        with pytest.raises(ConfigError, match=r"two evaluators are named '\w+' with the same config; give one another"):
            placed_evaluators([one, two], [])


def test_two_of_one_name_and_other_config_stand_side_by_side_and_are_told_apart_on_the_wire(harness: Any) -> None:
    placed = placed_evaluators([sg.metric(version=1)(cites), sg.metric(version=2)(cites), cites], [])
    h = harness(*placed)
    h.send(call_span())
    assert h.pipeline.drain(5, judges=True)
    sent = [attributes_of(record) for record in h.sink.records]
    assert sorted(str(a.get(EVALUATOR_VERSION)) for a in sent) == ["1", "2", "None"]
    assert len({a.get(CONFIG_HASH) for a in sent}) == len({a[SCORE_ID] for a in sent}) == 3
    assert len(h.pipeline.ledger.snapshot()) == 3


def test_a_metric_whose_source_changed_while_its_version_did_not_gets_one_warning(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.syspath_prepend(str(tmp_path))
    module = tmp_path / "reloaded_metrics.py"
    text = "import spangrade as sg\n\n\n@sg.metric(version={version})\ndef checks(output):\n    return {value}\n"

    def configured(version: int, value: float) -> None:
        module.write_text(text.format(version=version, value=value))
        importlib.invalidate_caches()
        sys.modules.pop("reloaded_metrics", None)
        shutil.rmtree(tmp_path / "__pycache__", ignore_errors=True)  # both were written within one second
        linecache.clearcache()
        (placed,) = placed_evaluators(["reloaded_metrics:checks"], [])
        assert placed.evaluator.evaluate(Sample(output="a")).scores[0].value == value

    with caplog.at_level("INFO", logger="spangrade"):
        configured(1, 0.25)
        configured(1, 0.25)
        configured(2, 0.5)
        assert caplog.records == []
        configured(2, 0.75)
        configured(2, 0.5)
    assert [("checks" in r.getMessage(), "version" in r.getMessage()) for r in caplog.records] == [(True, True)]
