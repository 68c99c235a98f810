"""Hostile text on the page stays text (promise 10): by its structure, and in a real browser."""

import asyncio
import html
import re
import shutil
import socket
import subprocess
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import fields, replace
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from spangrade.model.evaluator import EvaluatorInfo
from spangrade.model.outcome import Outcome, ScoreRecord, SpanRef
from spangrade.model.sample import Sample
from spangrade.model.score import Graded
from spangrade.model.span import SpanData
from spangrade.samples.explain import Finding
from spangrade.samples.reading import Call, Reading
from spangrade.scoring.outcomes import Counts, Ledger
from spangrade_agent.page.app import page_app
from spangrade_agent.page.markup import element, escaped, joined
from spangrade_agent.page.overview import PER_PAGE, Kept, View, overview
from spangrade_agent.page.records import StoredDocument, StoredResult, StoredSample
from spangrade_agent.page.settings import PageSettings
from spangrade_agent.page.story import story
from spangrade_agent.store import SampleStore, sample_id

SETTINGS = PageSettings()
MARK = "document.documentElement.setAttribute('data-owned','1');document.title='OWNED'"
HOSTILE = [
    f"<script>{MARK}</script>",
    f'"><img src=x onerror="{MARK}">',
    f"' autofocus onfocus={MARK} x='",
    f"<svg/onload={MARK}>",
    "</div></article></main></body></html><h1>gone</h1>",
    f"</style><script>{MARK}</script><style>*{{display:none}}",
    f'</title></textarea></summary></details><iframe srcdoc="<script>parent.{MARK}</script>">',
    f"javascript:{MARK}",
    "\u202eevird yb, worromoT",
    "lone \ud83d surrogate, NUL \x00, ESC \x1b[31m, C1 \x9b, CR \r alone",
    "<!-- <![CDATA[ <?php &lt;b&gt; &#60;i&#62; &amp;amp;",
    '<base href="//evil.example/"><meta http-equiv="refresh" content="0;url=//evil.example">',
    "{{7*7}} ${7*7} <%= 7*7 %> %s %(a)s {0}",
]

# --- structure ----------------------------------------------------------------------------------------------------------


class Shape(HTMLParser):
    """A page's tags with their attributes' names, and its text."""

    def __init__(self, page: bytes) -> None:
        super().__init__(convert_charrefs=True)
        self.tags: list[Any] = []
        self.values: dict[str, set[str]] = {}
        self.text = ""
        self.odd: list[str] = []
        self.feed(page.decode())
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, tuple(name for name, _ in attrs)))
        for name, value in attrs:
            self.values.setdefault(name, set()).add(value or "")

    def handle_endtag(self, tag: str) -> None:
        self.tags.append(f"/{tag}")

    def handle_data(self, data: str) -> None:
        self.text += data

    def handle_comment(self, data: str) -> None:
        self.odd.append(data)

    def handle_pi(self, data: str) -> None:
        self.odd.append(data)

    def unknown_decl(self, data: str) -> None:
        self.odd.append(data)


def filled(text: str) -> StoredSample:
    """A sample with ``text`` in every field that can hold one."""
    result = StoredResult(
        text,
        text,
        text,
        text,
        text,
        Outcome.SCORED.value,
        text,
        0.5,
        text,
        True,
        text,
        text,
        text,
        0.5,
        text,
        0.5,
        judge_model=text,
        score_id=text,
        duration_s=1,
        details={text: text},
    )
    failed = replace(result, outcome=Outcome.ERROR.value, value=None, passed=None, label=None)
    quiet = replace(failed, outcome=Outcome.SKIPPED.value)
    strange = replace(failed, outcome=text)
    documents = (StoredDocument(text, text, 0.5, text),)
    results = (result, failed, quiet, strange)
    return StoredSample(
        text, text, text, text, text, text, text, text, 5, 1, text, text, documents, 3, True, True, results,
        json_fields=("input",), metadata=text, findings=(Finding(text, text, text),),
    )  # fmt: skip


def pages(text: str) -> list[bytes]:
    """Both pages, with ``text`` wherever the outside can put one."""
    told = replace(SETTINGS, mode=text, destinations=(text,), evaluators=(EvaluatorInfo(text),))
    counts = Counts(text, 5)
    for outcome in Outcome:
        counts.outcomes[outcome, text] += 1
    counts.delivered[text] += 1
    counts.undelivered[text] += 1
    view = View(text, text, text)
    front = overview(told, view, {text: counts}, Kept("keep", 1, 1), [filled(text)] * (PER_PAGE + 1), 10, text)
    return [front, story(told, filled(text), 10, kept=True)]


