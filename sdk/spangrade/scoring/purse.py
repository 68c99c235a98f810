"""A judge's money: hard ceilings per hour and day, kept by reserving the most that a call can cost before it is made.

What is kept is shared: by the processes of a host in SQLite, by those of a fleet in Redis. A ceiling is never passed: what a
call may cost at most is reserved before it, and what it did cost takes its place after it. The reservation of a process that
died expires. Hours and days are UTC's. Amounts are whole billionths of a dollar, so that nothing is lost in adding.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final, Protocol

from spangrade._log import once
from spangrade._threads import ProcessLock
from spangrade.scoring.clock import Clock

UNIT: Final = 1_000_000_000  # of a dollar
SECONDS: Final[Mapping[str, int]] = {"usd_per_hour": 3_600, "usd_per_day": 86_400}
GRACE_S: Final = 30.0  # that a reservation outlives the time of its call


@dataclass(frozen=True, slots=True)
class Ceiling:
    """One ceiling in its current window: ``kind`` is ``usd_per_hour`` or ``usd_per_day``; amounts in `UNIT`."""

    kind: str
    limit: int
    start: int  # seconds since the epoch


@dataclass(frozen=True, slots=True)
class Held:
    """What of a ceiling is gone, in `UNIT`."""

    spent: int = 0
    reserved: int = 0


class PurseStore(Protocol):
    """Where money is kept. Every method may raise when the store is away; nothing is spent then."""

    def reserve(self, key: str, ceilings: Sequence[Ceiling], amount: int, now: float, expires: float) -> str | None:
        """Hold ``amount`` under every ceiling, or under none of them: None when one would be passed."""

    def settle(self, key: str, ceilings: Sequence[Ceiling], reservation: str, spent: int, now: float) -> None:
        """Put what was spent in the place of what was reserved, in the windows in which that was."""

    def held(self, key: str, ceilings: Sequence[Ceiling], now: float) -> list[Held]:
        """What is gone of each ceiling now."""


@dataclass(frozen=True, slots=True)
class State:
    """One ceiling as people want to see it, in US dollars."""

    kind: str
    limit: float
    spent: float
    reserved: float

    @property
    def left(self) -> float:
        """What may still be reserved."""
        return max(0.0, self.limit - self.spent - self.reserved)


@dataclass(frozen=True, slots=True)
class Reservation:
    """Money that is held for one call."""

    id: str
    ceilings: tuple[Ceiling, ...]
    amount: int


class Purse:
    """The ceilings of one judge. ``key``: its name, under which processes share them. ``limits``: US dollars by
    ``usd_per_hour`` and ``usd_per_day``."""

    def __init__(self, key: str, limits: Mapping[str, float], store: PurseStore, clock: Clock) -> None:
        self.key = key
        self._limits = {kind: math.floor(limit * UNIT) for kind, limit in limits.items()}
        self._store = store
        self._clock = clock

    def reserve(self, most: float, seconds: float) -> Reservation | None:
        """Hold the most that a call of up to ``seconds`` can cost; None when a ceiling would be passed, or when the store
        is away: then nobody knows what is left."""
        now = self._clock.time_ns() / 1e9
        ceilings = self._ceilings(now)
        amount = math.ceil(most * UNIT)
        try:
            found = self._store.reserve(self.key, ceilings, amount, now, now + seconds + GRACE_S)
        except Exception as fault:  # noqa: BLE001 - whatever the store's library raises
            self._away(fault)
            return None
        return None if found is None else Reservation(found, ceilings, amount)

    def settle(self, reservation: Reservation, spent: float | None) -> None:
        """What the call did cost; None where nobody knows: then it was the most. When the store is away the reservation
        stays until it expires."""
        self.settle_all([reservation], spent)

    def settle_all(self, reservations: Sequence[Reservation], spent: float | None) -> None:
        """The same of a call for which more had to be held: each takes as much of it as it holds, so that no window gets more
        than was reserved in it."""
        left = sum(one.amount for one in reservations) if spent is None else math.ceil(spent * UNIT)
        for n, one in enumerate(reservations, 1):
            amount = left if n == len(reservations) else min(left, one.amount)
            left -= amount
            try:
                self._store.settle(self.key, one.ceilings, one.id, amount, self._clock.time_ns() / 1e9)
            except Exception as fault:  # noqa: BLE001 - see above
                self._away(fault)

    def state(self) -> list[State]:
        """Every ceiling now; empty when the store is away."""
        now = self._clock.time_ns() / 1e9
        ceilings = self._ceilings(now)
        try:
            held = self._store.held(self.key, ceilings, now)
        except Exception as fault:  # noqa: BLE001 - see above
            self._away(fault)
            return []
        return [
            State(ceiling.kind, ceiling.limit / UNIT, one.spent / UNIT, one.reserved / UNIT)
            for ceiling, one in zip(ceilings, held, strict=True)
        ]

    def _ceilings(self, now: float) -> tuple[Ceiling, ...]:
        return tuple(
            Ceiling(kind, limit, int(now // SECONDS[kind]) * SECONDS[kind]) for kind, limit in self._limits.items()
        )

    def _away(self, fault: Exception) -> None:
        once(
            f"purse:{type(fault).__name__}",
            "the store of judges' budgets cannot be used; judges with a budget in money are not asked",
            error=type(fault).__name__,
        )


class MemoryPurses:
    """A store of this process alone."""

    def __init__(self) -> None:
        self._lock = ProcessLock()
        self._spent: dict[tuple[str, str, int], int] = {}
        self._reserved: dict[str, tuple[str, tuple[Ceiling, ...], int, float]] = {}
        self._next = 0

    def reserve(self, key: str, ceilings: Sequence[Ceiling], amount: int, now: float, expires: float) -> str | None:
        """See `PurseStore`."""
        with self._lock:
            for ceiling, one in zip(ceilings, self._held(key, ceilings, now), strict=True):
                if one.spent + one.reserved + amount > ceiling.limit:
                    return None
            self._next += 1
            self._reserved[str(self._next)] = (key, tuple(ceilings), amount, expires)
            return str(self._next)

    def settle(self, key: str, ceilings: Sequence[Ceiling], reservation: str, spent: int, now: float) -> None:
        """See `PurseStore`."""
        with self._lock:
            self._reserved.pop(reservation, None)
            for ceiling in ceilings:
                place = (key, ceiling.kind, ceiling.start)
                self._spent[place] = self._spent.get(place, 0) + spent
            for place in [place for place in self._spent if place[2] < now - 3 * 86_400]:
                del self._spent[place]

    def held(self, key: str, ceilings: Sequence[Ceiling], now: float) -> list[Held]:
        """See `PurseStore`."""
        with self._lock:
            return self._held(key, ceilings, now)

    def _held(self, key: str, ceilings: Sequence[Ceiling], now: float) -> list[Held]:
        for gone in [id_ for id_, (_, _, _, expires) in self._reserved.items() if expires <= now]:
            del self._reserved[gone]
        mine = [(of, amount) for whose, of, amount, _ in self._reserved.values() if whose == key]
        return [
            Held(
                self._spent.get((key, ceiling.kind, ceiling.start), 0),
                sum(
                    amount
                    for of, amount in mine
                    if any(o.kind == ceiling.kind and o.start == ceiling.start for o in of)
                ),
            )
            for ceiling in ceilings
        ]
