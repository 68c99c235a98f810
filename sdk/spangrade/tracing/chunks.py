"""What a stream gives: bounded in items and bytes, and copied, since streams reuse their objects."""

from typing import Any, Final

from spangrade import _guard
from spangrade._values import CUT_ITEMS, MAX_BYTES, Walk
from spangrade.tracing import capture
from spangrade.tracing.call import TracedCall
from spangrade.tracing.chat import Joined
from spangrade.tracing.open_streams import ended, opened

MAX_CHUNKS: Final = 100_000
MAX_CHARS: Final = 1_048_576


class Chunks:
    """A call's output while it comes: the joined text when all of it is text, or chunks of a chat; else the list; of a
    retriever or reranker each chunk is read as documents. The call ends with `finish`.

    Generators append text to `items` themselves while it fits in ``room`` characters and ``left`` items, which they count;
    everything else they give to `add`. ``call``: whose output it is; ``begun``:
    whether somebody has asked for a first chunk.
    """

    __slots__ = (
        "__weakref__", "_chat", "_copied", "_cut", "_documents", "_dropped", "_on", "_text", "_walk", "begun", "call", "items",
        "left", "room",
    )  # fmt: skip

    def __init__(self, call: TracedCall, *, begun: bool = True) -> None:
        self.call = call
        self.begun = begun
        self._on = call.span.is_recording() and not call.output_set
        self._documents = capture.gives_documents(call.kind)
        self._text = not self._documents
        self.items: list[Any] = []
        self.left = MAX_CHUNKS if self._on and self._text else 0
        self.room = MAX_CHARS
        self._cut = 0  # characters
        self._dropped = 0  # items
        self._walk: Walk | None = None
        self._chat: Joined | None = None  # as long as all that comes is of a chat
        self._copied = 0  # items that are no text
        if call.span.is_recording():
            opened(self)

    def take(self, item: Any) -> None:
        """One chunk, counted here."""
        if type(item) is str and self.left and (rest := self.room - len(item)) >= 0:
            self.room = rest
            self.left -= 1
            self.items.append(item)
        else:
            self.room, self.left = self.add(item, self.room, self.left)

    def add(self, item: Any, room: int, left: int) -> tuple[int, int]:
        """One chunk that does not fit, or is no text; what is left of the bounds."""
        if self._on:
            try:
                return self._add(item, room, left)
            except RecursionError:  # the application's stack is nearly used up: its reader has the item all the same
                pass
            except Exception as fault:  # noqa: BLE001 - a fault of ours
                self._on = False
                _guard.swallowed("stream.chunk", fault)
        return room, left

    def _add(self, item: Any, room: int, left: int) -> tuple[int, int]:
        if type(item) is str and not self._documents:
            if room > 0 and left > 0:
                self.items.append(item[:room])
                self._cut -= room
            self._cut += len(item)
            return 0, left
        self._text = False
        if self._walk is None:
            self._walk = Walk(MAX_BYTES, captured=True)
            if not self.items and not self._documents:
                self._chat = Joined()
        if self._chat is not None and (len(self.items) != self._copied or not self._chat.hear(item)):
            self._chat = None
        documents = capture.documents_of(item) if self._documents and not self._walk.spent else None
        for one in [item] if documents is None else documents:
            if self._walk.spent:
                self._dropped += 1
            else:
                self.items += self._walk.items((one,), 1, 1)
                self._copied += 1
        return room, left

    def finish(self, how: str, result: Any = None) -> None:
        """The stream is over: ``how`` (complete, closed, cancelled, error, unconsumed), with the ``result`` that it
        returned. Only the first word counts: the end of the process may have come before the end of the stream."""
        ended(self)
        if self.call.ended:
            return
        value = None
        try:
            value = self.value
        except Exception as fault:  # noqa: BLE001 - a fault of ours
            _guard.swallowed("stream.finish", fault)
        self.call.done(result if value is None else value, how)

    def leave(self) -> None:
        """Nobody reads on."""
        self.finish("closed" if self.begun else "unconsumed")

    def __del__(self) -> None:
        try:
            self.leave()  # Python runs no `finally` of an async generator whose loop was closed before it
        except RecursionError:  # nothing can be called here
            pass

    @property
    def value(self) -> Any:
        """Joined text, what the chunks of a chat say, a list of items, or None when nothing came."""
        if not self.items:
            return None
        if self._text:
            text = "".join(self.items)
            return f"{text}…[{self._cut} characters cut]…" if self._cut else text
        if self._documents:
            return capture.note_cut(self.items, len(self.items) + self._dropped)
        if self._chat is not None and len(self.items) == self._copied and not self._cut:
            said = self._chat.value(thoughts=self.call.kind == "llm")
            if said is not None:
                return said
        return [*self.items, CUT_ITEMS] if self._dropped else self.items
