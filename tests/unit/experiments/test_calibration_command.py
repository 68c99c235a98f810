"""``spangrade judge calibrate`` and ``correct``: what they read, say, refuse and write, against a server on the loopback."""

import json
import os
import re
import signal
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.unit.judges.conftest import ENVIRONMENT, JudgeServer, Received, Reply, completion

from spangrade import LlmJudge
from spangrade.commands.judge import main
from spangrade.errors import ConfigError
from spangrade.experiments.calibration import calibrate, read_calibration
from spangrade.experiments.calibration.judge_file import judge_in
from spangrade.judges.providers import Endpoint, close_connections

Says = Callable[[int, str], Any]


class Answering:
    """A judge's endpoint that finds the answer's number in the prompt and replies what ``says`` makes of it."""

    def __init__(self, says: Says) -> None:
        self._says = says
        self.server = JudgeServer(respond=self._respond)

    def _respond(self, received: Received) -> Reply:
        prompt = received.body["messages"][1]["content"]
        found = re.search(r"answer (\d+)", prompt)
        assert found is not None
        said = self._says(int(found[1]), prompt)
        if isinstance(said, Reply):
            return said
        key = "verdict" if isinstance(said, str) else "score"
        return completion(json.dumps({"reasoning": "So.", key: said}))


@pytest.fixture(autouse=True)
def _no_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ENVIRONMENT:
        monkeypatch.delenv(name, raising=False)


@pytest.fixture
def answering() -> Iterator[Callable[[Says], Answering]]:
    made: list[Answering] = []

    def make(says: Says) -> Answering:
        made.append(Answering(says))
        return made[-1]

    yield make
    close_connections()
    for one in made:
        one.server.close()


def rows(n: int, label: Callable[[int], Any], **more: Any) -> list[dict[str, Any]]:
    return [{"id": str(k), "input": "q", "output": f"answer {k}", "label": label(k), **more} for k in range(n)]


def judge_at(served: Answering, **options: Any) -> LlmJudge:
    judge = LlmJudge(name="helpful", criteria="Does it help?", model="m", **options)
    return judge.at([Endpoint(base_url=served.server.base_url, api_key="k")])


def files(tmp_path: Path, served: Answering, labels: list[dict[str, Any]], **keys: Any) -> list[str]:
    judge = {"name": "helpful", "criteria": "Does it help?", "model": "m", **keys}
    judge["judge_endpoints"] = [{"base_url": served.server.base_url, "api_key": "k"}]
    (tmp_path / "j.yaml").write_text(json.dumps(judge), encoding="utf-8")
    (tmp_path / "labels.jsonl").write_text("\n".join(map(json.dumps, labels)), encoding="utf-8")
    return ["calibrate", "--judge", str(tmp_path / "j.yaml"), "--labels", str(tmp_path / "labels.jsonl")]


def level(k: int, _prompt: str = "") -> int:
    return k % 5 + 1


# --- what is told ----------------------------------------------------------------------------------------------------


def test_a_failure_is_counted_by_its_kind_and_stands_in_no_figure(answering: Any) -> None:
    def says(k: int, _prompt: str) -> Any:
        return completion("I will not say.") if k % 10 == 0 else level(k)

    found = calibrate(judge_at(answering(says)), rows(40, level), progress=False)
    assert (found.gradings, found.n, found.errors) == (40, 36, {"unparseable": 4})
    assert found.coverage == pytest.approx(0.9)
    assert (found.agreement.value, found.kappa.value, found.level_kappa and found.level_kappa.value) == (1.0, 1.0, 1.0)
    assert sum(map(sum, found.confusion.counts)) == 36
    said = str(found)
    assert "graded 36 of 40 (90.0%); no score from 4 (unparseable 4), which count nowhere below" in said


def test_an_item_that_the_judge_skips_is_counted_as_that(answering: Any) -> None:
    judge = judge_at(answering(level), fields=("output", "expected"))
    given = [{**row, "expected": "x" if k % 2 else None} for k, row in enumerate(rows(20, level))]
    found = calibrate(judge, given, progress=False)
    assert (found.n, found.errors) == (10, {"skipped": 10})
    assert "expected missing" in found.error_messages["skipped"]


