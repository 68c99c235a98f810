"""The SDK's OTLP exporters log a line for every batch that fails: of exporters that are ours, at most one of a sort a minute.

An application's own exporters use the same loggers; their lines pass, and so does what is below a warning.
"""

import logging
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Final

from spangrade._log import Seldom

_FAMILY: Final = "opentelemetry.exporter."
_ours: ContextVar[bool] = ContextVar("spangrade_own_exporter", default=False)


class FewLines(logging.Filter):
    """Lets a line of ours pass when no other of its logger and level has within a minute; it then says how many did not."""

    def __init__(self, seldom: Seldom | None = None) -> None:
        super().__init__()
        self._seldom = seldom or Seldom()

    def filter(self, record: logging.LogRecord) -> bool:
        """See `logging.Filter`."""
        if record.levelno < logging.WARNING or not _ours.get():
            return True
        held_back = self._seldom.due(f"{record.name}:{record.levelno}")
        if held_back:
            record.msg, record.args = f"{record.getMessage()} (and {held_back} lines like this since the last)", ()
        return held_back is not None


_filter: Final = FewLines()


def listen() -> None:
    """To be called when an exporter of ours has been made: a filter sees what its very logger is told, not what a child
    of that is, and which loggers there are differs between versions of the SDK."""
    for name in list(logging.root.manager.loggerDict):
        if name.startswith(_FAMILY):
            logging.getLogger(name).addFilter(_filter)  # once, however often it is asked


@contextmanager
def few_lines() -> Iterator[None]:
    """Around what an exporter of ours does."""
    token = _ours.set(True)
    try:
        yield
    finally:
        _ours.reset(token)


def forget_lines() -> None:
    """For tests: whatever was said may be said again."""
    _filter._seldom.forget()
