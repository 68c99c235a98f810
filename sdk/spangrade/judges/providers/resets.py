"""What an endpoint says of its rate limits in headers: when there will be room again.

OpenAI (and those who speak as it does): ``x-ratelimit-remaining-requests: 0`` with ``x-ratelimit-reset-requests: 6m0s``, the same of
tokens. Anthropic: ``anthropic-ratelimit-requests-remaining`` with ``anthropic-ratelimit-requests-reset``, an RFC 3339 time, the
same of tokens, input-tokens and output-tokens. Source: both vendors' pages on rate limits, November 2026.
"""

import math
import re
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from typing import Final

_OPENAI: Final = ("requests", "tokens")
_ANTHROPIC: Final = ("requests", "tokens", "input-tokens", "output-tokens")
_PART: Final = re.compile(r"(\d+(?:\.\d+)?)(ms|us|µs|ns|h|m|s|d)")
_UNITS: Final[Mapping[str, float]] = {
    "d": 86_400.0,
    "h": 3_600.0,
    "m": 60.0,
    "s": 1.0,
    "ms": 1e-3,
    "us": 1e-6,
    "µs": 1e-6,
    "ns": 1e-9,
}


def reset_wait(headers: Mapping[str, str], now: float, *, refused: bool) -> float | None:
    """Seconds until the limit that is used up is reset; None where none is, or nothing can be read.

    Of several that are used up the last one counts. With ``refused`` (a 429) one of them must be: where no ``remaining`` is 0, it
    is the one that is reset first. ``now``: seconds since the epoch.
    """
    resets = list(_resets(headers, now))
    used_up = [wait for wait, left in resets if left == 0]
    if used_up:
        return max(used_up)
    return min((wait for wait, _ in resets), default=None) if refused else None


def _resets(headers: Mapping[str, str], now: float) -> Iterator[tuple[float, float | None]]:
    """Seconds until a reset, and what remains until then."""
    for what in _OPENAI:
        wait = _duration(headers.get(f"x-ratelimit-reset-{what}", ""))
        if wait is not None:
            yield wait, _number(headers.get(f"x-ratelimit-remaining-{what}", ""))
    for what in _ANTHROPIC:
        wait = _until(headers.get(f"anthropic-ratelimit-{what}-reset", ""), now)
        if wait is not None:
            yield wait, _number(headers.get(f"anthropic-ratelimit-{what}-remaining", ""))


def _duration(text: str) -> float | None:
    """``1s``, ``6m0s``, ``20ms`` or plain seconds."""
    text = text.strip()
    plain = _number(text)
    if plain is not None:
        return plain
    parts = _PART.findall(text)
    if not parts or "".join(number + unit for number, unit in parts) != text:
        return None
    return sum(float(number) * _UNITS[unit] for number, unit in parts)


def _until(text: str, now: float) -> float | None:
    """Seconds until a time; 0 when it has passed."""
    try:
        when = datetime.fromisoformat(text.strip())
    except ValueError:
        return None
    if when.tzinfo is None:
        when = when.replace(tzinfo=UTC)
    try:
        return max(0.0, when.timestamp() - now)
    except (OverflowError, ValueError):
        return None


def _number(text: str) -> float | None:
    try:
        number = float(text)
    except ValueError:
        return None
    return number if math.isfinite(number) and number >= 0 else None
