"""Documents set by hand on calls that are still open, so that a model call below one, which is graded when it ends, has them.

Kept as they stand on the span (JSON), by trace and span id, until that span ends; the oldest go when there are too many.
"""

from typing import Final

MAX_NOTED: Final = 1_024
MAX_CHARS: Final = 32 * 2**20

#: ``(trace id, span id)`` → the attribute's text. Looked at for every span that ends, so it is an empty dict most of the time.
held: Final[dict[tuple[int, int], str]] = {}


def note(ids: tuple[int, int], text: str) -> None:
    """A call was given documents; a second time they replace the first."""
    held.pop(ids, None)
    held[ids] = text
    try:
        while len(held) > MAX_NOTED or sum(map(len, list(held.values()))) > MAX_CHARS:
            held.pop(next(iter(held)), None)
    except (RuntimeError, StopIteration):  # another thread's call has just begun or ended
        return
