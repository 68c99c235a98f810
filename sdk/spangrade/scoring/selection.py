"""Which samples a judge sees: a pure function of trace id and judge, so that every process and the agent agree.

A keyed hash of the trace id is compared with the rate. Comparing the trace id itself would go wrong after head sampling,
which leaves only small (or only large) ids (measured in facts/telemetry.md, 6.2: a 25 % judge then selects nothing).
Where the trace state carries an explicit ``rv``, that is hashed, so that linked traces stay together.
"""

import hashlib
import re
import threading
from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from spangrade.model.evaluator import EvaluatorInfo
from spangrade.model.policy import Policy
from spangrade.scoring.clock import Clock

_SPACE: Final = 2**56
_RV: Final = re.compile(r"(?:^|,)\s*ot=[^,]*?\brv:([0-9a-f]{14})")
_WINDOW_S: Final = 60.0
_SECONDS: Final[Mapping[str, float]] = {"calls_per_minute": 60.0, "calls_per_hour": 3600.0, "calls_per_day": 86400.0}


@dataclass(frozen=True, slots=True)
class Selection:
    """Whether to grade, the probability with which that was decided (never 0 when chosen), and the reason."""

    chosen: bool
    probability: float
    reason: str


ALWAYS: Final = Selection(True, 1.0, "always")


def position(trace_id: int, key: str, trace_state: str = "") -> int:
    """Where a trace stands for an evaluator: uniform in [0, 2**56), independent between keys."""
    explicit = _RV.search(trace_state) if "rv:" in trace_state else None
    message = bytes.fromhex(explicit.group(1)) if explicit else trace_id.to_bytes(16, "big")
    salt = hashlib.sha256(key.encode("utf-8", "replace")).digest()
    return int.from_bytes(hashlib.blake2b(message, digest_size=7, key=salt).digest(), "big")


def chosen(trace_id: int, key: str, rate: float, trace_state: str = "") -> bool:
    """True for a share ``rate`` of all traces; the same for everyone who asks."""
    return position(trace_id, key, trace_state) >= _SPACE * (1 - rate)


class Selector:
    """One evaluator's decisions. A per-minute cap lowers the rate of the next minute, never single decisions, so the
    probability on a score is the one with which it was taken."""

    def __init__(self, evaluator: EvaluatorInfo, policy: Policy, clock: Clock) -> None:
        self._key = evaluator.name
        self._policy = policy
        self._clock = clock
        self._lock = threading.Lock()
        self._rate = policy.rate
        self._window_start = clock.monotonic()
        self._seen = 0

    def would_choose(self, trace_id: int, trace_state: str = "") -> bool:
        """What `decide` is about to say, without counting a sample."""
        return self._rate >= 1.0 or chosen(trace_id, self._key, self._rate, trace_state)

    def decide(self, trace_id: int, trace_state: str = "") -> Selection:
        """Select by hash. ``reason`` is always, rate, or rate_capped."""
        rate = self._current_rate() if self._policy.max_per_minute is not None else self._policy.rate
        if rate >= 1.0:
            return ALWAYS
        reason = "rate_capped" if rate < self._policy.rate else "rate"
        return Selection(chosen(trace_id, self._key, rate, trace_state), rate, reason)

    def _current_rate(self) -> float:
        assert self._policy.max_per_minute is not None
        now = self._clock.monotonic()
        with self._lock:
            windows = int((now - self._window_start) // _WINDOW_S)
            if windows > 0:
                seen = self._seen if windows == 1 else 0
                self._rate = min(self._policy.rate, self._policy.max_per_minute / seen) if seen else self._policy.rate
                self._window_start += windows * _WINDOW_S
                self._seen = 0
            self._seen += 1
            return self._rate


class Budget:
    """Hard ceilings on one judge's calls in this process, over sliding windows."""

    def __init__(self, limits: Mapping[str, float], clock: Clock) -> None:
        # Each window has its own calls, at most its limit: what leaves it is dropped once, whatever the window's length.
        self._windows: list[tuple[float, int, deque[float]]] = [
            (_SECONDS[key], int(limit), deque()) for key, limit in limits.items()
        ]
        self._clock = clock
        self._lock = threading.Lock()
        self.unlimited = not self._windows  # no ceiling at all: then nobody need ask

    def full(self) -> bool:
        """Whether `take` would refuse now."""
        with self._lock:
            return self._is_full(self._clock.monotonic())

    def take(self) -> bool:
        """Reserve one call; False when a ceiling is reached."""
        if not self._windows:
            return True
        with self._lock:
            now = self._clock.monotonic()
            if self._is_full(now):
                return False
            for _, _, calls in self._windows:
                calls.append(now)
            return True

    def _is_full(self, now: float) -> bool:
        full = False
        for seconds, limit, calls in self._windows:
            while calls and calls[0] <= now - seconds:
                calls.popleft()
            full = full or len(calls) >= limit
        return full
