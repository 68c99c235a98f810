"""LangChain's values, as tracers write its runs down: messages, prompts and documents as its serialiser makes them
(``{"lc": 1, "type": "constructor", "id": [..., "HumanMessage"], "kwargs": {...}}``) → question, answer, documents.

Source: langchain_core.load.serializable. What is not known stays as it is.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from spangrade.model.documents import read_documents
from spangrade.samples.jsontext import Items
from spangrade.samples.messages import Turn, last_user_text, outcome
from spangrade.samples.turns import read_turns

#: Names under which chains are usually asked, and usually answer, in the order in which they are believed.
ASKED: Final = ("input", "question", "query")
ANSWERED: Final = ("output", "answer", "result", "response", "output_text", "text")
#: What a message without a role may call itself: any other ``type`` is an object of the application's own.
_TYPES: Final = ("human", "ai", "system", "tool", "function", "chat", "HumanMessageChunk", "AIMessageChunk")
_MESSAGES: Final = ("messages", "message", "generations")


@dataclass(slots=True)
class Said:
    """One side of a run: ``value`` is its text where it is known, else the value as it was; ``turns`` where it was messages."""

    value: Any
    turns: list[Turn]


def read_asked(value: Any) -> Said:
    """What a run was given: the last user turn of its messages, or the question among its named inputs."""
    turns = _turns(value, "user")
    return Said(last_user_text(turns), turns) if turns else Said(_named(value, ASKED), [])


def read_answered(value: Any) -> Said:
    """What a run gave back: the last assistant turn of its messages (a tool's run: the one that it is), or the answer among
    its named outputs."""
    turns = _turns(value, "assistant")
    if len(turns) == 1:
        return Said(turns[0].text, turns)
    return Said(outcome(turns).text, turns) if turns else Said(_named(value, ANSWERED), [])


def documents_of(value: Any) -> tuple[dict[str, Any], ...] | None:
    """The documents that are an output or stand under a name of it; None where there are none."""
    held = [value, *value.values()] if isinstance(value, Mapping) else [value]
    for one in held:
        if isinstance(one, (list, tuple)) and one and all(_class(item) == "Document" for item in one):
            return read_documents([item["kwargs"] for item in one])
    return None


def _class(value: Any) -> str | None:
    """The name of a serialised object's class."""
    if not isinstance(value, Mapping) or not isinstance(value.get("kwargs"), Mapping):
        return None
    path = value.get("id")
    return str(path[-1]) if value.get("lc") == 1 and isinstance(path, (list, tuple)) and path else None


def _is_message(value: Any) -> bool:
    named = _class(value)
    if named is not None:
        return named.endswith(("Message", "MessageChunk"))
    if not isinstance(value, Mapping) or not ("role" in value or value.get("type") in _TYPES):
        return False
    held = value.get("data")  # messages_to_dict
    return "content" in value or (isinstance(held, Mapping) and "content" in held)


def _turns(value: Any, role: str) -> list[Turn]:
    named = _class(value)
    if named is not None and not _is_message(value):  # a prompt that was filled in, a generation, a command
        value = value["kwargs"]
    if isinstance(value, Mapping) and not _is_message(value):
        value = next((value[key] for key in _MESSAGES if value.get(key)), None)
    items = [value] if _is_message(value) else value
    while isinstance(items, (list, tuple)) and len(items) == 1 and isinstance(items[0], (list, tuple)):
        items = items[0]  # one list a prompt
    if not isinstance(items, (list, tuple)) or not items or not all(map(_is_message, items)):
        return []
    return read_turns(Items(list(items)), role)


def _named(value: Any, names: tuple[str, ...]) -> Any:
    if isinstance(value, Mapping):
        found = next((value[key] for key in names if isinstance(value.get(key), str)), None)
        if found is not None:
            return found
        if len(value) == 1 and _class(value) is None:
            return next(iter(value.values()))
    return value
