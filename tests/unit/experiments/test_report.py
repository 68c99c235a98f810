"""The HTML reports: what they show, that nothing gets out of its place, and that they load nothing."""

import base64
import hashlib
import re
import shutil
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.unit.experiments.made import BOOM, failed, item, results, scored

from spangrade.errors import ConfigError
from spangrade.experiments.compare import compare
from spangrade.experiments.records import EvaluatorRecord, ItemResult
from spangrade.experiments.report import html_of, html_of_comparison, texts
from spangrade.experiments.results import Results
from spangrade.model.score import Rule

VOID = {"meta", "input"}


class Reader(HTMLParser):
    """The page as a browser would nest it: every tag closed by its own end tag."""

    def __init__(self, page: str) -> None:
        super().__init__(convert_charrefs=True)
        self.open: list[str] = []
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.words: list[str] = []
        self.code: dict[str, str] = {}
        self.feed(page)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))
        if tag not in VOID:
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        if self.open and self.open[-1] in ("style", "script"):
            self.code[self.open[-1]] = data
        else:
            self.words.append(data)

    @property
    def text(self) -> str:
        return " ".join(" ".join(self.words).split())

    def all(self, tag: str, **having: str) -> list[dict[str, str | None]]:
        return [a for t, a in self.tags if t == tag and all(v in (a.get(k) or "") for k, v in having.items())]


def experiment(**more: Any) -> Results:
    """Eight items; the third fails its verdict, the fourth errs, the fifth has a task that failed."""
    rows = [
        item(
            scored(f"q{i}", 0.1 if i == 2 else 0.6 + i / 50, i != 2, explanation=f"because {i}"),
            failed(f"q{i}", name="j") if i == 3 else scored(f"q{i}", 1.0, True, name="j"),
            scored(f"q{i}", None, label="calm" if i % 2 else "angry", name="mood"),
            input=f"question {i}",
            output=f"answer {i}",
            expected="expected",
            documents=({"content": f"document {i}"},),
            metadata={"tenant": "xy"[i % 2]},
        )
        for i in range(8)
    ]
    rows[4] = ItemResult("q4", input="question 4", error=BOOM)
    evaluators = (
        EvaluatorRecord("m", threshold=0.5, version="3"),
        EvaluatorRecord("j", "llm"),
        EvaluatorRecord("mood", verdict=False),
    )
    return results(*rows, evaluators=evaluators, name="exp", dataset="faq.jsonl", **more)


def both(a: Results, b: Results, **how: Any) -> str:
    return html_of_comparison(compare(a, b, resamples=300, **how))


# --- what they show -------------------------------------------------------------------------------------------------------


def test_scores_have_mean_pass_rate_intervals_and_counts() -> None:
    page = Reader(html_of(experiment()))
    for said in ("exp", "faq.jsonl (8 items)", "metric, version 3, passes at 0.5 or more", "85.7%", "because 2"):
        assert said in page.text
    assert "The task failed in 1 of 8 runs; nothing could be scored there." in page.text
    assert re.search(
        r"or more 7 0\.59\S* \S+ to \S+\? 85\.7% 48\.7% to 97\.4% m: pass rate 85\.7%, 48\.7% to 97\.4% 0 0 1 j judge 6",
        page.text,
    )


def test_an_interval_of_few_items_is_marked_and_the_mark_explained() -> None:
    few, many = (results(*(item(scored(f"q{i}", i / 90)) for i in range(n))) for n in (8, 90))
    assert "An interval with a question mark should not be relied on" in Reader(html_of(few)).text
    assert "question mark" not in Reader(html_of(many)).text


