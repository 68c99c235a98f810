"""The front page: what was counted, and the recent samples."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final
from urllib.parse import urlencode

from spangrade.model.outcome import Outcome
from spangrade.scoring.outcomes import Counts
from spangrade.scoring.purse import State
from spangrade_agent.page.budgets import budget_table
from spangrade_agent.page.markup import Child, Html, element, joined
from spangrade_agent.page.parts import card, document, facts_of
from spangrade_agent.page.records import StoredSample
from spangrade_agent.page.settings import PageSettings
from spangrade_agent.page.welcome import welcome
from spangrade_agent.page.words import counted, size

PER_PAGE: Final = 25
REFRESH_S: Final = (5, 30)
LABELS: Final = ("pass", "fail", "error", "timeout", "skipped", "not_sampled", "over_budget", "dropped", "pending")
_OUTCOMES: Final = tuple(Outcome)
#: Title, whether a number above 0 is bad news, and whether the column is there when all of it is 0.
_COLUMNS: Final = (
    ("Met", False, True),
    ("Scored", False, True),
    ("Skipped", False, False),
    ("Error", True, True),
    ("Timeout", True, False),
    ("Not sampled", False, False),
    ("Over budget", False, False),
    ("Dropped", True, False),
    ("Pending", False, True),
    ("Delivered", False, True),
    ("Not delivered", True, False),
    ("In flight", False, False),
)


@dataclass(frozen=True, slots=True)
class View:
    """What the visitor asked for."""

    before: str | None = None
    evaluator: str | None = None
    label: str | None = None
    refresh_s: int | None = None

    def link(self, **changed: str | int | None) -> str:
        """The front page's address for this view with some of it changed."""
        asked = {
            "before": self.before,
            "evaluator": self.evaluator,
            "label": self.label,
            "refresh": self.refresh_s,
            **changed,
        }
        rest = urlencode({name: value for name, value in asked.items() if value is not None}, errors="replace")
        return f"/?{rest}" if rest else "/"


@dataclass(frozen=True, slots=True)
class Kept:
    """What the store says of itself; ``content`` is `SampleStore.keeps`, None when there is no store. ``refused`` and
    ``refused_results``: samples, and ends of pairs of kept samples, that it did not take."""

    content: str | None
    samples: int = 0
    bytes: int = 0
    refused: int = 0
    refused_results: int = 0


def overview(
    settings: PageSettings,
    view: View,
    counts: Mapping[str, Counts],
    kept: Kept,
    samples: Sequence[StoredSample],
    now_ns: int,
    called: str,
    budgets: Mapping[str, Sequence[State]] | None = None,
    lacking: str | None = None,
) -> bytes:
    """``samples``: one more than `PER_PAGE` where there are older ones; ``budgets``: of judges, by name; ``lacking``: what was
    graded without all that belongs to it."""
    facts = facts_of(settings, ("Kept", _kept(kept)), *((("Incomplete", lacking),) if lacking else ()))
    parts: list[Child] = []
    if counts:
        parts.append(_heading("Outcomes", "every pair of call and evaluator ends as exactly one of these"))
        parts.append(outcome_table(counts, view))
    parts.append(budget_table(budgets or {}))
    if kept.content is None:
        parts.append(element("p", "Samples are not kept (store: off); scores leave all the same.", class_="empty"))
    elif samples or view.before or view.evaluator or view.label:
        parts += _samples(view, counts, kept, samples, now_ns)
    else:
        parts.append(welcome(settings, called=called, waiting=not counts))
    return document("Spangrade", facts, *parts, refresh_s=view.refresh_s)


def _kept(kept: Kept) -> str:
    if kept.content is None:
        return "no samples (store: off)"
    how = {"redacted": "text redacted", "keep": "text as it came", "none": "without text"}[kept.content]
    held = f"{counted(kept.samples, 'sample')}, {size(kept.bytes)}" if kept.samples else "no sample yet"
    refused = f"; {kept.refused:,} more came too fast to be redacted and kept" if kept.refused else ""
    if kept.refused_results:
        results = counted(kept.refused_results, "result")
        refused += f"; {results} of kept samples came too fast too: pending for good"
    return f"{held}, {how}{refused}"


def _heading(title: str, note: Child) -> Html:
    return element("div", element("h2", title), element("div", note, class_="note"), class_="head")


