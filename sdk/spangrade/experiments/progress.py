"""The progress bar: on standard error, where a person looks at it, and only where tqdm is installed."""

import sys
from types import TracebackType
from typing import Any


class Progress:
    """Counts runs. ``wanted``: True, False, or None for only where standard error is a terminal."""

    def __init__(self, title: str, total: int, wanted: bool | None) -> None:
        self._title, self._total = title, total
        self._wanted = _is_terminal() if wanted is None else wanted
        self._bar: Any = None
        self._failed = 0

    def __enter__(self) -> "Progress":
        if self._wanted:
            try:
                from tqdm import tqdm
            except ImportError:
                return self
            self._bar = tqdm(total=self._total, desc=self._title, unit="run", file=sys.stderr, dynamic_ncols=True)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, fault: BaseException | None, traceback: TracebackType | None
    ) -> None:
        if self._bar is not None:
            self._bar.close()

    def advance(self, *, failed: bool) -> None:
        """One run is done."""
        self._failed += failed
        if self._bar is not None:
            if failed:
                self._bar.set_postfix(failed=self._failed, refresh=False)
            self._bar.update()


def _is_terminal() -> bool:
    stream = sys.stderr  # None under pythonw; closed in some hosts
    try:
        return stream is not None and stream.isatty()
    except ValueError:
        return False