@pytest.mark.parametrize(
    ("iso", "shown"),
    [
        ("2026-11-30T19:51:00.123+00:00", "2026-11-30 19:51 UTC"),
        ("2026-11-30T21:51:00+02:00", "2026-11-30 19:51 UTC"),
        ("2026-11-30T19:51:00Z", "2026-11-30 19:51 UTC"),
        ("2026-11-30T19:51", "2026-11-30 19:51"),
        ("yesterday", "yesterday"),
    ],
)
def test_the_time_of_the_run_is_told_in_utc(iso: str, shown: str) -> None:
    assert f"Started {shown}" in Reader(html_of(experiment(started=iso))).text


def test_a_measurement_or_a_low_score_where_lower_is_better_is_not_bad() -> None:
    rows = [item(scored(f"q{i}", float(i)), scored(f"q{i}", -float(i), name="n"), input="?") for i in range(4)]
    low_is_good = (EvaluatorRecord("m", lower_is_better=True), EvaluatorRecord("n", verdict=False))
    page = html_of(results(*rows, evaluators=low_is_good))
    assert re.findall(r'<summary><span class="id name">(q\d)', page) == ["q3", "q2", "q1", "q0"]


def test_each_score_has_a_picture_in_words_too() -> None:
    page = Reader(html_of(experiment()))
    pictures = {a["aria-label"]: a for a in page.all("svg", role="img")}
    (label,) = [label for label in pictures if str(label).startswith("Distribution of m:")]
    assert (
        label
        == "Distribution of m: 7 values from 0.1 to 0.74; half of them between 0.6 and 0.72; 6 pass, 1 fail; passes at 0.5 or more"
    )
    assert any(str(said).startswith("m: pass rate 85.7%") for said in pictures)
    assert len(page.all("title")) == 1 + len(pictures)
    assert "7 labels, 2 kinds" in page.text


def test_the_bars_of_a_histogram_hold_every_value() -> None:
    values = [0.05, 0.05, 0.5, 0.999, 1.0, 0.0]
    page = html_of(results(*(item(scored(f"q{i}", v)) for i, v in enumerate(values))))
    heights = [
        float(h) for h in re.findall(r'<rect x="[\d.]+" y="[\d.]+" width="13.4" height="([\d.]+)" class="calm">', page)
    ]
    assert sum(round(h / 58) for h in heights) == 6  # the tallest, of two values, is 116 high


@pytest.mark.parametrize("values", [[0.5], [3.0, 3.0], [-1e9, 1e9], [0.0], [1.0, 0.0], [1e-12, 2e-12], [1e300, -1e300]])
def test_any_numbers_can_be_drawn(values: list[float]) -> None:
    made = results(*(item(scored(f"q{i}", v)) for i, v in enumerate(values)))
    for page in (html_of(made), both(made, made)):
        Reader(page)
        assert not re.search(r'="-?(nan|inf)"', page)


def test_the_worst_items_stand_first() -> None:
    page = html_of(experiment())
    assert re.findall(r'<summary><span class="id name">(q\d)', page)[:4] == ["q4", "q2", "q3", "q0"]


def test_an_item_shows_what_went_in_came_out_and_was_said() -> None:
    text = Reader(html_of(experiment())).text
    for said in (
        "question 2",
        "answer 2",
        "expected",
        "document 2",
        '"tenant": "x"',
        "✗ fail",
        "because 2",
        "! error",
        "boom",
        "! task failed",
        "ValueError: boom",
    ):
        assert said in text


def test_the_filter_knows_every_outcome_of_every_item() -> None:
    page = Reader(html_of(experiment()))
    told = [a["data-s"] for a in page.all("details", **{"class": "item"})]
    assert told[0] == "0:error 1:error 2:error"
    assert told[1] == "0:fail 1:pass 2:none"
    assert [a["value"] for a in page.all("option")][:4] == ["", "0", "1", "2"]
    assert page.all("form")[0].get("hidden", "absent") is None  # shown by the script, without which it would do nothing


