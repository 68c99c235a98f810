"""`spangrade explain` on files, as a person runs it."""

import gzip
import io
import json
import sys
from pathlib import Path
from typing import Any

import pytest

from spangrade import semconv as s
from spangrade_agent.explain.command import OK, PARTIAL, WRONG, main

CASES = Path(__file__).resolve().parents[2].parent / "shared" / "cases" / "inputs"
TRACE, SPAN = "5b8aa5a2d2c872e8321cf37308d69df2", "051581bf3cb55c13"


def case(name: str) -> str:
    found = sorted(CASES.glob(f"{name}*"))
    if not found:
        pytest.skip(f"the case files are not beside this repository ({CASES})")
    return str(found[0])


def text(value: str) -> dict[str, str]:
    return {"stringValue": value}


def request(attributes: dict[str, str], span_id: str = SPAN, **more: Any) -> dict[str, Any]:
    span = {
        "traceId": TRACE,
        "spanId": span_id,
        "name": "answer",
        "startTimeUnixNano": "1750000000000000000",
        "endTimeUnixNano": "1750000001000000000",
        "attributes": [{"key": key, "value": text(value)} for key, value in attributes.items()],
        **more,
    }
    resource = {"attributes": [{"key": "service.name", "value": text("shop")}]}
    return {"resourceSpans": [{"resource": resource, "scopeSpans": [{"scope": {"name": "app"}, "spans": [span]}]}]}


CALL = {s.OI_KIND: "CHAIN", s.OI_INPUT: "When does it come?", s.OI_OUTPUT: "On Monday."}


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "trace.json"
    path.write_text(json.dumps(request(CALL)))
    return path


