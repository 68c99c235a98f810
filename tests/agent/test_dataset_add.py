"""`spangrade dataset add` against a running agent, over real sockets."""

import json
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from opentelemetry.exporter.otlp.proto.common.trace_encoder import encode_spans
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor

import spangrade as sg
from spangrade import semconv as s
from spangrade.commands.dataset import main
from spangrade.experiments.dataset_append import add_row
from spangrade.testing import CollectingExporter
from spangrade_agent import app
from spangrade_agent.app import Agent
from spangrade_agent.config import AgentConfig
from spangrade_agent.wire import Kind

ANY = "127.0.0.1:0"
TOKEN = "a-token-of-sixteen-letters"


@pytest.fixture
def agent(monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[..., Agent]]:
    monkeypatch.setattr(app, "METRIC_HOLD_S", app.JUDGE_HOLD_S)
    made: list[Agent] = []

    def make(**settings: Any) -> Agent:
        listeners = {"receivers": {"grpc": None, "http": {"listen": ANY}}, "admin": False, "page": {"listen": ANY}}
        made.append(Agent(AgentConfig.model_validate({**listeners, "metrics": ["overlap"], **settings})))
        made[-1].start()
        return made[-1]

    yield make
    for one in made:
        one.stop(10)


def traced(question: Any = "When does it come?", *, roots: int = 1) -> list[ReadableSpan]:
    """What an application sends: a root with documents, labels and a model."""
    exporter = CollectingExporter()
    provider = TracerProvider(shutdown_on_exit=False)
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    tracer = provider.get_tracer("app")
    text, mime = (question, s.MIME_TEXT) if isinstance(question, str) else (json.dumps(question), s.MIME_JSON)
    with tracer.start_as_current_span("outer"):
        for n in range(roots):
            attributes = {
                s.OI_KIND: "CHAIN",
                s.OI_INPUT: text,
                s.OI_INPUT_MIME: mime,
                s.OI_OUTPUT: f"Parcels arrive within three days. {n}",
                s.RETRIEVAL_DOCUMENTS: '[{"id": "d1", "content": "Parcels arrive within three days.", "score": 0.5}]',
                s.OI_METADATA: '{"tenant": "acme"}',
            }
            with tracer.start_as_current_span("answer", attributes=attributes):
                pass
    return exporter.spans


def kept(running: Agent, spans: list[ReadableSpan]) -> str:
    """The trace id, when the agent has graded what was sent."""
    assert running.relay.ingest("traces", encode_spans(spans).SerializeToString(), "protobuf").kind is Kind.OK
    assert running.pipeline.drain(30, judges=True)
    assert running.store is not None
    assert running.store.flush(30)
    return f"{spans[0].context.trace_id:032x}"


def add(running: Agent | str, trace: str, file: Path, *more: str) -> int:
    where = running if isinstance(running, str) else f"http://{running.addresses.page}"
    return main(["add", trace, "--dataset", str(file), "--agent", where, *more])


def rows(file: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in file.read_text().splitlines()]