def _samples(
    view: View, counts: Mapping[str, Counts], kept: Kept, samples: Sequence[StoredSample], now_ns: int
) -> list[Child]:
    shown = samples[:PER_PAGE]
    parts: list[Child] = [_heading("Samples", _refreshing(view)), _filter(view, counts)]
    parts.append(element("div", [card(s, now_ns, kept=kept.content != "none") for s in shown], class_="cards"))
    if not shown:
        parts.append(element("p", "No sample kept here is like that.", class_="empty"))
    pages = []
    if view.before:
        pages.append(element("a", "← newest", href=view.link(before=None)))
    if len(samples) > PER_PAGE:
        pages.append(element("a", "older →", href=view.link(before=shown[-1].id, refresh=None)))
    parts.append(element("nav", pages, class_="pages", aria_label="pages") if pages else None)
    return parts


def _refreshing(view: View) -> list[Child]:
    choices: list[Child] = ["refresh "]
    for seconds in (None, *REFRESH_S):
        word = "by hand" if seconds is None else f"every {seconds} s"
        mark = "true" if view.refresh_s == seconds else None
        choices += [element("a", word, href=view.link(refresh=seconds), aria_current=mark), " "]
    return choices


def _filter(view: View, counts: Mapping[str, Counts]) -> Html:
    names = sorted({one.name for one in counts.values()} | ({view.evaluator} if view.evaluator else set()))
    labels = [*LABELS, *([view.label] if view.label and view.label not in LABELS else [])]
    return element(
        "form",
        _choice("evaluator", "any evaluator", names, view.evaluator),
        _choice("label", "any result", labels, view.label),
        element("button", "Show", type="submit"),
        element("a", "all", href="/") if view.evaluator or view.label else None,
        class_="filter",
        action="/",
        method="get",
    )


def _choice(name: str, any_of: str, choices: Sequence[str], chosen: str | None) -> Html:
    options = [element("option", any_of, value="")]
    options += [element("option", c.replace("_", " "), value=c, selected=c == chosen) for c in choices]
    return element("select", options, name=name, aria_label=name)


def outcome_table(counts: Mapping[str, Counts], view: View) -> Html:
    """One row per evaluator; the numbers of a row add up (promise 3). Columns in which nobody has anything are left out."""
    rows = [(key, one, _numbers(one)) for key, one in sorted(counts.items())]
    used = [i for i, (_, _, always) in enumerate(_COLUMNS) if always or any(numbers[i] for _, _, numbers in rows)]
    titles = ["Evaluator", *(_COLUMNS[i][0] for i in used)]
    head = element("tr", [element("th", title, scope="col") for title in titles])
    body = []
    for key, one, numbers in rows:
        link = element("a", one.name, href=view.link(evaluator=one.name, before=None), title=key, class_="name")
        cells = [_cell(numbers[i], bad=_COLUMNS[i][1]) for i in used]
        body.append(element("tr", element("th", link, scope="row"), cells))
    table = element("table", element("thead", head), element("tbody", body))
    scroll = element("div", table, class_="scroll", tabindex=0, role="region", aria_label="outcomes per evaluator")
    return joined(scroll, _reasons([(one.name, _why(one)) for _, one, _ in rows]))


def _numbers(one: Counts) -> list[int]:
    """In the order of `_COLUMNS`."""
    ended = [one.of(outcome) for outcome in _OUTCOMES]
    return [one.met, *ended, one.pending, one.delivered.total(), one.undelivered.total(), one.in_flight]


def _reasons(rows: Sequence[tuple[str, str]]) -> Html | None:
    said = [(element("dt", name, class_="name"), element("dd", why)) for name, why in rows if why]
    if not said:
        return None
    summary = element("summary", element("span", "reasons and carriers", class_="more"))
    return element("details", summary, element("dl", said, class_="ids"), class_="reasons")


def _cell(count: int, *, bad: bool = False) -> Html:
    return element("td", f"{count:,}", class_="zero" if count == 0 else "bad" if bad else None)


def _why(one: Counts) -> str:
    reasons = [
        f"{outcome.value.replace('_', ' ')}: {reason} {count:,}"
        for (outcome, reason), count in one.outcomes.most_common()
        if reason and reason not in (outcome.value, "none")
    ]
    reasons += [f"delivered by {carrier} {count:,}" for carrier, count in one.delivered.most_common()]
    reasons += [f"not delivered: {reason} {count:,}" for reason, count in one.undelivered.most_common()]
    return "; ".join(reasons)
