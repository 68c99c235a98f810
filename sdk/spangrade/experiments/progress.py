"""The progress bar: on standard error, where a person looks at it or somebody asked for it."""

import sys
from types import TracebackType
from typing import Any

from spangrade.errors import ConfigError


class Progress:
    """Counts runs.

    Args:
        title: stands before it.
        total: how many runs there will be.
        wanted: True, False, or None: where standard error is a terminal and tqdm is installed.
    """

    def __init__(self, title: str, total: int, wanted: bool | None) -> None:
        self._title, self._total, self._asked = title, total, wanted is True
        self._wanted = _is_terminal() if wanted is None else wanted
        self._bar: Any = None
        self._failed = 0

    def __enter__(self) -> "Progress":
        if self._wanted:
            try:
                from tqdm import tqdm
            except ImportError:
                if self._asked:
                    raise ConfigError(
                        'progress=True needs tqdm: pip install "spangrade[experiments]", or leave progress out'
                    ) from None
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