def test_a_live_sample_becomes_an_item_that_evaluate_reads(
    agent: Callable[..., Agent], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    running, file = agent(store={"content": "keep"}), tmp_path / "new" / "faq.jsonl"
    trace = kept(running, traced())
    assert add(running, trace, file, "--expected", "Three days.") == 0
    assert "added to" in capsys.readouterr().out
    (row,) = rows(file)
    assert row["input"] == "When does it come?"
    assert row["expected"] == "Three days."
    assert row["documents"] == [{"content": "Parcels arrive within three days.", "id": "d1", "score": 0.5}]
    assert row["metadata"]["tenant"] == "acme"
    assert row["metadata"]["trace_id"] == trace
    assert 0 < row["metadata"]["live_scores"]["overlap"] <= 1
    results = sg.evaluate(file, None, ["overlap"])
    assert results.scores("overlap")[0].value == row["metadata"]["live_scores"]["overlap"]
    assert results.items[0].item_id == row["id"]


def test_a_json_input_is_a_json_value_again(agent: Callable[..., Agent], tmp_path: Path) -> None:
    running, file = agent(store={"content": "keep"}), tmp_path / "faq.jsonl"
    assert add(running, kept(running, traced({"q": "when", "n": [1]})), file, "--expected-output") == 0
    (row,) = rows(file)
    assert row["input"] == {"q": "when", "n": [1]}
    assert row["expected"] == row["output"] == "Parcels arrive within three days. 0"


def test_the_same_sample_is_added_once_and_another_word_on_it_replaces_only_if_asked(
    agent: Callable[..., Agent], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    running, file = agent(store={"content": "keep"}), tmp_path / "faq.jsonl"
    file.write_text('{"input": "mine, without an end of line"}')
    trace = kept(running, traced())
    assert [add(running, trace, file), add(running, trace.upper(), file)] == [0, 0]
    assert "is already in" in capsys.readouterr().out
    assert add(running, trace, file, "--expected", "x") == 1
    assert "--replace puts this one in its place" in capsys.readouterr().err
    assert "expected" not in rows(file)[1]
    assert add(running, trace, file, "--expected", "x", "--replace") == 0
    assert [row.get("expected") for row in rows(file)] == [None, "x"]


def test_of_several_samples_one_is_chosen_by_its_span_or_by_the_id_that_the_page_shows(
    agent: Callable[..., Agent], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    running, file = (
        agent(store={"content": "keep"}, metrics=[{"use": "overlap", "target": "chain"}]),
        tmp_path / "faq.jsonl",
    )
    spans = traced(roots=2)
    trace = kept(running, spans)
    assert add(running, trace, file) == 2
    said = capsys.readouterr().err
    assert "it has 2 samples; choose one:" in said
    wanted = f"{spans[0].context.span_id:016x}"
    assert f"--span {wanted} --target chain  answer: When does it come?" in said
    assert not file.exists()
    assert add(running, trace, file, "--span", wanted) == 0
    assert add(running, f"http://x/samples/{trace}-{spans[1].context.span_id:016x}-chain", file) == 0
    assert [row["output"][-1] for row in rows(file)] == ["0", "1"]
    assert add(running, trace, file, "--span", "f" * 16) == 2
    assert "none of its samples is of that span" in capsys.readouterr().err


def test_a_store_that_redacts_gives_redacted_text_and_says_so_and_one_without_content_gives_nothing(
    agent: Callable[..., Agent], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    redacting = agent(redact={"patterns": ["three"]})
    assert add(redacting, kept(redacting, traced()), tmp_path / "a.jsonl") == 0
    assert "note: the agent redacts what it keeps" in capsys.readouterr().err
    assert "three" not in (tmp_path / "a.jsonl").read_text()
    without = agent(store={"content": "none"})
    assert add(without, kept(without, traced()), tmp_path / "b.jsonl") == 2
    assert "keeps no content (store.content: none)" in capsys.readouterr().err
    off = agent(store=False)
    assert add(off, "1" * 32, tmp_path / "b.jsonl") == 2
    assert "keeps no samples (store: off)" in capsys.readouterr().err
    assert not (tmp_path / "b.jsonl").exists()


def test_a_token_is_asked_for_and_never_shown(
    agent: Callable[..., Agent], tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    running, file = agent(page={"listen": ANY, "token": TOKEN}), tmp_path / "faq.jsonl"
    trace = kept(running, traced())
    assert add(running, trace, file) == 2
    assert "wants a token: give --token, or set SPANGRADE_TOKEN" in capsys.readouterr().err
    assert add(running, trace, file, "--token", f"{TOKEN}x") == 2
    assert TOKEN not in capsys.readouterr().err
    assert add(running, trace, file, "--token", TOKEN) == 0
    monkeypatch.setenv("SPANGRADE_TOKEN", TOKEN)
    assert add(running, trace, file) == 0


def test_what_cannot_work_is_said_with_the_way_out(
    agent: Callable[..., Agent], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    running, file = agent(), tmp_path / "faq.jsonl"
    trace = kept(running, traced())

    def said(*arguments: Any) -> str:
        assert add(*arguments) == 2
        return capsys.readouterr().err

    assert "is no trace id: that is 32 hex digits" in said(running, "nonsense", file)
    assert "has nothing of trace" in said(running, "2" * 32, file)
    assert "no agent answers at http://127.0.0.1:9 (" in said("127.0.0.1:9", trace, file)
    assert "is no address" in said("ftp://127.0.0.1", trace, file)
    assert "is no agent of this version" in said(f"http://{running.addresses.http}", trace, file)
    assert "is no JSON Lines" in said(running, trace, tmp_path / "faq.csv")
    assert "say two things" in said(running, trace, file, "--expected", "x", "--expected-output")
    file.write_text("{\n")
    assert "line 1: is not JSON" in said(running, trace, file)
    assert file.read_text() == "{\n"


def test_many_that_add_at_once_lose_no_row_and_leave_no_half_one(tmp_path: Path) -> None:
    file = tmp_path / "faq.jsonl"
    with ThreadPoolExecutor(8) as pool:
        done = list(pool.map(lambda n: add_row(file, {"id": f"{n % 20}", "input": n % 20}), range(60)))
    assert sorted(set(done)) == ["added", "there"]
    assert sorted(int(row["id"]) for row in rows(file)) == list(range(20))
    assert [one.name for one in tmp_path.iterdir()] == ["faq.jsonl"]


def test_a_link_stays_a_link_and_the_file_keeps_its_rights(tmp_path: Path) -> None:
    real, link = tmp_path / "real.jsonl", tmp_path / "link.jsonl"
    real.write_text("")
    real.chmod(0o640)
    link.symlink_to(real)
    assert add_row(link, {"id": "a", "input": "x"}) == "added"
    assert link.is_symlink()
    assert (len(rows(real)), real.stat().st_mode & 0o777) == (1, 0o640)
