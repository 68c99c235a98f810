"""The shared limiter of an endpoint and key: how many calls are under way, when there may be more, and when there may be none.

Two kinds of callers: a lane of the pipeline asks for a place before it starts a step (`enter`, which never blocks), and
the step's thread carries the place to the client; whoever calls a client without a lane (offline, `preview`) waits in the client (`place`),
within the call's own deadline. The latter go first, since they hold a thread meanwhile.
"""

import threading
import time
from collections.abc import Callable
from typing import Final

from spangrade._log import Seldom, log
from spangrade.errors import JudgeError
from spangrade.judges.aimd import Aimd
from spangrade.judges.breaker import Breaker
from spangrade.judges.pacing import Pacer
from spangrade.model.gate import CIRCUIT_OPEN, RATE_LIMITED, GateState, carried

MAX_CONCURRENCY: Final = 200
RETRY_SHARE: Final = 0.1  # retries per call
LOOK_S: Final = 1.0  # who waits for a place looks at least so often: a circuit is half open without anybody saying so
RETRY_RESERVE: Final = 10.0  # retries that a quiet judge may always have

_said: Final = Seldom()


class Place:
    """One of a limiter's places. ``busy``: whether the limit was in use when it was taken; ``probe``: the one call that tries
    whether the endpoint works again."""

    __slots__ = ("_held", "busy", "limiter", "probe")

    def __init__(self, limiter: "Limiter", *, busy: bool, probe: bool) -> None:
        self.limiter, self.busy, self.probe = limiter, busy, probe
        self._held = True

    @property
    def held(self) -> bool:
        """Whether it has not been given back."""
        return self._held

    def release(self) -> None:
        """See `Permit.release`."""
        self.limiter._give_back(self)


