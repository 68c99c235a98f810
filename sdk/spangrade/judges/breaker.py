"""A circuit breaker: an endpoint that does not work is left alone, and tried with one call at a time until it does.

Ours, since those on the shelf do not fit (looked at in November 2026): pybreaker 1.4 holds its lock for as long as the call
takes, so that 200 calls would be made one after the other; purgatory 3.0 lets all callers through at once when half open; both
read the machine's clock, and neither can be asked without making a call, which a queue has to.
"""

from typing import Final

from spangrade.model.gate import Circuit

FAILURES: Final = 5  # calls in a row that fail, their retries included, open the circuit
OPEN_S: Final = 30.0
MAX_OPEN_S: Final = 300.0


class Breaker:
    """Closed until `FAILURES` calls in a row have failed; then open for `OPEN_S`, twice that when the probe fails, and so on
    up to `MAX_OPEN_S`. Not thread-safe: `Limiter`'s lock guards it. All times are of one monotonic clock, in seconds."""

    def __init__(self) -> None:
        self.reason = ""  # why it is open
        self.opened = 0  # how often it has opened
        self._failed = 0
        self._until: float | None = None  # None while closed
        self._open_s = OPEN_S

    def state(self, now: float) -> Circuit:
        """``half_open``: the time is over, and one call may try."""
        if self._until is None:
            return "closed"
        return "open" if now < self._until else "half_open"

    def left(self, now: float) -> float:
        """Seconds until it is half open; 0 when it is not open."""
        return 0.0 if self._until is None else max(0.0, self._until - now)

    def succeeded(self, now: float) -> bool:
        """A call came back; True when the circuit closes. One that was sent before the circuit opened proves nothing."""
        self._failed = 0
        if self.state(now) != "half_open":
            return False
        self._until, self._open_s, self.reason = None, OPEN_S, ""
        return True

    def failed(self, now: float, reason: str, *, at_once: bool = False, for_s: float = 0.0) -> bool:
        """A call failed; True when the circuit opens.

        Args:
            reason: in a few words.
            at_once: the next call would fail as well.
            for_s: seconds that it is to stay open at least, up to `MAX_OPEN_S`.
        """
        state = self.state(now)
        if state == "open":
            return False
        self._failed += 1
        if state == "closed" and self._failed < FAILURES and not at_once:
            return False
        if state == "half_open":
            self._open_s = min(self._open_s * 2, MAX_OPEN_S)
        self._until = now + max(self._open_s, min(for_s, MAX_OPEN_S))
        self._failed, self.reason = 0, reason
        self.opened += 1
        return True
