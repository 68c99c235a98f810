"""Trace and span ids of a generator of our own: ``random.seed(42)`` in the application must not repeat them, and tracing
must not shift the application's random numbers."""

import os
import random
from typing import Final

from opentelemetry.sdk.trace.id_generator import IdGenerator

_SPAN_BITS: Final = 2**64 - 1


class OwnIdGenerator(IdGenerator):
    """128 and 64 random bits, never zero, seeded by the operating system, and again in every forked process.

    Not `os.urandom` for each id: that gives the interpreter lock away in the middle of the application's call (measured:
    100 times dearer beside a busy thread).
    """

    def __init__(self) -> None:
        self._pid = 0
        self._random = random.Random()

    def _bits(self, count: int) -> int:
        if os.getpid() != self._pid:  # also finds a fork that no hook was told of
            self._random = random.Random()
            self._pid = os.getpid()
        while not (found := self._random.getrandbits(count)):
            pass
        return found

    def generate_trace_id(self) -> int:
        """A trace id."""
        return self._bits(128)

    def generate_span_id(self) -> int:
        """A span id."""
        return self._bits(64)

    def generate_both(self) -> tuple[int, int]:
        """A trace id and a span id."""
        if os.getpid() != self._pid:
            self._bits(1)
        bits = self._random.getrandbits(192)
        return bits >> 64 or self._bits(128), bits & _SPAN_BITS or self._bits(64)

    def is_trace_id_random(self) -> bool:
        """All bits are random (W3C trace context, level 2)."""
        return True
