"""How many calls at once an endpoint takes: found by asking for a little more until it says no, or gets slow.

Additive increase, multiplicative decrease, as TCP finds its window (Jacobson, "Congestion avoidance and control", 1988, with
its slow start): each call that comes back makes room for one more, until the first refusal; after that a whole round of them
does. A refusal takes a part away, once for all calls that were sent before it. So does a latency of twice the usual one: servers
with few slots do not refuse, they queue, and what waits there is better off in our queue, where it can still be dropped.
"""

from typing import Final

START: Final = 16
CUT: Final = 0.8  # once the limit has been found: near enough below it to use it
FIRST_CUT: Final = 0.5  # out of slow start, where it may have been overshot by as much
SLOW_CUT: Final = 0.9
SLOW: Final = 2.0  # times the usual latency
DRIFT: Final = 0.02  # of the difference, per round: a model that has become slower for good is the usual one some day
WINDOW: Final = 16  # calls, or a whole round if that is more: single ones differ too much
MAX_MODELS: Final = 64


class Aimd:
    """``limit`` is at least 1, at most ``most``. Not thread-safe: `Limiter`'s lock guards it. Times in seconds."""

    def __init__(self, most: int, start: int = START) -> None:
        self.most = most
        self._limit = float(min(start, most))
        self._slow_start = True
        self._cut_at = float("-inf")
        self._usual: dict[str, float] = {}  # latency by model: one endpoint has fast and slow ones
        self._window: list[tuple[str, float]] = []

    @property
    def limit(self) -> int:
        """Calls that may be under way at once."""
        return max(1, min(int(self._limit + 1e-9), self.most))  # a sum of tenths may be a hair below the whole

    @property
    def usual(self) -> float | None:
        """What a reply usually takes, of the quickest model; None while that is not known."""
        return min(self._usual.values(), default=None)

    def at_most(self, most: int) -> None:
        """Keep below another bound as well."""
        self.most = min(self.most, most)
        self._limit = min(self._limit, float(self.most))

    def succeeded(self, model: str, seconds: float, sent: float, now: float, *, busy: bool) -> None:
        """A call came back. ``busy``: the limit was in use when it was sent; what is not in use tells nothing of more."""
        if sent < self._cut_at:
            return  # it tells of how things were
        if busy:
            self._limit = min(self._limit + (1.0 if self._slow_start else 1.0 / self._limit), float(self.most))
        if model not in self._usual and len(self._usual) >= MAX_MODELS:
            return
        self._window.append((model, seconds))
        if len(self._window) >= max(WINDOW, self.limit):
            self._look(now)

    def refused(self, sent: float, now: float) -> None:
        """The endpoint said no (429, 529) to a call that was sent at ``sent``."""
        if sent < self._cut_at:
            return  # it did not know of the last cut
        self._down(FIRST_CUT if self._slow_start else CUT, now)

    def restart(self) -> None:
        """The endpoint works again after it did not: what was known of it may be wrong."""
        self._limit, self._slow_start = float(min(START, self.most, self.limit)), True
        self._window.clear()

    def _down(self, factor: float, now: float) -> None:
        self._limit = max(1.0, self._limit * factor)
        self._slow_start = False
        self._cut_at = now
        self._window.clear()

    def _look(self, now: float) -> None:
        """A round is over: compare its latencies with the usual ones, each model with itself."""
        by_model: dict[str, list[float]] = {}
        for model, seconds in self._window:
            by_model.setdefault(model, []).append(seconds)
        calls = len(self._window)
        self._window.clear()
        times = 0.0
        for model, all_seconds in by_model.items():
            mean = sum(all_seconds) / len(all_seconds)
            usual = self._usual.get(model, mean)
            times += len(all_seconds) * (mean / usual if usual > 0 else 1.0)
            self._usual[model] = mean if mean < usual else usual + (mean - usual) * DRIFT
        if times / calls > SLOW:
            self._down(SLOW_CUT, now)