def test_weighted_kappa_is_of_levels_and_verdicts_have_their_own(answering: Any) -> None:
    """The judge is one level too kind to everything under 5: far from exact, near in levels."""
    found = calibrate(judge_at(answering(lambda k, _: min(5, level(k) + 1))), rows(100, level), progress=False)
    assert found.weights == "quadratic"
    assert found.agreement.value == pytest.approx(0.2)
    assert found.bias is not None
    assert found.bias.value == pytest.approx(0.2)  # four of five are a quarter too high
    # by hand: E(x-y)^2 = 16/20/... in levels: (1,1,1,1,0) mean .8; variances 2 and 1.36; means 3 and 3.8
    assert found.kappa.value == pytest.approx(1 - 0.8 / (2 + 1.36 + 0.64))
    assert found.confusion.counts[0] == (0, 20, 0, 0, 0)
    assert found.rates.false_positive_rate == pytest.approx(0.5)  # of 1 and 2, the 2s are given a 3


def test_pass_and_fail_labels_choose_a_pass_mark_on_levels(answering: Any) -> None:
    """People pass what the judge gives a 5; the judge ships with a pass mark of 3."""
    found = calibrate(
        judge_at(answering(level)), rows(100, lambda k: "pass" if level(k) == 5 else "fail"), progress=False
    )
    assert found.weights is None
    assert found.choice is not None
    assert (found.choice.threshold, found.choice.held_out) == (1.0, 1.0)
    assert found.choice.shipped == pytest.approx((1 + 0.5) / 2)
    assert found.rates.false_positive_rate == pytest.approx(0.5)
    assert found.choice.rates.false_positive_rate == 0
    assert found.confusion.people == ("fail", "pass")
    assert found.confusion.judge == ("1", "2", "3", "4", "5")
    assert "chosen threshold      1 [1, 1] by balanced accuracy (Youden)" in str(found)


def test_a_binary_judge_is_held_against_levels_by_their_pass_mark(answering: Any) -> None:
    judge = judge_at(answering(lambda k, _: "pass" if level(k) >= 4 else "fail"), scale="binary")
    assert calibrate(judge, rows(50, level), progress=False, label_pass=4).kappa.value == 1.0
    lower = calibrate(judge, rows(50, level), progress=False)
    assert lower.agreement.value == pytest.approx(0.8)  # by default a 3 is a pass
    assert lower.choice is None
    assert "every threshold above 0 is the same" in (lower.choice_note or "")


def test_asking_again_tells_how_often_the_verdict_changes(answering: Any) -> None:
    asked: dict[int, int] = {}

    def says(k: int, _prompt: str) -> str:
        asked[k] = asked.get(k, 0) + 1
        return "fail" if k % 4 == 0 and asked[k] == 2 else "pass"

    judge = judge_at(answering(says), scale="binary")
    found = calibrate(judge, rows(40, lambda k: "pass" if k % 2 else "fail"), repeats=2, concurrency=1, progress=False)
    assert found.retest is not None
    assert (found.retest.n, found.retest.flips) == (40, 0.25)
    assert (found.n, found.clusters) == (80, 40)


def test_a_judge_who_believes_the_first_document_flips_with_their_order(answering: Any) -> None:
    def says(_k: int, prompt: str) -> str:
        return "pass" if prompt.index("good source") < prompt.index("bad source") else "fail"

    served = answering(says)
    given = rows(30, lambda _k: "pass", documents=["good source", "bad source"])
    given += [
        {**row, "id": f"x{row['id']}", "label": "fail"}
        for row in rows(10, lambda _k: "fail", documents=["good source, not bad source"])
    ]
    judge = judge_at(served, scale="binary", fields=("output", "documents"))
    found = calibrate(judge, given, progress=False)
    (order,) = found.order
    assert (order.what, order.n, order.flips) == ("documents", 30, 1.0)  # one document has no order
    assert calibrate(judge, given, progress=False, order=False).order_note == "not asked for"


