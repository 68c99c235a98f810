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
from spangrade.model.policy import Policy, Stratum
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
NOT_MET: Final = Selection(False, 1.0, "when")  # no condition of the policy holds


def position(trace_id: int, key: str, trace_state: str = "") -> int:
    """Where a trace stands for an evaluator: uniform in [0, 2**56), independent between keys."""
    explicit = _RV.search(trace_state) if "rv:" in trace_state else None
    message = bytes.fromhex(explicit.group(1)) if explicit else trace_id.to_bytes(16, "big")
    salt = hashlib.sha256(key.encode("utf-8", "replace")).digest()
    return int.from_bytes(hashlib.blake2b(message, digest_size=7, key=salt).digest(), "big")


def session_unit(session_id: str) -> int:
    """What stands for a conversation in place of a trace id."""
    return int.from_bytes(hashlib.blake2b(session_id.encode("utf-8", "replace"), digest_size=16).digest(), "big")


def chosen(trace_id: int, key: str, rate: float, trace_state: str = "") -> bool:
    """True for a share ``rate`` of all traces; the same for everyone who asks."""
    return position(trace_id, key, trace_state) >= _SPACE * (1 - rate)


class Selector:
    """One evaluator's decisions. Its cap and floor per minute change the rates of the next minute and never single
    decisions, so the probability on a score is the one with which it was taken.

    A policy with conditions decides in two steps: a `candidate` before the sample is known, and `decide` when it is. What is
    no candidate, no stratum would choose.
    """

    def __init__(self, evaluator: EvaluatorInfo, policy: Policy, clock: Clock) -> None:
        self._key = f"group:{policy.group}" if policy.group is not None else evaluator.name
        self._policy = policy
        self._clock = clock
        self._lock = threading.Lock()
        self._strata = policy.strata
        self._windowed = policy.max_per_minute is not None or policy.min_per_minute is not None
        self._factor = 1.0  # of this minute, on every stratum's rate
        self._window_start = clock.monotonic()
        self._expected = 0.0  # of this minute, at the policy's own rates

    def at_once(self, trace_id: int, trace_state: str = "") -> Selection:
        """The decision where it needs nothing but the trace; else whether this one is a candidate."""
        if self._policy.conditional:
            return self.candidate(trace_id, trace_state)
        return self.decide(trace_id, trace_state)

    def candidate(self, trace_id: int, trace_state: str = "") -> Selection:
        """Whether `decide` may choose this trace, whatever its sample turns out to be; nothing is counted."""
        if self._windowed:
            self._turn()
        highest = max(self._rate(stratum) for stratum in self._strata)
        return Selection(highest >= 1.0 or chosen(trace_id, self._key, highest, trace_state), highest, "rate")

    def decide(self, trace_id: int, trace_state: str = "", stratum: Stratum | None = None) -> Selection:
        """Select by hash. ``reason`` is always or rate, or the stratum's condition; ``_capped`` or ``_raised`` behind it
        say that this minute's rate is not the policy's own."""
        of = self._strata[0] if stratum is None else stratum
        if self._windowed:
            self._turn()
            with self._lock:
                self._expected += of.rate
        rate = self._rate(of)
        if rate >= 1.0 and of.rate >= 1.0:
            return ALWAYS if of.name is None else Selection(True, 1.0, of.name)
        reason = (of.name or "rate") + ("_capped" if rate < of.rate else "_raised" if rate > of.rate else "")
        return Selection(rate >= 1.0 or chosen(trace_id, self._key, rate, trace_state), rate, reason)

    def _rate(self, stratum: Stratum) -> float:
        return min(1.0, stratum.rate * self._factor)

    def _turn(self) -> None:
        """The next minute's factor, where one has gone by: from how many would have been graded in the last one."""
        cap, floor = self._policy.max_per_minute, self._policy.min_per_minute
        now = self._clock.monotonic()
        with self._lock:
            windows = int((now - self._window_start) // _WINDOW_S)
            if windows <= 0:
                return
            expected = self._expected if windows == 1 else 0.0  # a minute without a sample says nothing of the next
            self._factor = 1.0
            if expected and cap is not None and expected > cap:
                self._factor = cap / expected
            elif expected and floor is not None and expected < floor:
                self._factor = floor / expected
            self._window_start += windows * _WINDOW_S
            self._expected = 0.0


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

    def after(self, before: "Budget") -> "Budget":
        """The one to go on with where ``before`` was this judge's until now: what was called counts on."""
        if [window[:2] for window in before._windows] == [window[:2] for window in self._windows]:
            return before
        with before._lock:
            called = {seconds: list(calls) for seconds, _, calls in before._windows}
        for seconds, _, calls in self._windows:
            calls.extend(called.get(seconds, ()))
        return self

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
