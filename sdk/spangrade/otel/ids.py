"""Trace and span ids from the operating system: ``random.seed(42)`` in the application must not repeat them, and tracing
must not shift the application's random numbers."""

import os

from opentelemetry.sdk.trace.id_generator import IdGenerator


class OsIdGenerator(IdGenerator):
    """128 and 64 random bits, never zero."""

    def generate_trace_id(self) -> int:
        """A trace id."""
        while not (found := int.from_bytes(os.urandom(16), "big")):
            pass
        return found

    def generate_span_id(self) -> int:
        """A span id."""
        while not (found := int.from_bytes(os.urandom(8), "big")):
            pass
        return found

    def is_trace_id_random(self) -> bool:
        """All bits are random (W3C trace context, level 2)."""
        return True
