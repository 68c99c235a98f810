"""One sample's whole story, and the pages that say no."""

from spangrade_agent.page.markup import element
from spangrade_agent.page.parts import card, document, facts_of, identity
from spangrade_agent.page.records import StoredSample
from spangrade_agent.page.settings import PageSettings


def story(settings: PageSettings, sample: StoredSample, now_ns: int, *, kept: bool) -> bytes:
    """Everything that is kept of one sample."""
    back = element("a", "← all samples", href="/")
    data = element("a", "as JSON", href=f"/api/samples/{sample.id}")
    return document(
        f"{sample.span_name or 'sample'} · Spangrade",
        facts_of(settings),
        element("div", back, element("span", data, class_="note"), class_="head"),
        card(sample, now_ns, kept=kept, whole=True),
        element("div", element("h2", "Where it comes from"), class_="head"),
        identity(sample),
        look="story",
    )


def missing(settings: PageSettings) -> bytes:
    """404."""
    said = (
        "There is nothing at this address. A sample leaves when the store's bounds in count, bytes or age are reached."
    )
    back = element("p", element("a", "← all samples", href="/"))
    return document(
        "not here · Spangrade", facts_of(settings), element("div", element("p", said), back, class_="empty")
    )


def login() -> bytes:
    """401. Says nothing of the agent."""
    form = element(
        "form",
        element(
            "input", type="password", name="token", aria_label="token", autocomplete="current-password", required=True
        ),
        element("button", "Open", type="submit"),
        class_="filter",
        action="/",
        method="get",
    )
    said = "This page shows what users wrote, so it asks for the token that the configuration has at page.token."
    again = element(
        "p",
        "Came by a link from elsewhere with the token in it? Then ",
        element("a", "open the page once more", href="/"),
        ": browsers keep the cookie back on such a visit.",
        class_="note",
    )
    return document("Spangrade", [], element("div", element("p", said), form, again, class_="empty"))
