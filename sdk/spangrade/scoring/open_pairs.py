"""Pairs that have not ended, by generation: a flush waits for those of samples offered before it, and for no later ones."""

import threading
import time


class OpenPairs:
    """``epoch`` numbers the times between two flushes. Pairs count by epoch, and by kind: metrics, and judges."""

    def __init__(self) -> None:
        self._cond = threading.Condition()
        self._epoch = 0
        self._open: dict[int, dict[bool, int]] = {}

    def began(self, metrics: int, judges: int) -> int:
        """So many pairs more; returns the epoch that they belong to."""
        with self._cond:
            open_now = self._open.setdefault(self._epoch, {False: 0, True: 0})
            open_now[False] += metrics
            open_now[True] += judges
            return self._epoch

    def ended(self, epoch: int, *, judge: bool) -> None:
        """One less."""
        with self._cond:
            left = self._open[epoch]
            left[judge] -= 1
            if not left[judge]:
                if not any(left.values()):
                    del self._open[epoch]
                self._cond.notify_all()

    def next_epoch(self) -> int:
        """A flush: what begins from here on is of the next epoch. Returns the one that is over."""
        with self._cond:
            self._epoch += 1
            return self._epoch - 1

    def wait(self, epoch: int, *, judges: bool, until: float) -> bool:
        """Wait until all pairs of ``epoch`` and before have ended (of judges, only if asked); False at ``until``, in
        seconds of the machine's clock: a person or an exit waits here, whatever clock scoring has."""

        def quiet() -> bool:
            return not any(
                left[False] or (judges and left[True]) for number, left in self._open.items() if number <= epoch
            )

        with self._cond:
            while not quiet():
                left = until - time.monotonic()
                if left <= 0:
                    return False
                self._cond.wait(left)
        return True