def test_without_a_configuration_the_agents_default_metrics_are_explained(
    file: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main([str(file)]) == OK
    said = capsys.readouterr().out
    assert f"trace {TRACE}: 1 span, 1 call, of shop" in said
    assert "answer  [chain, read as openinference, by app]" in said
    assert "On Monday." in said
    assert "- overlap: skipped: it needs documents" in said
    assert "- length_words: would run" in said


def test_with_a_configuration_its_metrics_and_judges_are(
    file: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    config = tmp_path / "spangrade.yaml"
    config.write_text(
        "metrics: [length_words]\njudges: [{name: kind, criteria: 'Is it kind?', scale: binary, model: m, live: {rate: 1.0}}]\n"
    )
    assert main([str(file), "--config", str(config), "--run"]) == OK
    said = capsys.readouterr().out
    assert "- length_words: scored: length_words 2" in said
    assert "- kind: would grade" in said
    assert "overlap" not in said


def test_a_metric_beside_the_configuration_is_found(
    file: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "explained_rules.py").write_text(
        "import spangrade as sg\n@sg.metric\ndef short(output: str) -> bool:\n    return len(output) < 20\n"
    )
    config = tmp_path / "spangrade.yaml"
    config.write_text('metrics: ["explained_rules:short"]\n')
    assert main([str(file), "--config", str(config), "--run"]) == OK
    assert "- short: scored: short pass" in capsys.readouterr().out


def test_json_has_the_whole_of_it(file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([str(file), "--json"]) == OK
    found = json.loads(capsys.readouterr().out)
    [one] = found["spans"]
    assert (found["format"], found["notes"]) == (1, [])
    assert (one["kind"], one["dialects"], one["span_id"]) == ("chain", ["openinference"], SPAN)
    [sample] = one["samples"]
    assert (sample["target"], sample["input"], sample["output"]) == ("root", CALL[s.OI_INPUT], CALL[s.OI_OUTPUT])
    assert {pair["evaluator"]: pair["outcome"] for pair in sample["pairs"]} == {
        "overlap": "skipped",
        "length_words": "would_run",
        "no_refusal": "would_run",
    }


def test_text_is_shown_as_a_judge_would_see_it(file: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    config = tmp_path / "spangrade.yaml"
    config.write_text("metrics: [length_words]\nredact: {patterns: ['Monday']}\n")
    assert main([str(file), "--config", str(config), "--json"]) == OK
    said = capsys.readouterr().out
    assert "Monday" not in said
    assert "On [redacted]." in said


def test_log_records_of_another_file_join_their_spans(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    record = {
        "traceId": TRACE,
        "spanId": SPAN,
        "timeUnixNano": "1750000000500000000",
        "eventName": "gen_ai.client.inference.operation.details",
        "attributes": [
            {
                "key": s.INPUT_MESSAGES,
                "value": text('[{"role": "user", "parts": [{"type": "text", "content": "Hi"}]}]'),
            },
            {
                "key": s.OUTPUT_MESSAGES,
                "value": text('[{"role": "assistant", "parts": [{"type": "text", "content": "Ho"}]}]'),
            },
        ],
    }
    spans, logs = tmp_path / "spans.json", tmp_path / "logs.json"
    spans.write_text(json.dumps(request({s.OPERATION_NAME: "chat"})))
    logs.write_text(json.dumps({"resourceLogs": [{"scopeLogs": [{"logRecords": [record]}]}]}))
    assert main([str(spans), str(logs), "--json"]) == OK
    [sample] = json.loads(capsys.readouterr().out)["spans"][0]["samples"]
    assert (sample["input"], sample["output"]) == ("Hi", "Ho")
    assert main([str(spans)]) == OK
    assert "no content was captured" in capsys.readouterr().out


def test_a_file_exporters_rotated_dump_is_read_as_far_as_it_goes(capsys: pytest.CaptureFixture[str]) -> None:
    assert main([case("C096")]) == PARTIAL
    said = capsys.readouterr().out
    assert "Hi f0" in said
    for line in (3, 6, 7):
        assert f"jsonl:{line}: no JSON" in said


def test_wrapped_requests_of_several_signals_are_read(capsys: pytest.CaptureFixture[str]) -> None:
    assert main([case("C068")]) == OK
    assert "[llm, read as" in capsys.readouterr().out


@pytest.mark.parametrize("wrap", ["result", "trace", "batches"])
def test_what_jaegers_and_tempos_apis_answer_is_read(
    wrap: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    held: Any = request(CALL)
    file = tmp_path / "trace.json"
    file.write_text(json.dumps({wrap: held["resourceSpans"] if wrap == "batches" else held}))
    assert main([str(file)]) == OK
    assert "On Monday." in capsys.readouterr().out


def test_standard_input_is_read(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(json.dumps(request(CALL)).encode())))
    assert main(["-"]) == OK
    assert "On Monday." in capsys.readouterr().out


@pytest.mark.parametrize(
    ("content", "said"),
    [
        ("", "it is empty"),
        ("hello", "no JSON"),
        ('{"data": [{"traceID": "1", "spans": []}]}', "Jaeger"),
        ('{"spans": []}', "an object with 'spans'"),
        ("[1, 2]", "a list"),
    ],
)
def test_a_file_that_is_no_otlp_is_named_with_what_would_be(
    content: str, said: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "other.json"
    file.write_text(content)
    assert main([str(file)]) == WRONG
    told = capsys.readouterr().err
    assert "other.json" in told
    assert said in told
    assert "resourceSpans" in told


def test_a_file_that_is_not_there_is_named(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["no-such-trace.json"]) == WRONG
    assert "'no-such-trace.json' cannot be read" in capsys.readouterr().err


def test_one_span_can_be_asked_for(file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([str(file), "--span", SPAN[:6]]) == OK
    assert SPAN in capsys.readouterr().out
    assert main([str(file), "--span", "ffff"]) == WRONG
    assert f"there are: {SPAN}" in capsys.readouterr().err


def test_a_wrong_configuration_is_named(file: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    config = tmp_path / "spangrade.yaml"
    config.write_text("metrics: [no_such_metric]\n")
    assert main([str(file), "--config", str(config)]) == WRONG
    assert "no_such_metric" in capsys.readouterr().err


def test_hostile_text_does_not_drive_the_terminal(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "trace.json"
    file.write_text(json.dumps(request({**CALL, s.OI_OUTPUT: "\x1b[2Jgone\u202e\ud800"}, name="\x1b]0;owned\x07")))
    main([str(file)])
    said = capsys.readouterr().out
    assert "\x1b" not in said
    assert "\u202e" not in said
    assert "\\x1b[2Jgone" in said


def test_nobody_who_answers_where_the_agent_should_is_said(capsys: pytest.CaptureFixture[str]) -> None:
    assert main([TRACE, "--agent", "http://127.0.0.1:9"]) == WRONG
    assert "no agent answers" in capsys.readouterr().err


def test_a_line_ends_where_the_file_ends_it_and_not_inside_of_its_text(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    lines = [
        json.dumps(request({**CALL, s.OI_OUTPUT: f"On\u2028Mon\u0085day {n}."}, f"{n:016x}"), ensure_ascii=False)
        for n in (1, 2)
    ]
    file = tmp_path / "traces.jsonl"
    file.write_text("\r\n".join(lines), encoding="utf-8", newline="")
    assert main([str(file)]) == OK
    assert "2 spans" in capsys.readouterr().out


@pytest.mark.parametrize("encoded", [gzip.compress, lambda data: data.decode().encode("utf-16")])
def test_a_packed_file_and_one_of_another_encoding_are_read(
    encoded: Any, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "trace.json"
    file.write_bytes(encoded(json.dumps(request(CALL)).encode()))
    assert main([str(file)]) == OK
    assert "On Monday." in capsys.readouterr().out
