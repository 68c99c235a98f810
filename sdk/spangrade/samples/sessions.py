"""Conversations that go on: their turns, until nothing has come for a while. Time is passed in.

A conversation is what has one ``session.id`` (else ``gen_ai.conversation.id``) within one ``service.namespace``, in however
many traces and processes. State is bounded in conversations, in bytes and in age. What leaves by a bound, or at the end of
the process, is graded as it is, and is partial; so is what goes on after it has been graded.
"""

from collections import OrderedDict
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import Any, Final, Generic, TypeVar

from spangrade._sizes import text_size
from spangrade.model.sample import Sample
from spangrade.samples.bounds import AssemblyBounds
from spangrade.samples.content import is_content_key
from spangrade.samples.conversation import Key, Turn, conversation_sample, key_of, messages_of
from spangrade.samples.reading import Call, Reading
from spangrade.samples.tally import Tally

T = TypeVar("T")

MAX_TURNS: Final = 512
_FLAT: Final = 2_048  # bytes of a turn beside its text
_NAMESPACE: Final = "service.namespace"

SessionKey = tuple[str, str]  # namespace, session id


@dataclass(frozen=True, slots=True)
class DecidedSession(Generic[T]):
    """A conversation to be graded: the call of its last turn, which carries the score by ``handle``."""

    call: Call
    sample: Sample
    handle: T
    partial: bool


@dataclass(slots=True)
class _Session(Generic[T]):
    born: float
    last: float = 0.0
    turns: list[tuple[Turn, T]] = field(default_factory=list)
    known: dict[Key, Any] = field(default_factory=dict)
    bytes: int = 0
    partial: bool = False


class SessionWindow(Generic[T]):
    """Owned by one thread; no lock."""

    def __init__(self, bounds: AssemblyBounds, tally: Tally | None = None) -> None:
        self._bounds = bounds
        self._open: OrderedDict[SessionKey, _Session[T]] = OrderedDict()  # the one that was quiet for longest first
        self._graded: OrderedDict[SessionKey, None] = OrderedDict()
        self._bytes = 0
        self._out: list[DecidedSession[T]] = []  # by a bound; given by the next `due`
        self._look = float("inf")  # when one may be due, at the earliest
        self.tally = tally or Tally()

    def __len__(self) -> int:
        return len(self._open)

    @property
    def bytes(self) -> int:
        """Text of all that go on, about."""
        return self._bytes

    def add(self, call: Call, sample: Sample, handle: T, now: float, *, partial: bool) -> bool:
        """A turn. False, and nothing is kept, when it belongs to no conversation."""
        session_id = sample.context.get("session_id")
        if not isinstance(session_id, str) or not session_id:
            return False
        key = (str(call.span.resource.get(_NAMESPACE) or ""), session_id)
        session = self._open.pop(key, None) or self._begin(key, now)
        self._open[key] = session
        session.last = now
        self._look = min(self._look, now + self._bounds.session_idle, session.born + self._bounds.session_max_age)
        self._keep(session, call, sample, handle, partial=partial)
        while self._open and (over := self._over()):
            oldest = next(iter(self._open))
            self._decide(oldest, over)
        return True

    def due(self, now: float) -> Iterator[DecidedSession[T]]:
        """Those that have been quiet for long enough, or have gone on for too long."""
        if now >= self._look:
            idle, age = self._bounds.session_idle, self._bounds.session_max_age
            for key, session in list(self._open.items()):
                if session.last + idle <= now:
                    self._decide(key, None)
                elif session.born + age <= now:
                    self._decide(key, "max_age")
            self._look = min(
                (min(one.last + idle, one.born + age) for one in self._open.values()), default=float("inf")
            )
        found, self._out = self._out, []
        yield from found

    def next_due(self) -> float | None:
        """When `due` should be called next."""
        return 0.0 if self._out else self._look if self._open else None

    def decide_all(self) -> Iterator[DecidedSession[T]]:
        """Those that still go on, as they are: the end of the process."""
        for key in list(self._open):
            self._decide(key, "shutdown")
        yield from self.due(float("-inf"))

    # --- inside -------------------------------------------------------------------------------------------------------

    def _begin(self, key: SessionKey, now: float) -> _Session[T]:
        session: _Session[T] = _Session(now)
        if key in self._graded:
            self.tally.late["turn"] += 1
            session.partial = True  # what came before has been forgotten
        return session

    def _keep(self, session: _Session[T], call: Call, sample: Sample, handle: T, *, partial: bool) -> None:
        size = _FLAT + text_size(sample.documents)
        size += sum(
            text_size(said) for said in (sample.input, sample.output) if type(said) is not str
        )  # which messages have
        keys = []
        for message in messages_of(sample):
            key = key_of(message)
            keys.append(key)
            if key not in session.known:
                session.known[key] = message
                size += 64 + text_size(message)
        beside = {name: value for name, value in sample.context.items() if name not in _HEAVY}
        session.turns.append((Turn(_light(call), replace(sample, context=beside), tuple(keys), partial), handle))
        session.bytes += size
        self._bytes += size
        if len(session.turns) > MAX_TURNS:
            session.turns.remove(min(session.turns, key=lambda held: held[0].order))
            session.partial = True

    def _over(self) -> str | None:
        if len(self._open) > self._bounds.max_sessions:
            return "max_sessions"
        return "max_session_bytes" if self._bytes > self._bounds.max_session_bytes else None

    def _decide(self, key: SessionKey, reason: str | None) -> None:
        session = self._open.pop(key)
        self._bytes -= session.bytes
        self._graded[key] = None
        self._graded.move_to_end(key)
        if len(self._graded) > 4 * self._bounds.max_sessions:
            self._graded.popitem(last=False)
        partial = session.partial or reason is not None
        call, sample = conversation_sample(key[1], [turn for turn, _ in session.turns], session.known, partial=partial)
        partial = "assembly" in sample.context
        if partial:
            self.tally.conversations[reason or "parts"] += 1
        handle = next(held for turn, held in session.turns if turn.call is call)
        self._out.append(DecidedSession(call, sample, handle, partial))


_HEAVY: Final = frozenset({"messages", "output_messages", "tools", "retrievals", "tool_calls", "reasoning"})


def _light(call: Call) -> Call:
    """A call without its content, which may be the span of a whole conversation."""
    attributes = {key: value for key, value in call.span.attributes.items() if not is_content_key(key)}
    reading = Reading(call.reading.dialect, call.reading.kind, response_id=call.reading.response_id)
    return Call(replace(call.span, attributes=attributes, events=()), reading, call.evaluator)
