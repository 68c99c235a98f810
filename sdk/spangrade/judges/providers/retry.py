"""How long to wait before a judge call is tried again, and whether at all."""

import math
import random
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from email.utils import parsedate_to_datetime
from typing import Final

from tenacity import RetryCallState, Retrying, retry_if_exception_type

from spangrade.errors import JudgeError

# 529 is Anthropic's "overloaded", also seen through gateways.
RETRIED_STATUS: Final = frozenset({408, 429, 500, 502, 503, 504, 529})
#: Of these, what a model may have worked for: whoever answers so may have lost a reply. The others are said before any work.
BILLED_STATUS: Final = frozenset({408, 500, 502, 504})


class Passing(Exception):
    """A try that failed in a way that may pass. ``headers``: of the reply, if there was one; ``reason``: in few words;
    ``billed``: it may have been, all the same."""

    def __init__(self, failure: JudgeError, headers: Mapping[str, str], reason: str, *, billed: bool) -> None:
        super().__init__()
        self.failure, self.headers, self.reason, self.billed = failure, headers, reason, billed


@dataclass(frozen=True, slots=True)
class RetryPolicy:
    """At most ``retries`` more tries; all waits and clocks can be replaced.

    Attributes:
        retries: tries after the first.
        base_wait: seconds before the first retry when the server names none; doubled for each next one, with jitter of
            half of it either way, so that many callers do not come back at once.
        max_wait: the longest wait. A server that asks for more is not waited for: the call fails at once.
        sleep: waits.
        clock: monotonic seconds.
        now: seconds since the epoch, for a ``Retry-After`` that is a date.
    """

    retries: int = 2
    base_wait: float = 0.5
    max_wait: float = 20.0
    sleep: Callable[[float], None] = time.sleep
    clock: Callable[[], float] = time.monotonic
    now: Callable[[], float] = time.time

    def wait_before(self, tried: int, headers: Mapping[str, str], left: float) -> float | None:
        """Seconds to wait after ``tried`` tries, or None to give up.

        Args:
            tried: how many tries there were.
            headers: of the reply that failed; empty when there was none.
            left: seconds until the call's deadline.
        """
        if tried > self.retries:
            return None
        asked = asked_wait(headers, self.now())
        wait = self.base_wait * 2 ** (tried - 1) * random.uniform(0.5, 1.5) if asked is None else asked
        return wait if wait <= self.max_wait and wait < left else None

    def retrying(self, deadline: float, allowed: Callable[[Passing], bool], before: Callable[[], None]) -> Retrying:
        """Calls what it is given until that does not raise `Passing`; raises the last one when there is to be no other try.

        Args:
            deadline: by `clock`; no try begins after it.
            allowed: whether there may be another try after this one; asked last, since it takes what that needs.
            before: called before each wait.
        """

        def stop(state: RetryCallState) -> bool:
            fault = state.outcome.exception() if state.outcome is not None else None
            return math.isinf(state.upcoming_sleep) or not (isinstance(fault, Passing) and allowed(fault))

        def wait(state: RetryCallState) -> float:
            fault = state.outcome.exception() if state.outcome is not None else None
            headers = fault.headers if isinstance(fault, Passing) else {}
            found = self.wait_before(state.attempt_number, headers, deadline - self.clock())
            return math.inf if found is None else found

        return Retrying(
            retry=retry_if_exception_type(Passing),
            wait=wait,
            stop=stop,
            before_sleep=lambda _state: before(),
            sleep=self.sleep,
            reraise=True,
        )


def asked_wait(headers: Mapping[str, str], now: float) -> float | None:
    """Seconds that the server asks to wait: ``retry-after-ms``, else ``Retry-After`` in either form (RFC 9110, 10.2.3).

    None when it asks for nothing that can be read. A date that has passed is 0.
    """
    for name, unit in (("retry-after-ms", 0.001), ("retry-after", 1.0)):
        text = headers.get(name)
        if text is None:
            continue
        try:
            seconds = float(text) * unit
        except ValueError:
            try:
                seconds = parsedate_to_datetime(text).timestamp() - now
            except (ValueError, TypeError, OverflowError):
                continue
            seconds = max(seconds, 0.0)
        if math.isfinite(seconds) and seconds >= 0:
            return seconds
    return None