def test_examples_in_another_order_are_tried_too(answering: Any) -> None:
    served = answering(level)
    examples = ({"output": "first example", "level": 1}, {"output": "second example", "level": 5})
    found = calibrate(judge_at(served, examples=examples), rows(10, level), progress=False)
    (order,) = found.order
    assert (order.what, order.n, order.flips) == ("examples", 10, 0.0)
    firsts = [r.body["messages"][0]["content"] for r in served.server.requests]
    turned = [text.index("second example") < text.index("first example") for text in firsts]
    assert (turned.count(False), turned.count(True)) == (10, 10)


def test_without_an_order_to_change_that_is_said(answering: Any) -> None:
    found = calibrate(judge_at(answering(level)), rows(10, level), progress=False)
    assert found.order == ()
    assert "order stability       not applicable" in str(found)


def test_several_annotators_are_compared_with_each_other_and_with_the_judge(answering: Any) -> None:
    given = [
        {"id": str(k), "output": f"answer {k}", "labels": {"ann": level(k), "ben": level(k) if k % 2 else None, "cy": max(1, level(k) - 1)}}
        for k in range(50)
    ]  # fmt: skip
    found = calibrate(judge_at(answering(level)), given, progress=False)
    assert found.annotators is not None
    assert (found.annotators.names, found.annotators.level) == (("ann", "ben", "cy"), "ordinal")
    assert found.annotators.kappa_judge["ann"] == (1.0, 50)
    assert found.annotators.kappa_judge["ben"] == (1.0, 25)
    assert found.annotators.alpha is not None
    assert found.annotators.alpha < (found.annotators.alpha_with_judge or 0) < 1


# --- the command -----------------------------------------------------------------------------------------------------


def test_error_rates_are_written_and_correct_a_pass_rate(tmp_path: Path, answering: Any, capsys: Any) -> None:
    """People pass 60 of 100. The judge passes 54 of these and 8 of the 40 others."""

    def says(k: int, _prompt: str) -> str:
        return "pass" if k < 54 or 60 <= k < 68 else "fail"

    arguments = files(tmp_path, answering(says), rows(100, lambda k: "pass" if k < 60 else "fail"), scale="binary")
    out = tmp_path / "calibration.json"
    assert main([*arguments, "--output", str(out)]) == 0
    told = capsys.readouterr()
    assert "Cohen's kappa         0.706" in told.out
    assert "100 judge calls, about" in told.err
    assert json.loads(out.read_text())["format"] == 1
    rates = read_calibration(out)["shipped"]
    assert (rates.true_positive_rate, rates.true_negative_rate) == (pytest.approx(0.9), pytest.approx(0.8))
    assert (rates.passed_items, rates.failed_items) == (60, 40)
    assert main(["correct", "--calibration", str(out), "--passed", "620", "--n", "1000"]) == 0
    assert "people would pass 60.0% [" in capsys.readouterr().out
    assert main(["correct", "--calibration", str(out), "--passed", "620", "--n", "1000", "--threshold", "chosen"]) == 2
    assert "has no error rates at the chosen threshold; it has shipped" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("n", "label", "words"),
    [
        (20, lambda k: "pass" if k % 2 else "fail", "passed 10 and failed 10; it takes 10 of each and 30 together"),
        (60, lambda k: "fail" if k % 20 == 0 else "pass", "passed 57 and failed 3; it takes 10 of each"),
        (60, lambda k: "pass" if k % 2 else "fail", "such verdicts cannot be corrected"),
    ],
)
def test_error_rates_that_would_correct_nothing_are_not_written(
    tmp_path: Path, answering: Any, capsys: Any, n: int, label: Any, words: str
) -> None:
    served = answering(lambda k, _: "pass" if k % 3 else "fail")
    arguments = files(tmp_path, served, rows(n, label), scale="binary")
    out = tmp_path / "calibration.json"
    assert main([*arguments, "--output", str(out)]) == 1
    told = capsys.readouterr()
    assert words in told.err
    assert "Cohen's kappa" in told.out
    assert not out.exists()


def test_a_judges_cache_is_off_since_from_it_every_judge_is_stable(tmp_path: Path, answering: Any) -> None:
    served = answering(level)
    assert main([*files(tmp_path, served, rows(5, level), cache=100), "--repeats", "3"]) == 0
    assert len(served.server.requests) == 15


