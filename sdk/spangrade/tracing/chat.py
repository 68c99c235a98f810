"""What the chunks of a chat client's stream say together: the answer's text, the tool calls, the thoughts.

Who streams a model's answer sees chunk objects of some client, in which a word or two stand among ids and counters. Kept as
they are they fill the bounds after some hundred words, and no reader finds the text. So beside the chunks themselves what
they say is kept, as long as every one of them is of a known form (see `chat_dialects`).
"""

import io
from collections.abc import Callable
from typing import Any, Final

from spangrade._classes import Fields
from spangrade._values import captured, dumps
from spangrade.tracing.chat_dialects import hears

MAX_CHARS: Final = 1_048_576  # of one stream's text, thoughts and arguments together
MAX_CALLS: Final = 256
MAX_CHOICES: Final = 16
_MAX_ARGUMENTS: Final = 65_536  # bytes, of a call that comes whole and not as text
_Look = Callable[[Any, str], Any]
_SCALARS: Final = (str, int, float, bool, bytes, tuple, type(None))


def _look(kind: type) -> _Look:
    if issubclass(kind, dict):
        return dict.get
    return Fields(kind).one if kind not in (*_SCALARS, list) else lambda _holder, _name: None


class _Call:
    __slots__ = ("arguments", "choice", "id", "name")

    def __init__(self, choice: int) -> None:
        self.choice = choice
        self.id = self.name = ""
        self.arguments = io.StringIO()


class Joined:
    """The chunks so far, put together. A dialect calls `get` to look into a chunk, and `say`, `think` and `call`."""

    __slots__ = ("_calls", "_cut", "_fields", "_repeated", "_room", "_texts", "_thoughts")

    def __init__(self) -> None:
        self._texts: dict[int, io.StringIO] = {}  # by choice
        self._thoughts = io.StringIO()
        self._repeated = io.StringIO()
        self._calls: dict[Any, _Call] = {}
        self._room = MAX_CHARS
        self._cut = 0  # characters
        self._fields: dict[int, tuple[type, _Look]] = {}  # by id, as in `_walk`

    def hear(self, chunk: Any) -> bool:
        """Take one chunk; False if it is of no known form."""
        return type(chunk) not in _SCALARS and hears(self, chunk)

    def get(self, holder: Any, name: str) -> Any:
        """What a dict, or an object, holds under a name; None where it holds nothing. No code of its class is run."""
        kind = type(holder)
        if kind is dict:
            return holder.get(name)
        known = self._fields.get(id(kind))
        if known is None:
            known = self._fields[id(kind)] = (kind, _look(kind))
        return known[1](holder, name)

    def say(self, text: Any, choice: int = 0) -> None:
        """More of the answer."""
        if type(text) is not str:
            return
        said = self._texts.get(choice)
        if said is None:
            if len(self._texts) >= MAX_CHOICES:
                return
            said = self._texts[choice] = io.StringIO()
        self._cut += self._put(said, text)

    def repeat(self, text: Any) -> None:
        """More of it, of an event beside the one that says it first; who streams only the former still hears it."""
        if type(text) is str and self._repeated.tell() + len(text) <= MAX_CHARS:
            self._repeated.write(text)

    def think(self, text: Any) -> None:
        """More of what came before it."""
        if type(text) is str:
            self._put(self._thoughts, text)

    def call(
        self, key: Any = None, *, name: Any = None, call_id: Any = None, arguments: Any = None, choice: int = 0
    ) -> None:
        """A tool call, or more of one. ``key``: which one of the choice's; None: it comes whole, and is one more."""
        place = (choice, len(self._calls) if key is None else key, key is None)
        call = self._calls.get(place)
        if call is None:
            if len(self._calls) >= MAX_CALLS:
                return
            call = self._calls[place] = _Call(choice)
        if type(name) is str and len(call.name) < MAX_CALLS:
            call.name += name  # a provider may send that in pieces as well
        if type(call_id) is str:
            call.id = call_id
        if arguments is not None:
            text = arguments if type(arguments) is str else dumps(captured(arguments, _MAX_ARGUMENTS))
            self._put(call.arguments, text)

    def _put(self, into: io.StringIO, text: str) -> int:
        """Write what fits; returns how many characters did not."""
        kept = text[: self._room]
        into.write(kept)
        self._room -= len(kept)
        return len(text) - len(kept)

    def value(self, *, thoughts: bool) -> Any:
        """The text; where there are tool calls a chat message, and where there are several choices a list of these. None
        when nothing was said. ``thoughts``: with these, as ``reasoning_content`` of a message."""
        if not self._texts and self._repeated.tell():
            self._texts[0] = self._repeated
        choices = sorted({*self._texts, *(call.choice for call in self._calls.values())})
        thought = self._thoughts.getvalue() if thoughts else ""
        if thought and not choices:
            choices = [0]
        messages = [self._message(choice) for choice in choices]
        if self._cut and messages:
            messages[-1]["content"] = f"{messages[-1]['content'] or ''}…[{self._cut} characters cut]…"
        if thought:
            messages[0]["reasoning_content"] = thought
        if len(messages) > 1:
            return messages
        if not messages:
            return None
        (message,) = messages
        return message["content"] if set(message) == {"role", "content"} else message

    def _message(self, choice: int) -> dict[str, Any]:
        text = self._texts[choice].getvalue() if choice in self._texts else ""
        calls = [_openai(call) for call in self._calls.values() if call.choice == choice]
        if not calls:
            return {"role": "assistant", "content": text}
        return {"role": "assistant", "content": text or None, "tool_calls": calls}


def _openai(call: _Call) -> dict[str, Any]:
    function = {"name": call.name, "arguments": call.arguments.getvalue()}
    return {"id": call.id, "type": "function", "function": function}
