"""What judges may still spend: a table on the front page."""

from collections.abc import Mapping, Sequence

from spangrade.scoring.purse import State
from spangrade_agent.page.markup import Html, element, joined

_WINDOWS = {"usd_per_hour": "this hour (UTC)", "usd_per_day": "today (UTC)"}


def budget_table(budgets: Mapping[str, Sequence[State]]) -> Html | None:
    """A row for each ceiling in money, by judge; None where there is none."""
    rows = [(name, state) for name, states in sorted(budgets.items()) for state in states]
    if not rows:
        return None
    titles = ("Judge", "Window", "Limit", "Spent", "Reserved", "Left")
    head = element("tr", [element("th", title, scope="col") for title in titles])
    body = [
        element(
            "tr",
            element("th", name, scope="row", class_="name"),
            element("td", _WINDOWS.get(state.kind, state.kind)),
            [element("td", dollars(amount)) for amount in (state.limit, state.spent, state.reserved)],
            element("td", dollars(state.left), class_="bad" if state.left <= 0 else None),
        )
        for name, state in rows
    ]
    title = element("h2", "Budgets")
    note = element("div", "at the ceiling a judge is not asked, which is counted as over budget", class_="note")
    table = element("table", element("thead", head), element("tbody", body))
    scroll = element("div", table, class_="scroll", tabindex=0, role="region", aria_label="budgets of judges")
    return joined(element("div", title, note, class_="head"), scroll)


def dollars(amount: float) -> str:
    """``$1.50``; small amounts with as many digits as say something."""
    return f"${amount:,.2f}" if amount >= 1 or amount == 0 else f"${amount:.4g}"