PLAIN = [Shape(page) for page in pages("plain")]
TAGS = {tag[0] for shape in PLAIN for tag in shape.tags if isinstance(tag, tuple)}
wild = st.text(st.characters(exclude_categories=()), min_size=1, max_size=60).filter(
    lambda text: text.strip() and text not in ("pass", "fail", "none") and text not in list(Outcome)
)


@settings(max_examples=40, deadline=None)
@given(wild)
@example(HOSTILE[0])
@example(HOSTILE[4])
def test_no_text_adds_takes_or_changes_a_tag_or_an_attribute(text: str) -> None:
    for page, plain in zip(pages(text), PLAIN, strict=True):
        shape = Shape(page)
        assert shape.tags == plain.tags
        assert shape.odd == []


@pytest.mark.parametrize("text", HOSTILE)
def test_each_known_trick_is_text(text: str) -> None:
    for page, plain in zip(pages(text), PLAIN, strict=True):
        shape = Shape(page)
        assert shape.tags == plain.tags
        assert html.unescape(escaped(text.encode("utf-8", "replace").decode())) in shape.text
        # An address starts with a slash, whatever was asked or named; class names are ours or a word of ours.
        assert all(value.startswith("/") and not value.startswith("//") for value in shape.values["href"])
        assert {name for name in shape.values if name.startswith("on")} == set()


def test_the_property_would_notice_text_that_is_not_escaped() -> None:
    page = pages("plain")[0].replace(b">plain<", b"><b>plain</b><", 1)
    assert Shape(page).tags != PLAIN[0].tags


def test_every_field_of_a_sample_was_filled_above() -> None:
    """A field that is added later has to be added to the test, too."""
    sample = filled("plain")
    texts = {f.name for f in fields(StoredSample) if getattr(sample, f.name) == "plain"}
    others = {
        "time_ns",
        "duration_s",
        "documents",
        "documents_given",
        "searched",
        "partial",
        "results",
        "json_fields",
        "findings",
    }
    assert texts | others == {f.name for f in fields(StoredSample)}


@given(st.text(st.characters(exclude_categories=("Cs",))))
def test_a_text_is_read_back_as_it_was_written(text: str) -> None:
    visible = text.replace("\r\n", "\n")
    if re.search(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e]", visible):
        return
    assert html.unescape(escaped(text)) == visible


@pytest.mark.parametrize(
    ("text", "shown"),
    [("\u202e", "⟦U+202E⟧"), ("\x00", "␀"), ("\x1b", "␛"), ("\x7f", "␡"), ("\x85", "⟦U+0085⟧"), ("\r", "␍")],
)
def test_what_would_be_invisible_or_turn_text_round_is_shown(text: str, shown: str) -> None:
    assert escaped(text) == shown


def test_markup_is_made_by_elements_only() -> None:
    inner = element("b", "<i>")
    assert (
        element("p", inner, "&", None, [1, " ", 2.5], title='"') == '<p title="&quot;"><b>&lt;i&gt;</b>&amp;1 2.5</p>'
    )
    assert joined(inner, "<") == "<b>&lt;i&gt;</b>&lt;"
    assert element("p", inner + "x") == "<p>&lt;b&gt;&amp;lt;i&amp;gt;&lt;/b&gt;x</p>"  # a sum is a plain text again


@pytest.mark.parametrize("tag", ["b onclick=x", "B><", "", "a\n"])
def test_a_text_cannot_be_a_tag(tag: str) -> None:
    with pytest.raises(ValueError, match="no tag"):
        element(tag)


@pytest.mark.parametrize("attribute", ["onclick", "style", "a b", "x><", "ONLOAD"])
def test_a_text_cannot_be_an_attribute(attribute: str) -> None:
    with pytest.raises(ValueError, match="no attribute"):
        element("b", **{attribute: "x"})


# --- through the store --------------------------------------------------------------------------------------------------


def hostile_store() -> tuple[SampleStore, Ledger, list[str]]:
    """Every trick as a call of its own, and one very long one. The calls' ids, oldest first."""
    store, ledger, ids = SampleStore(), Ledger(), []
    long = ("<b>" + "A" * 97) * 10_000
    for number, text in enumerate([*HOSTILE, long], start=1):
        info = EvaluatorInfo(text[:100], "llm", text[:50], f"{number}", threshold=0.5)
        key = (number, number, "root")
        span = SpanData(*key[:2], None, text, 0, 1, {}, resource={"service.name": text})
        documents = [{"id": text, "content": text, "metadata": {text: text}}] * 60
        call = Call(span, Reading("t", kind="llm", model=text))
        store.began(key, call, Sample(text, {text: [text]}, documents=documents), [info])
        graded = Graded(text, 0.5, text, True, text, {text: text})
        record = ScoreRecord(SpanRef(*key[:2]), info, graded, 5, 0.5, "rate", details={"x": text})
        ledger.met(info)
        ledger.ended(info, Outcome.SCORED)
        store.ended(key, info, Outcome.SCORED, text, [record], 0.5)
        ids.append(sample_id(key))
        assert store.flush(60)
    return store, ledger, ids