class Limiter:
    """A `Gate`. Thread-safe.

    Args:
        host: of the endpoint, as it may be shown.
        most: calls at once, at most; what the endpoint takes is found out below that (`Aimd`).
        clock: monotonic seconds.
        sleep: waits until a pause is over.
    """

    def __init__(
        self,
        host: str,
        most: int = MAX_CONCURRENCY,
        *,
        clock: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        self._host = host
        self._clock = clock
        self._sleep = sleep
        self._cond = threading.Condition(threading.Lock())
        self._aimd = Aimd(most)
        self._breaker = Breaker()
        self._pacer = Pacer()
        self._in_flight = 0
        self._blocked = 0  # threads in `place`
        self._paused_until = float("-inf")
        self._probe: Place | None = None
        self._wakers: set[Callable[[], None]] = set()
        self._retries = RETRY_RESERVE

    # --- places --------------------------------------------------------------------------------------------------------

    def enter(self, wake: Callable[[], None]) -> Place | None:
        """See `Gate.enter`."""
        with self._cond:
            paced = self._pacer.may_start(self._clock(), self._in_flight, self._aimd.limit, self._aimd.usual)
            place = self._free(self._blocked) if paced else None
            if place is None:
                self._wakers.add(wake)
            else:
                self._pacer.started()
            return place

    def place(self, deadline: float) -> Place:
        """A place for the caller, which waits for it: the one that its step was started with, else the next.

        Raises:
            JudgeError: kind circuit_open, at once; or rate_limited, when there will be none before ``deadline``.
        """
        mine = carried()
        if isinstance(mine, Place) and mine.held:
            if mine.limiter is self:
                if mine.probe or not self.shut():
                    return mine
                raise self._refusal()
            mine.release()  # the step has gone on to another endpoint; nobody holds one place and waits for another
        wakers: list[Callable[[], None]] = []
        try:
            with self._cond:
                self._blocked += 1
                try:
                    return self._next(deadline)
                finally:
                    self._blocked -= 1
                    wakers = self._to_wake()  # a lane may have been told to wait for this one
        finally:
            self._wake(wakers)

    def _next(self, deadline: float) -> Place:
        # Under the lock, which is given up to wait.
        while True:
            place = self._free(0)
            if place is not None:
                return place
            now = self._clock()
            if self._shut(now):
                raise self._refusal()
            left, pause = deadline - now, self._paused_until - now
            if pause >= left or left <= 0:
                raise JudgeError(
                    RATE_LIMITED,
                    f"not sent: {self._host} would take no more calls in time (limit {self._aimd.limit}, under way "
                    f"{self._in_flight}{f', asks for a pause of {pause:.0f} s' if pause > 0 else ''})",
                )
            if pause > 0:
                self._cond.release()
                try:
                    self._sleep(pause)
                finally:
                    self._cond.acquire()
            else:
                self._cond.wait(min(left, LOOK_S))

    def _free(self, reserved: int) -> Place | None:
        """A new place unless the rest is ``reserved``. Under the lock."""
        now = self._clock()
        if now < self._paused_until:
            return None
        circuit, limit = self._breaker.state(now), self._aimd.limit
        probe = circuit == "half_open"
        if circuit == "open" or (probe and self._probe is not None) or self._in_flight + reserved >= limit:
            return None
        self._in_flight += 1
        made = Place(self, busy=2 * self._in_flight >= limit, probe=probe)
        if probe:
            self._probe = made
        return made

    def _give_back(self, place: Place) -> None:
        with self._cond:
            if not place._held:
                return
            place._held = False
            self._in_flight -= 1
            if self._probe is place:
                self._probe = None
            wakers = self._to_wake()
        self._wake(wakers)

    def _to_wake(self, blocked: int = 1) -> list[Callable[[], None]]:
        """Something may be free, or nothing will be. Under the lock; what is returned is called outside of it."""
        self._cond.notify(blocked)
        wakers = list(self._wakers)
        self._wakers.clear()
        return wakers

    @staticmethod
    def _wake(wakers: list[Callable[[], None]]) -> None:
        for wake in wakers:
            wake()

    # --- what became of calls ------------------------------------------------------------------------------------------

    def answered(self, place: Place, model: str, sent: float | None) -> None:
        """A call that was ``sent`` then has come back: the endpoint works. None: with an error that is the call's own, and
        that says nothing of how long a reply takes."""
        with self._cond:
            now = self._clock()
            if sent is not None:
                self._aimd.succeeded(model, now - sent, sent, now, busy=place.busy)
            closed = self._breaker.succeeded(now)
            if closed:
                self._aimd.restart()
            self._retries = min(self._retries + RETRY_SHARE, RETRY_RESERVE)
            wakers = self._to_wake()
        self._wake(wakers)
        if closed:
            log.info("a judge's endpoint works again", host=self._host)

    def refused(self, sent: float) -> None:
        """A call got 429 or 529: there are too many of them."""
        with self._cond:
            self._aimd.refused(sent, self._clock())

    def pause(self, seconds: float) -> None:
        """The endpoint asks all its callers to wait."""
        with self._cond:
            self._paused_until = max(self._paused_until, self._clock() + seconds)

    def failed(self, reason: str, *, at_once: bool = False, for_s: float = 0.0) -> None:
        """A call ended without a reply, its retries included; see `Breaker.failed`."""
        with self._cond:
            opened = self._breaker.failed(self._clock(), reason, at_once=at_once, for_s=for_s)
            left = self._breaker.left(self._clock())
            wakers = self._to_wake(self._blocked) if opened else []
        self._wake(wakers)
        if opened and _said.due(self._host) is not None:
            event = (
                "a judge's endpoint does not work; it is left alone, and its judges' pairs are dropped(circuit_open)"
            )
            log.warning(event, host=self._host, reason=reason, for_s=round(left))

    def may_retry(self) -> bool:
        """Take one retry of the budget: `RETRY_SHARE` of the calls, and no probe's."""
        with self._cond:
            if self._retries < 1.0 or self._breaker.state(self._clock()) != "closed":
                return False
            self._retries -= 1.0
            return True

    # --- how it stands -------------------------------------------------------------------------------------------------

    def shut(self) -> bool:
        """See `Gate.shut`."""
        with self._cond:
            return self._shut(self._clock())

    def _shut(self, now: float) -> bool:
        circuit = self._breaker.state(now)
        return circuit == "open" or (circuit == "half_open" and self._probe is not None)

    def _refusal(self) -> JudgeError:
        left, reason = self._breaker.left(self._clock()), self._breaker.reason
        when = f"again in {left:.0f} s" if left else "when the one call that tries it has come back"
        return JudgeError(CIRCUIT_OPEN, f"not sent: {self._host} does not work ({reason}); {when}")

    def state(self) -> GateState:
        """See `Gate.state`."""
        with self._cond:
            now = self._clock()
            return GateState(
                self._host,
                self._aimd.limit,
                self._in_flight,
                self._breaker.state(now),
                max(0.0, self._paused_until - now),
            )

    def at_most(self, most: int) -> None:
        """Keep below another bound as well."""
        with self._cond:
            self._aimd.at_most(most)
