"""The limiters of this process: one for each endpoint and key."""

import hashlib
import os
import re
import secrets
import time
from collections.abc import Callable
from typing import Final
from urllib.parse import urlsplit

from spangrade.errors import JudgeError
from spangrade.judges.limiter import MAX_CONCURRENCY, Limiter

VARIABLE: Final = "SPANGRADE_JUDGE_MAX_CONCURRENCY"
_ENDS: Final = re.compile(r"(/v1)?(/chat/completions|/messages)?$")
_shared: dict[tuple[object, ...], Limiter] = {}
_salt: Final = secrets.token_bytes(16)  # keys are not kept here, nor what could be compared with those of elsewhere


def most_at_once(configured: int | None) -> int:
    """Calls at once, at most: as configured for an endpoint, else ``SPANGRADE_JUDGE_MAX_CONCURRENCY``, else 200.

    Raises:
        JudgeError: kind configuration, for a variable that is no number of calls.
    """
    if configured is not None:
        return configured
    text = os.environ.get(VARIABLE, "").strip()
    if not text:
        return MAX_CONCURRENCY
    if not (text.isascii() and text.isdigit() and int(text) >= 1):
        raise JudgeError("configuration", f"{VARIABLE}={text!r} is not a number of calls at once, 1 or more")
    return int(text)


def shared_limiter(
    base_url: str,
    key: str | None,
    key_file: str | None = None,
    most: int = MAX_CONCURRENCY,
    *,
    clock: Callable[[], float] = time.monotonic,
    sleep: Callable[[float], None] = time.sleep,
) -> Limiter:
    """The one limiter of this process for an endpoint and a key (or the file that it is in). Callers with other clocks have
    another one. Of several ``most`` the lowest counts. A fork's child gets its own: the calls under way are its parent's."""
    host, address = _endpoint(base_url)
    said = "\0".join((address, key or "", "" if key else key_file or "")).encode("utf-8", "replace")
    pid = os.getpid()
    name = (pid, hashlib.blake2b(said, key=_salt).digest(), clock)
    found = _shared.get(name)
    if found is None:
        for old in [other for other in _shared.copy() if other[0] != pid]:
            _shared.pop(old, None)
        found = _shared.setdefault(name, Limiter(host, most, clock=clock, sleep=sleep))
    found.at_most(most)
    return found


def _endpoint(base_url: str) -> tuple[str, str]:
    """Host and port of an address, and what tells it from others, however much of the path is written."""
    try:
        parts = urlsplit(base_url.strip())
        host = parts.netloc.rpartition("@")[2].lower()
    except ValueError:
        return "", base_url
    path = _ENDS.sub("", parts.path.rstrip("/"))
    return host, f"{parts.scheme.lower()}://{host}{path}"