def get(app: Any, target: str) -> tuple[int, bytes]:
    """Status and body."""
    sent: list[Any] = []

    async def send(message: Any) -> None:
        sent.append(message)

    path, _, query = target.partition("?")
    headers = [(b"host", b"localhost")]
    scope = {"type": "http", "method": "GET", "path": path, "query_string": query.encode(), "headers": headers}
    asyncio.run(app(scope, None, send))
    return sent[0]["status"], sent[1]["body"]


def test_hostile_calls_can_be_looked_at_one_by_one_and_together() -> None:
    store, ledger, ids = hostile_store()
    app = page_app(store, ledger, SETTINGS)
    for target in ("/", *(f"/samples/{name}" for name in ids)):
        status, body = get(app, target)
        assert status == 200
        assert {tag[0] for tag in Shape(body).tags if isinstance(tag, tuple)} <= TAGS
        assert len(body) < 2_000_000
    for target in ("/api/samples", "/api/outcomes", *(f"/api/samples/{name}" for name in ids)):
        status, body = get(app, target)
        assert status == 200
        assert body.isascii()


# --- in a browser -------------------------------------------------------------------------------------------------------


def chromium() -> str:
    """The browser's path."""
    for name in ("chromium", "chromium-browser", "google-chrome", "chrome"):
        found = shutil.which(name)
        if found is not None:
            return found
    pytest.skip("no Chromium on this machine (apt-get install chromium): the page was not looked at in a browser")


def dumped(address: str, profile: Path) -> str:
    """The document as the browser has it after loading ``address``."""
    switches = (
        "--headless --no-sandbox --disable-gpu --disable-quic --no-first-run --disable-background-networking "
        "--disable-component-update --disable-sync --disable-dev-shm-usage"
    )
    command = [chromium(), *switches.split(), f"--user-data-dir={profile}", "--dump-dom", address]
    return subprocess.run(command, capture_output=True, timeout=120, check=True).stdout.decode("utf-8", "replace")


@contextmanager
def served(app: Any) -> Iterator[str]:
    """The application behind a real socket; its address."""
    import uvicorn

    server = uvicorn.Server(uvicorn.Config(app, log_config=None, access_log=False))
    with socket.socket() as listening:
        listening.bind(("127.0.0.1", 0))
        listening.listen()
        thread = threading.Thread(target=server.run, args=([listening],), daemon=True)
        thread.start()
        try:
            yield f"http://127.0.0.1:{listening.getsockname()[1]}"
        finally:
            server.should_exit = True
            thread.join(30)


async def unsafe_app(scope: Any, receive: Any, send: Any) -> None:
    """What a page looks like that writes text as it came, without a policy."""
    body = f"<!doctype html><html><head><title>safe</title></head><body>{HOSTILE[0]}{HOSTILE[1]}</body></html>"
    if scope["type"] == "http":
        await send({"type": "http.response.start", "status": 200, "headers": [(b"content-type", b"text/html")]})
        await send({"type": "http.response.body", "body": body.encode()})


def test_the_browser_would_show_a_script_that_ran(tmp_path: Path) -> None:
    """Otherwise the next test would prove nothing."""
    with served(unsafe_app) as address:
        seen = dumped(address, tmp_path)
    assert 'data-owned="1"' in seen
    assert "<title>OWNED</title>" in seen


def test_no_script_of_a_sample_runs_in_a_browser(tmp_path: Path) -> None:
    store, ledger, ids = hostile_store()
    with served(page_app(store, ledger, SETTINGS)) as address:
        for number, target in enumerate(("/", f"/samples/{ids[0]}", f"/samples/{ids[6]}", f"/samples/{ids[-1]}")):
            seen = dumped(address + target, tmp_path / str(number))
            shape = Shape(seen.encode())
            assert "data-owned" not in shape.values
            assert re.findall(r"<title>(OWNED)", seen) == []
            assert {tag[0] for tag in shape.tags if isinstance(tag, tuple)} <= TAGS
            assert [name for name in shape.values if name.startswith("on")] == []
