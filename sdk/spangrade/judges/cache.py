"""What a judge said of the same prompt before. Off by default; see `LlmJudge.with_cache`."""

import time
from collections import OrderedDict
from collections.abc import Callable, Hashable, Mapping
from dataclasses import replace
from typing import Final

from spangrade import semconv
from spangrade._threads import ProcessLock
from spangrade.judges.grading import Grading
from spangrade.model.sample import FrozenDict

DEFAULT_ENTRIES: Final = 1_000
DEFAULT_MAX_AGE_S: Final = 86_400.0
_OF_A_CALL: Final = (
    semconv.JUDGE_INPUT_TOKENS,
    semconv.JUDGE_OUTPUT_TOKENS,
    semconv.JUDGE_COST,
    semconv.JUDGE_COST_AT_MOST,
    semconv.JUDGE_REPAIRS,
)


class Cache:
    """Gradings by prompt, the least recently used ones out first. Threads share it; errors are not kept.

    Args:
        max_entries: an entry is a score and a reasoning of at most 8,192 characters.
        max_age: seconds.
        clock: monotonic seconds.
    """

    def __init__(
        self, max_entries: int, max_age: float = DEFAULT_MAX_AGE_S, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._max_entries = max_entries
        self._max_age = max_age
        self._clock = clock
        self._lock = ProcessLock()
        self._entries: OrderedDict[Hashable, tuple[float, Grading]] = OrderedDict()

    def get(self, key: Hashable) -> Grading | None:
        """What was said, marked as cached and without what that call has cost; None where nothing is known."""
        with self._lock:
            found = self._entries.get(key)
            if found is None:
                return None
            if found[0] < self._clock() - self._max_age:
                del self._entries[key]
                return None
            self._entries.move_to_end(key)
        grading = found[1]
        details = {name: value for name, value in grading.details.items() if name not in _OF_A_CALL}
        return replace(grading, details=_frozen({**details, semconv.JUDGE_CACHED: True}))

    def put(self, key: Hashable, grading: Grading) -> None:
        """Keep a grading."""
        with self._lock:
            self._entries[key] = (self._clock(), grading)
            self._entries.move_to_end(key)
            while len(self._entries) > self._max_entries:
                self._entries.popitem(last=False)

    def __len__(self) -> int:
        return len(self._entries)


def _frozen(details: Mapping[str, object]) -> Mapping[str, object]:
    return FrozenDict(details)
