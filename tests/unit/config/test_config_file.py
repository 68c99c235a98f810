"""The configuration file: the constructor's names, environment variables, and errors that name the key."""

import os
from pathlib import Path

import pytest

import spangrade as sg
from spangrade import semconv as s
from spangrade.config import FileConfig, load
from spangrade.otel.said import Arguments, check
from spangrade.samples.bounds import AssemblyBounds
from spangrade.scoring.evaluators import placed_evaluators
from spangrade.testing import CollectingExporter, event_scores


def write(tmp_path: Path, text: str) -> str:
    path = tmp_path / "spangrade.yaml"
    path.write_text(text, encoding="utf-8")
    return str(path)


FULL = """
version: 1
service_name: "${env:SHOP_NAME:-shop}"
metrics: [overlap, {use: "tests.unit.config.metrics_for_tests:shouting"}]
judges:
  - name: helpful
    criteria: It helps.
    scale: binary
    model: judge-1
    live: {rate: 1.0, when: "overlap.fail", budget: {calls_per_hour: 10}}
    timeout: 7
redact: {patterns: ['\\d{4}']}
hold: 3
export_explanations: false
mode: relay
receivers: {grpc: {listen: "127.0.0.1:4317"}}
"""


def test_a_file_configures_everything(
    tmp_path: Path, exporter: CollectingExporter, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.syspath_prepend(str(Path(__file__).parents[3]))
    monkeypatch.setenv("SPANGRADE_CONFIG", write(tmp_path, FULL))
    sg.configure(exporter=exporter)

    @sg.trace
    def answer(question: str) -> str:
        return "CODE 1234"

    answer("q")
    assert sg.flush(5)
    (span,) = exporter.spans
    assert span.resource.attributes["service.name"] == "shop"
    assert (span.attributes or {})[s.OI_OUTPUT] == "CODE [redacted]"
    score = event_scores(span)["shouting"]
    assert score[s.SCORE_VALUE] == 1.0
    assert s.EXPLANATION not in score
    (judge,) = load(os.environ["SPANGRADE_CONFIG"], FileConfig).judges
    assert placed_evaluators([], [judge])[0].evaluator.timeout == 7


def test_an_argument_wins_over_the_file(tmp_path: Path, exporter: CollectingExporter) -> None:
    file = write(tmp_path, "service_name: from-file\nmetrics: [overlap]\n")
    sg.configure("from-code", metrics=["length_words"], exporter=exporter, config_file=file)
    with sg.trace("call"):
        sg.set_output("one two")
    assert sg.flush(5)
    (span,) = exporter.spans
    assert span.resource.attributes["service.name"] == "from-code"
    assert set(event_scores(span)) == {"length_words"}


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("metricss: [overlap]", "unknown key 'metricss'"),
        ("metrics: [{uses: overlap}]", r"'metrics\.0\.use' is missing; unknown key 'metrics\.0\.uses'"),
        ("judges: [{name: a}]", r"'judges\.0\.criteria' is missing"),
        ("judges: [{name: a, criteria: b, live: {rat: 1}}]", "unknown key"),
        ("hold: soon", "'hold' is 'soon'"),
        ("service_name: ${env:NOT_SET_ANYWHERE}", "service_name: environment variable NOT_SET_ANYWHERE is not set"),
        ("metrics: [{use: '${env:NOT_SET_ANYWHERE}'}]", r"metrics\[0\]\.use: environment variable"),
        ("version: 2", "'version' is 2"),
        ("- a list", "must hold keys and values, not a list"),
        ("a: [", "is not YAML"),
    ],
)
def test_a_wrong_file_is_refused_with_the_key_in_the_sentence(text: str, sentence: str, tmp_path: Path) -> None:
    with pytest.raises(sg.ConfigError, match=sentence):
        load(write(tmp_path, text), FileConfig)


def test_an_empty_file_is_all_defaults(tmp_path: Path) -> None:
    assert load(write(tmp_path, ""), FileConfig).metrics == []


def test_a_pattern_that_is_none_is_refused(tmp_path: Path) -> None:
    with pytest.raises(sg.ConfigError, match=r"redact\.patterns"):
        sg.configure(config_file=write(tmp_path, "redact: {patterns: ['(']}"))


def test_a_judge_in_the_file_must_say_how_it_is_live(tmp_path: Path) -> None:
    with pytest.raises(sg.ConfigError, match="live"):
        sg.configure(config_file=write(tmp_path, "judges: [{name: a, criteria: b, model: m}]"))


def test_what_samples_wait_for_is_said_in_the_file_with_units(tmp_path: Path) -> None:
    text = "assembly: {grace: 2, quiet: 30s, max_age: 20m, max_traces: 10, max_bytes: 1MiB, logs: 0, session_idle: 1m}"
    said = check(Arguments(config_file=write(tmp_path, text))).settings.assembly
    expected = AssemblyBounds(2.0, 30.0, 1200.0, 10, 2**20, 0.0, session_idle=60.0)
    assert said == expected
    assert check(Arguments()).settings.assembly == AssemblyBounds()


def test_a_file_that_is_read_and_given_on_stays_the_same(tmp_path: Path) -> None:
    file = load(write(tmp_path, "assembly: {session_idle: 1m}"), FileConfig)
    assert FileConfig.model_validate(file.model_dump()) == file  # as the agent does with its flags


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("assembly: {quite: 3}", "unknown key 'assembly.quite' .assembly has grace, quiet, max_age"),
        ("assembly: {quiet: 0}", "'assembly.quiet' is 0"),
        ("assembly: {max_traces: 0}", "'assembly.max_traces' is 0"),
        ("assembly: {max_bytes: much}", "'assembly.max_bytes' is 'much'"),
        ("assembly: {logs: -1}", "'assembly.logs' is -1"),
        ("assembly: {session_idle: .inf}", "'assembly.session_idle' is inf"),
    ],
)
def test_what_cannot_be_waited_for_is_said_by_its_key(tmp_path: Path, text: str, said: str) -> None:
    with pytest.raises(sg.ConfigError, match=said):
        load(write(tmp_path, text), FileConfig)