def test_gradings_from_a_cache_that_was_left_on_are_said(answering: Any) -> None:
    found = calibrate(judge_at(answering(level)).with_cache(), rows(5, level), repeats=2, concurrency=1, progress=False)
    assert found.cached == 5
    assert "5 gradings came from the judge's cache" in str(found)


def test_labels_that_are_numbers_of_any_kind_have_a_weighted_kappa_and_no_levels(answering: Any) -> None:
    given = rows(300, lambda k: (level(k) - 1) / 4 * 0.9 + k / 4000)
    found = calibrate(judge_at(answering(level)), given, progress=False)
    assert (found.label_scale, found.weights, found.level_kappa) == ("0-1", "quadratic", None)
    assert found.kappa.value is not None
    assert 0.95 < found.kappa.value < 1
    assert found.confusion.people == ("fail", "pass")  # 300 rows would be read by nobody


def test_ctrl_c_ends_a_calibration_with_130(
    tmp_path: Path, answering: Any, capsys: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    def says(k: int, _prompt: str) -> int:
        if k == 3:
            os.kill(os.getpid(), signal.SIGINT)
        return level(k)

    assert main([*files(tmp_path, answering(says), rows(500, level)), "--concurrency", "1"]) == 130
    assert "stopped; " in capsys.readouterr().err


def test_the_estimate_asks_nothing(tmp_path: Path, answering: Any, capsys: Any) -> None:
    served = answering(level)
    arguments = files(tmp_path, served, rows(10, level))
    assert main([*arguments, "--repeats", "3", "--estimate", "--json"]) == 0
    cost = json.loads(capsys.readouterr().out)
    assert cost["calls"] == 30
    assert served.server.requests == []
    assert main([*arguments, "--repeats", "3", "--json"]) == 0
    capsys.readouterr()
    sent = sum(len(m["content"]) for r in served.server.requests for m in r.body["messages"])
    assert cost["input_tokens"] == pytest.approx(sent / 4, abs=1)
    assert cost["usd"] is None


def test_the_estimate_is_in_dollars_where_the_price_is_known(tmp_path: Path, answering: Any, capsys: Any) -> None:
    price = {"input": 1.0, "output": 10.0}
    arguments = files(tmp_path, answering(level), rows(10, level), live={"price": price})
    assert main([*arguments, "--estimate", "--json"]) == 0
    cost = json.loads(capsys.readouterr().out)
    assert cost["usd"] == pytest.approx((cost["input_tokens"] + 10 * cost["output_tokens"]) / 1e6, rel=0.01)
    assert main([*arguments, "--estimate"]) == 0
    assert re.search(
        r"10 judge calls, about [\d,]+ tokens in and 1,200 out, about 0\.\d\d US dollars", capsys.readouterr().out
    )
    assert main([*files(tmp_path, answering(level), rows(10, level)), "--estimate"]) == 0
    assert "the model's price is not known" in capsys.readouterr().out


def test_where_nothing_is_graded_the_first_error_of_each_kind_is_said(
    tmp_path: Path, answering: Any, capsys: Any
) -> None:
    served = answering(lambda _k, _p: Reply(401, {"error": {"message": "bad key"}}))
    assert main(files(tmp_path, served, rows(5, level))) == 1
    told = capsys.readouterr().out
    assert "graded 0 of 5 (0.0%); no score from 5 (http_status 5)" in told
    assert "nothing was graded, so nothing is known of the judge" in told


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (["--judge", "nowhere.yaml"], "'nowhere.yaml' cannot be read"),
        (["--judge", "j.yaml:other"], "'j.yaml' has no judge 'other'; it has helpful"),
        (["--judge", "no.such.module:judge"], "no.such.module"),
        (["--labels", "nowhere.jsonl"], "'nowhere.jsonl' cannot be read"),
        (["--repeats", "0"], "repeats"),
        (["--concurrency", "0"], "concurrency"),
        (["--folds", "1"], "held-out folds are at least 2"),
        (["--label-pass", "9"], "not from 1 to 5"),
        (["--cluster", "claim"], "has no 'claim' in its metadata"),
        (["--output", "no/where/c.json"], "is not there, or cannot be written to"),
    ],
)  # fmt: skip
def test_what_cannot_work_is_said_before_the_judge_is_asked(
    tmp_path: Path, answering: Any, capsys: Any, monkeypatch: pytest.MonkeyPatch, change: list[str], words: str
) -> None:
    served = answering(level)
    arguments = files(tmp_path, served, rows(5, level))
    monkeypatch.chdir(tmp_path)
    assert main([*arguments, *change]) == 2
    assert words in capsys.readouterr().err
    assert served.server.requests == []


