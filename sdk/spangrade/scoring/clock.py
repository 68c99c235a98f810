"""Time as the pipeline reads it, so that tests can pass it in."""

import time
from typing import Protocol


class Clock(Protocol):
    """``monotonic()`` in seconds for waiting; ``time_ns()`` in nanoseconds since the epoch for what is sent."""

    def monotonic(self) -> float: ...

    def time_ns(self) -> int: ...


class SystemClock:
    """The machine's clocks."""

    monotonic = staticmethod(time.monotonic)
    time_ns = staticmethod(time.time_ns)