def test_two_evaluators_of_one_name_and_one_of_several_scores_are_told_apart() -> None:
    evaluators = (EvaluatorRecord("m", config_hash="x"), EvaluatorRecord("m", config_hash="y"), EvaluatorRecord("s"))
    rows = [
        item(
            scored(f"q{i}", 1.0, True, evaluator="m@x"),
            scored(f"q{i}", 0.0, False, evaluator="m@y"),
            *(
                [failed(f"q{i}", name="s")]
                if i
                else [scored("q0", 1.0, True, name=n, evaluator="s") for n in ("s.a", "s.b")]
            ),
        )
        for i in range(2)
    ]
    made = results(*rows, evaluators=evaluators)
    assert [a["data-s"] for a in Reader(html_of(made)).all("details", **{"class": "item"})] == [
        "0:pass 1:fail 2:error 3:error",
        "0:pass 1:fail 2:pass 3:pass",
    ]
    compared = Reader(both(made, made))
    assert [a["data-s"] for a in compared.all("details", **{"class": "item"})] == [
        "0:same 1:same 2:same 3:same",
        "0:same 1:same 2:unpaired 3:unpaired",
    ]


def test_a_leaf_shows_its_own_threshold() -> None:
    leaf = scored("q0", 0.4, True, name="tree.leaf", evaluator="tree", path="tree/leaf", rule=Rule(0.7, True, True))
    text = Reader(html_of(results(item(leaf), evaluators=(EvaluatorRecord("tree", threshold=0.1),)))).text
    assert "by tree · metric · passes at 0.7 or less · in tree/leaf" in text


def test_repeats_are_told_apart() -> None:
    rows = [item(scored("q0", v, repeat=r), input="?") for r, v in enumerate((0.25, 0.75))]
    text = Reader(html_of(results(*rows, repeats=2, dataset_items=1))).text
    assert "q0 · run 1" in text
    assert "q0 · run 2" in text
    assert "(1 item, 2 runs)" in text


def test_the_baseline_of_an_experiment_is_in_its_report() -> None:
    a, b = experiment(), experiment()
    text = Reader(html_of(replace(b, comparison=compare(a, b, resamples=300)))).text
    assert "Against the baseline" in text
    assert "no difference shown" in text


def test_a_comparison_shows_differences_slices_pairs_and_what_to_bear_in_mind() -> None:
    a, b = experiment(), experiment()
    rows = [replace(it, scores=tuple(replace(s, value=s.value and s.value / 2) for s in it.scores)) for it in b.items]
    extra = item(scored("new", 1.0), input="new")
    text = Reader(both(a, replace(b, items=(*rows, extra)), by="tenant")).text
    for said in (
        "exp against exp",
        "tenant = x",
        "▼ worse",
        "only in b, not compared: 1 item (new)",
        "1 item only in b",
        "labels only categories without a number; 0 of 7 items have another in b",
        "7 pairs: 0 better (up), 7 worse (down), 0 the same",
        "m ▼ worse 0.74 → 0.37",
        "a: exp",
        "300 resamples",
    ):
        assert said in text


def test_a_config_mismatch_stands_where_the_difference_would() -> None:
    a = experiment()
    b = replace(a, evaluators=(replace(a.evaluators[0], version="4"), *a.evaluators[1:]))
    text = Reader(both(a, b)).text
    assert "config mismatch a has m version 3 (config none), b has m version 4 (config none)" in text


@pytest.mark.parametrize(
    "made", [results(), results(evaluators=()), results(item(failed("q"))), results(ItemResult("q", error=BOOM))]
)
def test_nothing_at_all_is_a_page_too(made: Results) -> None:
    Reader(html_of(made))
    Reader(both(made, made))


def test_many_pairs_are_drawn_evenly_and_that_is_said() -> None:
    a = results(*(item(scored(f"q{i}", 0.0)) for i in range(1_000)))
    b = results(*(item(scored(f"q{i}", i / 1_000)) for i in range(1_000)))
    page = both(a, b)
    assert "280 of them drawn, evenly spaced" in page
    assert page.count('class="plot"') == 1


# --- bounds -----------------------------------------------------------------------------------------------------------------