def test_without_a_model_the_sentence_says_where_one_comes_from(tmp_path: Path, answering: Any, capsys: Any) -> None:
    arguments = files(tmp_path, answering(level), rows(5, level), model=None)
    assert main(arguments) == 2
    assert "SPANGRADE_JUDGE_MODEL" in capsys.readouterr().err


def test_help_documents_the_labels(capsys: Any) -> None:
    with pytest.raises(SystemExit):
        main(["calibrate", "--help"])
    said = capsys.readouterr().out
    assert '{"ann": "pass", "ben": "fail", "cy": null}' in said
    assert "output is required" in said


# --- the judge's file ------------------------------------------------------------------------------------------------


def test_a_whole_configuration_file_gives_its_judge_by_name(tmp_path: Path) -> None:
    path = tmp_path / "spangrade.yaml"
    path.write_text(
        "service_name: shop\njudges:\n- {name: a, criteria: x, model: m, live: {rate: 0.1}, cache: 100}\n"
        "- {name: b, criteria: y, model: m, threshold: 0.75, timeout: 9}\n",
        encoding="utf-8",
    )
    judge = judge_in(f"{path}:b")
    assert (judge.name, judge.threshold, judge.timeout) == ("b", 0.75, 9)
    assert judge_in(f"{path}:a").name == "a"
    with pytest.raises(ConfigError, match=r"has 2 judges; say which, as in .*:a \(a, b\)"):
        judge_in(str(path))


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("{}", "has no judge"),
        ("name: a\ncriteria: x\nscael: binary\n", "unknown key 'judges.0.scael'"),
        ("name: a\n", "'judges.0.criteria' is missing"),
        ("- a\n", "must hold keys and values"),
        ("name: a\ncriteria: x\nmodel: ${env:NO_SUCH_MODEL_VARIABLE}\n", "NO_SUCH_MODEL_VARIABLE is not set"),
    ],
)
def test_a_judge_file_that_cannot_work_says_why(tmp_path: Path, text: str, words: str) -> None:
    path = tmp_path / "j.yaml"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(ConfigError, match=re.escape(words)):
        judge_in(str(path))


def test_a_judge_file_that_is_not_utf_8_says_so(tmp_path: Path) -> None:
    path = tmp_path / "j.yaml"
    path.write_bytes("name: h\ncriteria: naïve\n".encode("latin-1"))
    with pytest.raises(ConfigError, match="is not UTF-8"):
        judge_in(str(path))


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("no json", "is not JSON"),
        ("{}", "is no calibration"),
        ('{"kind": "spangrade.judge_calibration", "format": 99}', "reads format 1"),
        ('{"kind": "spangrade.judge_calibration", "format": 1}', "is damaged"),
        (
            '{"kind": "spangrade.judge_calibration", "format": 1, "error_rates": {"shipped": {"threshold": 1}}}',
            "is damaged",
        ),
    ],
)
def test_a_file_that_is_no_calibration_is_refused(tmp_path: Path, text: str, words: str) -> None:
    path = tmp_path / "c.json"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(ConfigError, match=words):
        read_calibration(path)


def test_a_file_of_format_1_is_read_whatever_stands_beside_the_rates(tmp_path: Path) -> None:
    """What this release writes, kept by hand: the next one must read it."""
    path = tmp_path / "c.json"
    path.write_text(
        '{"kind": "spangrade.judge_calibration", "format": 1, "judge": "helpful", "later": {}, "error_rates": {"shipped": {'
        '"threshold": 0.5, "true_positive_rate": 0.9, "true_negative_rate": 0.8, "passed_items": 60, "failed_items": 40, '
        '"held_out": false}}}',
        encoding="utf-8",
    )
    rates = read_calibration(path)
    assert list(rates) == ["shipped"]
    assert rates["shipped"].corrected(0.62, 1000).value == pytest.approx(0.6)
