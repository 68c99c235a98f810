"""What both pages are made of: the frame around them, and one sample's card."""

from collections.abc import Sequence
from typing import Final

from spangrade._version import __version__
from spangrade_agent.page.markup import Child, Html, element, joined
from spangrade_agent.page.records import StoredDocument, StoredSample
from spangrade_agent.page.scores import finding_line, score_list, tone
from spangrade_agent.page.settings import PageSettings
from spangrade_agent.page.style import STYLE
from spangrade_agent.page.words import INLINE_CHARS, counted, duration, long_text, moment, number

_MARK: Final = element(
    "svg",
    element("rect", x=1, y=3, width=22, height=4, rx=2, class_="b"),
    element("rect", x=5, y=10, width=13, height=4, rx=2, class_="b"),
    element("rect", x=5, y=17, width=18, height=4, rx=2),
    class_="mark",
    viewBox="0 0 24 24",
    aria_hidden="true",
)
_FOOT: Final = joined(
    element("span", f"Spangrade {__version__}"),
    element("a", "samples as JSON", href="/api/samples"),
    element("a", "outcomes as JSON", href="/api/outcomes"),
)


def document(
    title: str, facts: Sequence[tuple[str, str]], *main: Child, look: str = "", refresh_s: int | None = None
) -> bytes:
    """A whole page. ``facts`` stand at the top, a word and what it is; without any the page says nothing of the agent."""
    head = element(
        "head",
        element("meta", charset="utf-8"),
        element("meta", name="viewport", content="width=device-width, initial-scale=1"),
        element("meta", name="robots", content="noindex"),
        None if refresh_s is None else element("meta", http_equiv="refresh", content=str(refresh_s)),
        element("title", title),
        STYLE,
    )
    brand = element("div", _MARK, element("a", "Spangrade", href="/"), class_="brand")
    shown = [element("div", element("dt", word), element("dd", said)) for word, said in facts]
    top = element("header", element("div", brand, element("dl", shown, class_="facts"), class_="wrap"), class_="top")
    foot = element("footer", element("div", _FOOT, class_="wrap"), class_="foot") if facts else None
    body = element("body", top, element("main", element("div", *main, class_="wrap")), foot, class_=look or None)
    page = joined(Html("<!doctype html>"), element("html", head, body, lang="en"))
    return page.encode("utf-8", "replace")


def facts_of(settings: PageSettings, *more: tuple[str, str]) -> list[tuple[str, str]]:
    """Mode, destinations and evaluators, then ``more``."""
    where = ", ".join(settings.shown_destinations())
    if settings.mode == "relay":
        mode = (
            "Relay",
            f"spans go on to {where} with their scores" if where else "nowhere to: scores stay on this page",
        )
    else:
        mode = (settings.mode.capitalize(), f"scores go to {where}" if where else "scores stay on this page")
    evaluators = settings.evaluators() if callable(settings.evaluators) else settings.evaluators
    names = ", ".join(info.name for info in evaluators)
    return [mode, ("Scores by", names or "nothing yet"), *more]


def card(sample: StoredSample, now_ns: int, *, kept: bool, whole: bool = False) -> Html:
    """One sample with its scores. ``kept``: the store keeps text. ``whole``: on a page of its own."""
    name = sample.span_name or "(unnamed)"
    link = element("a", name, href=f"/samples/{sample.id}", class_="name")
    tags = [element("span", sample.kind, class_="tag")]
    if sample.target not in ("root", sample.kind):
        tags.append(element("span", f"as {sample.target}", class_="tag"))
    if sample.partial:
        why = "the hold ended before the call's root had arrived: parts may be missing"
        tags.append(element("span", "partial", class_="tag warn", title=why))
    aside = [element("span", text, class_="name") for text in (sample.service, sample.model) if text]
    title = element(
        "div",
        element("h3", name if whole else link),
        tags,
        element("span", aside, element("span", moment(sample.time_ns, now_ns)), class_="aside"),
        class_="title",
    )
    said = element("div", _said(sample, kept=kept, whole=whole))
    scores = element("div", score_list(sample, whole=whole))
    look = tone(sample.results)
    return element("article", title, element("div", said, scores, class_="cols"), class_=f"sample {look or ''}".strip())


def _said(sample: StoredSample, *, kept: bool, whole: bool) -> list[Html]:
    if not kept:
        return [element("p", "Text is not kept here (store.content: none).", class_="none")]
    glance, limit = (2_000, None) if whole else (420, INLINE_CHARS)
    fields = [_field("Input", sample.input, glance, limit), _field("Output", sample.output, glance, limit)]
    if sample.searched or sample.documents:
        fields.append(_documents(sample, whole=whole))
    findings = [finding for finding in sample.findings if whole or not finding.harmless]
    return [*fields, *map(finding_line, findings)]


def _field(title: str, text: str | None, glance: int, limit: int | None) -> Html:
    if text is None:
        content = element("p", "none", class_="none")
    elif not text.strip():
        content = element("p", "empty", class_="none")
    else:
        content = long_text(text, glance, limit=limit, code=text.lstrip()[:1] in ("{", "["))
    return element("div", element("h4", title), element("div", content, class_="box"), class_="field")


def _documents(sample: StoredSample, *, whole: bool) -> Html:
    documents = sample.documents
    if not documents:
        said = element("p", "The search found nothing.", class_="none")
        return element("div", element("h4", "Documents"), said, class_="field")
    items = element("ol", [element("li", _document(d, whole=whole)) for d in documents], class_="docs")
    missing = sample.documents_given - len(documents)
    rest = element("p", f"and {counted(missing, 'more document')}, not kept", class_="none") if missing > 0 else None
    first = documents[0].content or ""
    more = " …" if len(first) > 140 or len(documents) > 1 else None
    glance = element("div", first[:140], more, class_="text glance", dir="auto")
    how_many = element("span", counted(sample.documents_given, "document"), class_="more")
    folded = element("details", element("summary", glance, how_many), items, rest, open=whole)
    return element("div", element("h4", "Documents"), element("div", folded, class_="box"), class_="field")


def _document(document: StoredDocument, *, whole: bool) -> Html:
    parts = []
    if document.id is not None:
        parts.append(element("span", document.id, class_="name"))
    if document.score is not None:
        parts.append(element("span", f"score {number(document.score)}"))
    above = element("div", parts, class_="from") if parts else None
    text = document.content or ""
    content = long_text(text, 1_200 if whole else 240, limit=None if whole else 2_000) if text.strip() else None
    below = long_text(document.metadata, 300, code=True) if whole and document.metadata else None
    return joined(above, content or element("p", "no text", class_="none"), below)


def identity(sample: StoredSample) -> Html:
    """Where the sample comes from, in words that a trace store can be searched with."""
    rows = [
        ("Trace", element("code", sample.trace_id)),
        ("Span", element("code", sample.span_id)),
        ("Service", sample.service),
        ("Model", sample.model),
        ("Target", sample.target),
        ("Took", duration(sample.duration_s)),
    ]
    pairs = [(element("dt", word), element("dd", said)) for word, said in rows if said]
    return element("dl", pairs, class_="ids")