def test_of_many_items_the_worst_are_shown_and_the_rest_counted() -> None:
    made = results(*(item(scored(f"q{i}", i / 700, i > 50)) for i in range(700)))
    for page, told in (
        (html_of(made), "500 of 700 are shown; 200 are left out here."),
        (both(made, made), "500 of 700 are shown; 200 are left out here."),
    ):
        assert page.count('<details class="sample item') == texts.MAX_ITEMS == 500
        assert told in Reader(page).text


def test_long_texts_are_cut_with_a_mark_and_long_items_end_the_list() -> None:
    made = results(
        *(
            item(scored(f"q{i}", 0.5, explanation="e" * 9_000), input="x" * 10_000, output="y" * 10**6)
            for i in range(400)
        )
    )
    page = html_of(made)
    assert "… 996,000 more characters" in Reader(page).text
    assert len(page) < 5_000_000
    assert re.search(r"(\d+) of 400 are shown; (\d+) are left out here", page)


# --- hostile content ----------------------------------------------------------------------------------------------------------

HOSTILE = [
    "<script>alert(1)</script>",
    "</script><script>alert(1)</script>",
    "</style><img src=x onerror=alert(1)>",
    '"><svg onload=alert(1)>',
    "' onmouseover='alert(1)",
    "{{ 7*7 }}{% raw %}",
    "<!--",
    "]]>",
    "javascript:alert(1)",
    "\ud83d half",
    "\x00\x07\u202e\u2028",
    "https://example.invalid/x.png",
]


def hostile(text: str) -> Results:
    """The same text in every place that takes one."""
    score = scored(
        text, 0.5, True, name=text, label=text, explanation=text, structured=[text], path=text, evaluator=text
    )
    bad = replace(failed(text, name="j"), reason=text, error_type=text)
    run = item(
        score, bad, input=text, output={text: text}, expected=[text], documents=({"content": text},), metadata={text: text}, context={text: text},
    )  # fmt: skip
    more = ItemResult(text + "2", input=text, error=replace(BOOM, type=text, message=text))
    evaluators = (EvaluatorRecord(text, version=text), EvaluatorRecord("j"))
    return results(
        run, more, evaluators=evaluators, name=text, dataset=text, task=text, started=text, metadata={text: text}
    )


def pages(text: str) -> list[str]:
    made = hostile(text)
    other = replace(
        made, items=made.items[:1], evaluators=(replace(made.evaluators[0], config_hash=text), made.evaluators[1])
    )
    return [
        html_of(made),
        both(made, made, by=lambda _: text, cluster=lambda _: text),
        both(made, other),
        both(other, replace(made, items=(replace(made.items[0], input="changed"),))),
    ]


def skeleton(page: str) -> list[str]:
    return [tag for tag, _ in Reader(page).tags]


@pytest.mark.parametrize("text", HOSTILE)
def test_hostile_text_stays_text(text: str) -> None:
    plain = [skeleton(page) for page in pages("harmless")]
    for page, expected in zip(pages(text), plain, strict=True):
        assert skeleton(page) == expected
        page.encode("utf-8")


@given(st.text(min_size=1, max_size=40))
@settings(max_examples=25, deadline=None)
def test_no_text_whatever_makes_a_tag_or_an_attribute(text: str) -> None:
    for page in pages(text):
        read = Reader(page)
        assert {tag for tag, _ in read.tags} <= ALLOWED
        assert not [
            name for _, attributes in read.tags for name in attributes if name.startswith("on") or name == "style"
        ]


ALLOWED = {
    "html", "head", "meta", "title", "style", "body", "header", "div", "svg", "rect", "line", "text", "desc",
    "h1", "h2", "h3", "h4", "dl", "dt", "dd", "main", "span", "table", "thead", "tbody", "tr", "th", "td",
    "p", "figure", "figcaption", "i", "ul", "li", "strong", "form", "label", "select", "option", "input",
    "button", "output", "details", "summary", "code", "footer", "script",
}  # fmt: skip


