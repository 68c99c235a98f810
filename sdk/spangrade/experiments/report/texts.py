"""Values of items as text on the page, bounded."""

import json
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Final

from spangrade._text import valid
from spangrade._values import dumps, settled

MAX_ITEMS: Final = 500
MAX_PAGE_CHARS: Final = 3_000_000
MAX_TEXT_CHARS: Final = 4_000
_GLANCE: Final = 160


@dataclass(frozen=True, slots=True)
class Text:
    """One text: what is shown of it, and how many characters are left out."""

    shown: str
    left_out: int = 0
    code: bool = False


def text_of(value: Any, limit: int = MAX_TEXT_CHARS) -> Text | None:
    """A value as text: words as they are, anything else as JSON; None where there is none."""
    if value is None:
        return None
    if isinstance(value, str):
        whole, code = value, False
    else:
        whole, code = json.dumps(json.loads(dumps(settled(value))), indent=2, ensure_ascii=False), True
    return Text(valid(whole[:limit]), max(0, len(whole) - limit), code)


def glance_of(value: Any) -> str:
    """Its first words, on one line."""
    text = text_of(value, 2 * _GLANCE)
    if text is None:
        return ""
    line = " ".join(text.shown.split())
    return line if len(line) <= _GLANCE and not text.left_out else f"{line[:_GLANCE].rstrip()} …"


def moment(iso: str) -> str:
    """``2026-11-30 19:51 UTC`` of an ISO 8601 text; what is none stays as it is."""
    try:
        then = datetime.fromisoformat(iso)
    except ValueError:
        return iso
    return (
        then.strftime("%Y-%m-%d %H:%M") if then.tzinfo is None else then.astimezone(UTC).strftime("%Y-%m-%d %H:%M UTC")
    )
