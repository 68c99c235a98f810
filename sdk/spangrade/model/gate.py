"""What keeps an evaluator's calls to one endpoint within what the endpoint takes, as lanes and instruments see it."""

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Final, Literal, Protocol

Circuit = Literal["closed", "half_open", "open"]
CIRCUIT_OPEN: Final = "circuit_open"
RATE_LIMITED: Final = "rate_limited"


@dataclass(frozen=True, slots=True)
class GateState:
    """``host``: of the endpoint, without path or key; ``limit``: calls that may be under way at once; ``paused_s``: seconds
    for which the endpoint has asked to be left alone, from now."""

    host: str
    limit: int
    in_flight: int
    circuit: Circuit
    paused_s: float = 0.0


_WORST: Final[tuple[Circuit, ...]] = ("open", "half_open", "closed")


def by_host(states: Iterable[GateState]) -> list[GateState]:
    """One for each host: the calls of all keys together, and the worst circuit."""
    found: dict[str, GateState] = {}
    for state in states:
        other = found.get(state.host)
        found[state.host] = state if other is None else _together(state, other)
    return list(found.values())


def _together(one: GateState, other: GateState) -> GateState:
    return GateState(
        one.host,
        one.limit + other.limit,
        one.in_flight + other.in_flight,
        min(one.circuit, other.circuit, key=_WORST.index),
        max(one.paused_s, other.paused_s),
    )


class Permit(Protocol):
    """One place at an endpoint, for one call after the other."""

    def release(self) -> None:
        """Give it back. The second time does nothing."""


class Gate(Protocol):
    """The places at one endpoint. All methods may be called from any thread, and none of them blocks."""

    def enter(self, wake: Callable[[], None]) -> Permit | None:
        """A place, if one is free now. If not, ``wake`` is called once, from any thread, when it is worth asking again, except
        where only time has to pass."""

    def shut(self) -> bool:
        """Whether no call is made now, since the endpoint does not work: what waits for it should not."""

    def state(self) -> GateState:
        """How it stands."""


#: The place that the step on this thread was given before it started.
_carried: ContextVar[Permit | None] = ContextVar("spangrade_permit", default=None)


@contextmanager
def carrying(permit: Permit) -> Iterator[None]:
    """What runs inside, on this thread, has this place already."""
    token = _carried.set(permit)
    try:
        yield
    finally:
        _carried.reset(token)


def carried() -> Permit | None:
    """The place that the caller was started with, if any."""
    return _carried.get()
