"""Calls that start together come back together, and then keep one processor waiting for the other: their starts are spread.

Two hundred replies that come at once are half a second's work, in which none of the next calls is under way, round after round.
Started with some distance they find the processor free. A token bucket; the idea is that of TCP pacing (Aggarwal, Savage and
Anderson, "Understanding the performance of TCP pacing", 2000).
"""

from typing import Final

AHEAD: Final = 2.0  # times the rate that keeps all places in use: a burst is made up for in half a round
LEAST: Final = 100.0  # starts a second that are no burst, whatever an endpoint's replies take
BURST: Final = 8.0  # starts that may come together
LOOK_S: Final = 0.05  # lanes look at a limiter so often where only time has to pass


class Pacer:
    """Not thread-safe: `Limiter`'s lock guards it. Times in seconds, of one monotonic clock."""

    def __init__(self) -> None:
        self._tokens = BURST
        self._at = float("-inf")

    def may_start(self, now: float, in_flight: int, limit: int, usual: float | None) -> bool:
        """Whether another call may start now: so few are under way that they are no burst, or there is some distance to the
        last ones. So one of those under way always comes back and brings the next. ``usual``: what a reply takes; None while
        that is not known, and nothing is spread."""
        if in_flight < BURST or not usual:
            return True
        rate = max(AHEAD * limit / usual, LEAST)
        most = max(BURST, rate * LOOK_S)
        self._tokens = min(most, self._tokens + max(0.0, now - self._at) * rate)
        self._at = now
        return self._tokens >= 1.0

    def started(self) -> None:
        """One did."""
        self._tokens = max(0.0, self._tokens - 1.0)