@pytest.mark.parametrize("make", [lambda: html_of(experiment()), lambda: both(experiment(), experiment(), by="tenant")])
def test_the_page_loads_nothing_and_may_run_its_own_script_only(make: Callable[[], str]) -> None:
    page = make()
    read = Reader(page)
    for _, attributes in read.tags:
        assert not {"src", "href", "action", "background", "poster", "srcset", "data", "xlink:href"} & attributes.keys()
    assert "url(" not in page
    assert "@import" not in page
    assert "http://" not in page
    assert "https://" not in page
    (policy,) = [a["content"] for a in read.all("meta") if a.get("http-equiv") == "Content-Security-Policy"]
    assert str(policy).startswith("default-src 'none'; ")
    for kind in ("style", "script"):
        digest = base64.b64encode(hashlib.sha256(read.code[kind].encode()).digest()).decode()
        assert f"{kind}-src 'sha256-{digest}'" in str(policy)


def test_it_is_written_whole_and_a_path_that_cannot_be_is_named(tmp_path: Path) -> None:
    made = experiment()
    made.to_html(tmp_path / "r.html")
    compare(made, made, resamples=300).to_html(str(tmp_path / "c.html"))
    assert {p.name for p in tmp_path.iterdir()} == {"r.html", "c.html"}
    with pytest.raises(ConfigError, match="cannot be written"):
        made.to_html(tmp_path / "no" / "r.html")


def test_without_jinja_the_way_out_is_named(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setitem(sys.modules, "jinja2", None)
    with pytest.raises(ConfigError, match=r'pip install "spangrade\[experiments\]"'):
        experiment().to_html(tmp_path / "r.html")


# --- in a browser ---------------------------------------------------------------------------------------------------------------


def chromium() -> str:
    """Where it is, or skip, saying what is missing."""
    for name in ("chromium", "chromium-browser", "google-chrome", "chrome"):
        found = shutil.which(name)
        if found:
            return found
    pytest.skip("no Chromium on this machine (apt-get install chromium): the report was not opened in a browser")


def dom(page: str, tmp_path: Path, probe: str = "") -> str:
    """The page's elements after its script ran. ``probe``: one more script, let in for the test only."""
    if probe:
        page = re.sub(r'<meta http-equiv="Content-Security-Policy"[^>]*>', "", page).replace(
            "</body>", f"<script>{probe}</script></body>"
        )
    file = tmp_path / "page.html"
    file.write_text(page, encoding="utf-8")
    command = [
        chromium(), "--headless", "--no-sandbox", "--disable-gpu", f"--user-data-dir={tmp_path / 'profile'}", "--virtual-time-budget=2000",
        "--dump-dom", file.as_uri(),
    ]  # fmt: skip
    return subprocess.run(command, capture_output=True, text=True, timeout=60, check=True).stdout


def test_a_browser_runs_its_script_under_its_policy_and_nothing_else(tmp_path: Path) -> None:
    made = hostile("</script><script>document.title='taken'</script><img src=x onerror=\"document.title='taken'\">")
    shown = dom(html_of(made), tmp_path)
    assert '<form class="filter">' in shown  # the script took the attribute away
    assert "2 of 2" in shown
    assert "<title>taken" not in shown
    assert "<img" not in shown


def test_the_filter_hides_what_does_not_fit(tmp_path: Path) -> None:
    probe = (
        "const f=document.querySelector('form.filter').elements;f.score.value='0';f.outcome.value='fail';"
        "f.score.dispatchEvent(new Event('input',{bubbles:true}));"
        "setTimeout(()=>{document.title=[...document.querySelectorAll('details.item:not([hidden]) .id')].map(e=>e.textContent).join()"
        "+' '+f.count.value},500)"
    )
    assert "<title>q2 1 of 8</title>" in dom(html_of(experiment()), tmp_path, probe)
