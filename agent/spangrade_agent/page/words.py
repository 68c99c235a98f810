"""Numbers, times and texts in the words of the page."""

import datetime
import math

from spangrade._values import cut
from spangrade_agent.page.markup import Html, element

INLINE_CHARS = 4_000  # of one text on a page with many samples; the sample's own page has all that is kept


def number(value: float) -> str:
    """``0.3333``, ``1,204``, ``2.5e+20``."""
    if not math.isfinite(value):
        return str(value)
    if value == int(value) and abs(value) < 1e15:
        return f"{int(value):,}"
    return f"{value:.4g}"


def share(probability: float | None) -> str:
    """How many samples an evaluator looks at."""
    if probability is None:
        return "share unknown"
    if probability >= 1:
        return "every sample"
    return f"1 in {round(1 / probability):,}, p = {probability:.3g}" if probability > 0 else "p = 0"


def duration(seconds: float) -> str:
    """``0.4 ms``, ``31 ms``, ``2.4 s``, not broken over a line."""
    if seconds < 0.01:
        return f"{seconds * 1_000:.2g}\u00a0ms"
    return f"{seconds * 1_000:.0f}\u00a0ms" if seconds < 1 else f"{seconds:.3g}\u00a0s"


def size(count: int) -> str:
    """Bytes: ``0.4 MB``."""
    return f"{count / 1_000_000:.1f} MB" if count >= 100_000 else f"{count / 1_000:.1f} kB"


def counted(count: int, one: str, many: str | None = None) -> str:
    """``1 sample``, ``1,204 samples``."""
    return f"{count:,} {one if count == 1 else many or one + 's'}"


def moment(time_ns: int, now_ns: int) -> Html:
    """How long ago, with the UTC time beside it."""
    try:
        when = datetime.datetime.fromtimestamp(time_ns / 1e9, datetime.UTC)
    except (ValueError, OverflowError, OSError):  # a span's time is the sender's word
        return element("span", "at an impossible time")
    exact = when.strftime("%Y-%m-%d %H:%M:%S UTC")
    return element(
        "time", f"{_ago((now_ns - time_ns) / 1e9)}", datetime=when.isoformat(timespec="seconds"), title=exact
    )


def _ago(seconds: float) -> str:
    if seconds < -5:
        return "in the future"
    for unit, length in (("d", 86_400), ("h", 3_600), ("min", 60)):
        if seconds >= length * 2:
            return f"{int(seconds // length)} {unit} ago"
    return f"{max(0, int(seconds))} s ago"


def long_text(text: str, glance: int, *, code: bool = False, limit: int | None = None) -> Html:
    """A text; past ``glance`` characters its beginning, and all of it (at most about ``limit``) when opened."""
    look = "text code" if code else "text"
    if len(text) <= glance + 80:
        return element("div", text, class_=look, dir="auto")
    shown = text if limit is None else cut(text, limit)
    said = f"{'all' if shown is text else 'more, of'} {len(text):,} characters"
    beginning = element("div", text[:glance].rstrip() + " …", class_=f"{look} glance", dir="auto")
    less = element("span", "less", class_="shut")
    more = element("span", element("span", said, class_="open"), less, class_="more")
    return element("details", element("summary", beginning, more), element("div", shown, class_=look, dir="auto"))
