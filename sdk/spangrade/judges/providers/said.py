"""What an endpoint says in place of a reply: its error bodies, and the small readers that every provider needs."""

import json
import re
from collections.abc import Mapping
from typing import Any, Final

from spangrade._values import bounded
from spangrade.errors import JudgeError
from spangrade.judges.providers.base import JudgeReply
from spangrade.judges.providers.key import Key

EXCERPT: Final = 200
_KEY_LIKE: Final = re.compile(r"\b(?:sk|pk|rk|gsk|xai)-[\w*.-]{3,}|(?<=Bearer )\S+", re.IGNORECASE)
_TOO_LONG: Final = re.compile(r"context[ _](?:length|window|size)|prompt is too long", re.IGNORECASE)
_HINTS: Final[Mapping[int, str]] = {
    401: " (is SPANGRADE_JUDGE_API_KEY the key for this base URL?)",
    404: " (is the model's name right, and does SPANGRADE_JUDGE_BASE_URL end as it should, usually in /v1?)",
}
# A 429 that waiting does not mend.
_FINAL_CODES: Final = frozenset({"insufficient_quota", "billing_hard_limit_reached"})


class ErrorBody:
    """What an error body says, in whichever of the usual shapes; the start of the body where it has none of them."""

    def __init__(self, data: bytes) -> None:
        body = json_or_none(data)
        found = body.get("error", body) if isinstance(body, dict) else body
        inner: Mapping[str, Any] = found if isinstance(found, dict) else {}
        self.code = str(inner.get("code") or inner.get("type") or "")
        self.param = str(inner.get("param") or "")
        said = inner.get("message") or inner.get("detail") or (found if isinstance(found, str) else None)
        self.message = str(said) if said else ("" if inner else data[:4096].decode("utf-8", "replace").strip())
        words = f"{self.code} {inner.get('innererror') or ''}".lower()
        self.filtered = any(word in words for word in ("content_filter", "content_policy", "responsibleaipolicy"))
        self.adaptable = not self.filtered and not _TOO_LONG.search(f"{self.code} {self.message}")

    @property
    def final(self) -> bool:
        """Whether waiting mends nothing."""
        return self.code in _FINAL_CODES

    def fault(self, shown: str, status: int, key: Key) -> JudgeError:
        """The error for the pair, without a key, and with at most 200 characters of the body."""
        if self.filtered:
            return JudgeError("content_filter", f"{shown} filtered the request (status {status})")
        text = key.hide(self.message or self.code or "no reason given")
        text = bounded(_KEY_LIKE.sub("[key]", text), EXCERPT)
        return JudgeError("http_status", f"{shown} answered {status}: {text}{_HINTS.get(status, '')}")


def json_or_none(data: bytes) -> Any:
    """The body as JSON, or None. The decoder's error is not passed on: it holds the body, and that perhaps the key."""
    try:
        return json.loads(data)
    except (ValueError, RecursionError):
        return None


def text_of(content: Any) -> str:
    """Text content, or the text parts of a list of parts; thinking parts are not text."""
    if isinstance(content, str):
        return content
    if not isinstance(content, list):
        return ""
    parts = (part.get("text") for part in content if isinstance(part, dict) and part.get("type") in (None, "text"))
    return "".join(part for part in parts if isinstance(part, str))


def word(value: Any) -> str | None:
    """A name or short text; None for anything else."""
    return bounded(value, 1024) if isinstance(value, str) and value.strip() else None


def count(value: Any) -> int | None:
    """A number of tokens; None for anything else."""
    return value if isinstance(value, int) and not isinstance(value, bool) and 0 <= value < 2**53 else None


def is_formed(reply: JudgeReply) -> bool:
    """Whether a reply may be in the form that was asked for. One that ended of itself and has no brace anywhere is not: the
    endpoint took the question and did not look at it."""
    return "{" in reply.text or not reply.text.strip() or reply.finish_reason not in (None, "stop", "end_turn")


def mapping(value: Any) -> Mapping[str, Any]:
    """A JSON object, or an empty one."""
    return value if isinstance(value, dict) else {}
