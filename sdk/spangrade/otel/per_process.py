"""Exporters of our own are made anew in a forked child: two processes must not talk on one connection."""

import os
from collections.abc import Callable, Sequence
from typing import Generic, TypeVar

from opentelemetry.sdk._logs import ReadableLogRecord
from opentelemetry.sdk._logs.export import LogRecordExporter, LogRecordExportResult
from opentelemetry.sdk.trace import ReadableSpan
from opentelemetry.sdk.trace.export import SpanExporter, SpanExportResult

E = TypeVar("E")


class _PerProcess(Generic[E]):
    """What ``make`` makes, once in each process that asks. The parent's stays referenced: nothing is to end it here."""

    def __init__(self, make: Callable[[], E]) -> None:
        self._make = make
        self._made: dict[int, E] = {}  # a plain dict: a lock could be held by a thread that does not exist in a child

    def here(self) -> E:
        pid = os.getpid()
        made = self._made.get(pid)
        return self._made.setdefault(pid, self._make()) if made is None else made

    def if_made(self) -> E | None:
        return self._made.get(os.getpid())


class ProcessSpanExporter(SpanExporter):
    """A span exporter by ``make``, which raises at once what is wrong with it."""

    def __init__(self, make: Callable[[], SpanExporter]) -> None:
        self._exporters = _PerProcess(make)
        self._exporters.here()

    @property
    def inner(self) -> SpanExporter:
        """This process's exporter."""
        return self._exporters.here()

    def export(self, spans: Sequence[ReadableSpan]) -> SpanExportResult:
        """By this process's exporter."""
        return self._exporters.here().export(spans)

    def shutdown(self) -> None:
        """End this process's exporter, if it has one."""
        made = self._exporters.if_made()
        if made is not None:
            made.shutdown()

    def force_flush(self, timeout_millis: int = 30_000) -> bool:
        """As this process's exporter says."""
        made = self._exporters.if_made()
        return made is None or made.force_flush(timeout_millis)


class ProcessLogExporter(LogRecordExporter):
    """The same for log records."""

    def __init__(self, make: Callable[[], LogRecordExporter]) -> None:
        self._exporters = _PerProcess(make)
        self._exporters.here()

    def export(self, batch: Sequence[ReadableLogRecord]) -> LogRecordExportResult:
        """By this process's exporter."""
        return self._exporters.here().export(batch)

    def shutdown(self) -> None:
        """End this process's exporter, if it has one."""
        made = self._exporters.if_made()
        if made is not None:
            made.shutdown()  # type: ignore[no-untyped-call]

    def force_flush(self, timeout_millis: int = 30_000) -> bool:
        """As this process's exporter says."""
        made = self._exporters.if_made()
        return made is None or bool(made.force_flush(timeout_millis))
