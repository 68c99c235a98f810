"""What a stream gives: bounded in items and bytes, and copied, since streams reuse their objects."""

from typing import Any, Final

from spangrade import _guard
from spangrade import semconv as s
from spangrade._values import CUT_ITEMS, MAX_BYTES, Walk
from spangrade.tracing import capture
from spangrade.tracing.call import TracedCall

MAX_CHUNKS: Final = 100_000
MAX_CHARS: Final = 1_048_576


class Chunks:
    """A call's output while it comes: the joined text when all of it is text, else the list; of a retriever or reranker
    each chunk is read as documents. The call ends with `finish`."""

    __slots__ = ("_call", "_cut", "_documents", "_dropped", "_items", "_most", "_on", "_room", "_text", "_walk")

    def __init__(self, call: TracedCall) -> None:
        self._call = call
        self._on = call.span.is_recording()
        self._documents = capture.gives_documents(call.kind)
        self._text = not self._documents
        self._items: list[Any] = []
        self._most = MAX_CHUNKS if self._on and self._text else 0
        self._room = MAX_CHARS
        self._cut = 0  # characters
        self._dropped = 0  # items
        self._walk: Walk | None = None

    def add(self, item: Any) -> None:
        """One chunk."""
        if type(item) is str and len(self._items) < self._most:
            room = self._room - len(item)
            if room >= 0:
                self._room = room
                self._items.append(item)
                return
        if self._on:
            try:
                self._add_less(item)
            except Exception as fault:  # noqa: BLE001 - a fault of ours
                self._on = False
                _guard.swallowed("stream.chunk", fault)

    def _add_less(self, item: Any) -> None:
        if type(item) is str and not self._documents:
            if self._room > 0 and len(self._items) < self._most:
                self._items.append(item[: self._room])
                self._cut -= self._room
            self._cut += len(item)
            self._room = 0
            return
        self._text = False
        if self._walk is None:
            self._walk = Walk(MAX_BYTES, captured=True)
        documents = capture.documents_of(item) if self._documents and not self._walk.spent else None
        for one in [item] if documents is None else documents:
            if self._walk.spent:
                self._dropped += 1
            else:
                self._items += self._walk.items((one,), 1, 1)

    def finish(self, how: str, result: Any = None) -> None:
        """The stream is over: ``how`` (complete, closed, cancelled, error), with the ``result`` that it returned."""
        call = self._call
        with _guard.guard("stream.finish"):
            value = self.value
            call.output(result if value is None else value)
            call.span.set_attribute(s.ENDED, how)
        call.end()

    def __del__(self) -> None:
        # Python runs no `finally` of an async generator whose loop was closed before it.
        if not self._call.ended:
            self.finish("closed")

    @property
    def value(self) -> Any:
        """Joined text, a list of items, or None when nothing came."""
        if not self._items:
            return None
        if self._text:
            text = "".join(self._items)
            return f"{text}…[{self._cut} characters cut]…" if self._cut else text
        if self._documents:
            return capture.note_cut(self._items, len(self._items) + self._dropped)
        return [*self._items, CUT_ITEMS] if self._dropped else self._items
