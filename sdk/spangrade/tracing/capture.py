"""What a call was given and gave as span attributes: bounded, valid, and never the application's problem.

The ``write_`` functions make attributes of a value. The ``keep_`` functions are for the application's thread: on a span
that is filled later they keep a copy of the value only, as it is now.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, Literal, get_args

from opentelemetry.trace import Span

from spangrade import semconv as s
from spangrade._classes import reads_once
from spangrade._frozen import MAX_TEXT, NotPlain, freeze, thaw
from spangrade._switches import Switch
from spangrade._values import CUT_ITEMS, MAX_BYTES, MAX_NODES, captured, dumps, fit, json_within, to_text
from spangrade.errors import ConfigError
from spangrade.model.documents import CUT, MAX_DOCUMENTS, read_documents
from spangrade.tracing.lazy.span import Attributes, is_lazy, write_one

CallKind = Literal["llm", "retriever", "tool", "agent", "chain", "embedding", "reranker", "guardrail"]
KINDS: Final = get_args(CallKind)
# OpenTelemetry's operation names; a chain has none in the conventions.
_OPERATIONS: Final[Mapping[str, str]] = {
    "llm": "chat",
    "retriever": "retrieval",
    "tool": "execute_tool",
    "agent": "invoke_agent",
    "embedding": "embeddings",
}
#: ``SPANGRADE_SPAN_CONTENT=both``: content is written in both the GenAI and the OpenInference keys.
_both: Final = Switch("SPANGRADE_SPAN_CONTENT", "both")


def check_kind(kind: str) -> str:
    """One of `KINDS`, or `ConfigError`."""
    if kind not in KINDS:
        raise ConfigError(f"trace: kind {kind!r} is not one of {', '.join(KINDS)}")
    return kind


def first_attributes(kind: str, name: str) -> dict[str, Any]:
    """What a span of this kind carries from its start."""
    attributes: dict[str, Any] = {s.OI_KIND: kind.upper()}
    operation = _OPERATIONS.get(kind)
    if operation is not None:
        attributes[s.OPERATION_NAME] = operation
    if kind == "tool":
        attributes[s.TOOL_NAME] = name
    elif kind == "agent":
        attributes[s.AGENT_NAME] = name
    return attributes


def frozen_input(kind: str, value: Any) -> tuple[Any, int]:
    """What a span is to keep of the call's input until somebody reads it, and about how many bytes that takes."""
    if type(value) is str and (size := len(value)) <= MAX_TEXT:
        return value, size
    try:
        return freeze(value)
    except NotPlain:
        return _at_once(write_input, kind, value)


def frozen_output(kind: str, value: Any) -> tuple[Any, int]:
    """The same of its output."""
    if type(value) is str and (size := len(value)) <= MAX_TEXT:
        return value, size
    try:
        return freeze(value)
    except NotPlain:
        return _at_once(write_output, kind, value)


def _at_once(write: Callable[[Any, str, Any], None], kind: str, value: Any) -> tuple[Attributes, int]:
    found = Attributes()
    write(found, kind, value)
    return found, sum(len(text) for text in found.values() if type(text) is str)


class Written:
    """`Recipe` of a lazily filled span."""

    @staticmethod
    def first(kind: str, name: str) -> dict[str, Any]:
        """See `Recipe`."""
        return first_attributes(kind, name)

    @staticmethod
    def write_given(sink: Any, kind: str, frozen: Any) -> None:
        """See `Recipe`."""
        if type(frozen) is Attributes:
            sink.set_attributes(frozen)
        else:
            write_input(sink, kind, thaw(frozen))

    @staticmethod
    def write_gave(sink: Any, kind: str, frozen: Any) -> None:
        """See `Recipe`."""
        if type(frozen) is Attributes:
            sink.set_attributes(frozen)
        else:
            write_output(sink, kind, thaw(frozen))


def keep_input(span: Span, kind: str, value: Any) -> None:
    """Record the call's input, once it runs."""
    if is_lazy(span):
        if value is not None:
            frozen, size = frozen_input(kind, value)
            span.record((Written.write_given, kind, frozen), size)
    elif span.is_recording():
        write_input(span, kind, value)


def keep_output(span: Span, kind: str, value: Any) -> None:
    """Record its output, before it ends."""
    if is_lazy(span):
        if value is not None:
            frozen, size = frozen_output(kind, value)
            span.record((Written.write_gave, kind, frozen), size)
    elif span.is_recording():
        write_output(span, kind, value)


def keep_one(span: Span, key: str, value: str | float) -> None:
    """Record one attribute."""
    if is_lazy(span):
        span.record((write_one, key, value), 64)
    else:
        span.set_attribute(key, value)


def write_input(span: Span, kind: str, value: Any) -> None:
    """The call's input, once: as messages on an llm span, as ``input.value`` on the rest."""
    if value is not None:
        _write(span, kind, value, (s.INPUT_MESSAGES, "user"), (s.OI_INPUT, s.OI_INPUT_MIME))


def write_output(span: Span, kind: str, value: Any) -> None:
    """The call's output, in the same forms; of a retriever or reranker, its documents (each content once)."""
    if value is None:
        return
    documents = documents_of(value) if gives_documents(kind) else None
    if documents is not None:
        write_documents(span, documents)
    else:
        _write(span, kind, value, (s.OUTPUT_MESSAGES, "assistant"), (s.OI_OUTPUT, s.OI_OUTPUT_MIME))


def gives_documents(kind: str) -> bool:
    """Whether what such a call returns is read as documents."""
    return kind in ("retriever", "reranker")


def documents_of(value: Any) -> Sequence[dict[str, Any]] | None:
    """`read_documents` of a value that we were not given but that passes by: what can be read once only is left alone, and
    of a long list no more is looked at than is kept."""
    if reads_once(type(value)):
        return None
    if type(value) is not list or len(value) <= MAX_DOCUMENTS:
        return read_documents(value)
    found = read_documents(value[:MAX_DOCUMENTS])
    return note_cut(list(found), len(value)) if found is not None else None


def write_documents(span: Span, documents: Sequence[dict[str, Any]]) -> None:
    """Documents as `read_documents` gives them."""
    span.set_attribute(s.RETRIEVAL_DOCUMENTS, json_within(lambda room: _documents(documents, room), MAX_BYTES))


def write_object(span: Span, key: str, value: Mapping[str, Any]) -> None:
    """A JSON object."""
    span.set_attribute(key, json_within(lambda room: captured(value, room), MAX_BYTES))


def _documents(documents: Sequence[dict[str, Any]], room: int) -> list[dict[str, Any]]:
    # What was cut is said as `read_documents` says it, not by a document of its own.
    note = _object(_object(documents[-1], "metadata"), CUT) if documents else {}
    kept = [document for document in captured(list(documents), room) if isinstance(document, dict)]
    return note_cut(kept, note.get("given", len(documents)))


def note_cut(kept: list[dict[str, Any]], given: int) -> list[dict[str, Any]]:
    """Say on the last document kept how many there were, where some were left out."""
    if kept and len(kept) < given:
        metadata = _object(kept[-1], "metadata")
        kept[-1]["metadata"] = {**metadata, CUT: {**_object(metadata, CUT), "given": given, "kept": len(kept)}}
    return kept


def _object(held: Mapping[str, Any], key: str) -> dict[str, Any]:
    found = held.get(key)
    return found if isinstance(found, dict) else {}


def _write(span: Span, kind: str, value: Any, messages: tuple[str, str], plain: tuple[str, str]) -> None:
    both = _both()
    limit = MAX_BYTES // 2 if both else MAX_BYTES
    if kind == "llm" or both:
        span.set_attribute(messages[0], json_within(lambda room: _messages(value, messages[1], room), limit))
    if kind != "llm" or both:
        text, is_json = to_text(value, limit)
        span.set_attributes({plain[0]: text, plain[1]: s.MIME_JSON if is_json else s.MIME_TEXT})


def _messages(value: Any, role: str, room: int) -> list[dict[str, Any]]:
    """GenAI messages of a text, of chat messages (``[{"role", "content"}]``, alone or under ``messages``), or of anything."""
    if type(value) is dict and type(value.get("messages")) is list:
        value = value["messages"]
    plain = captured(value, room)
    if isinstance(plain, dict) and isinstance(plain.get("messages"), list):
        plain = plain["messages"]
    if isinstance(plain, dict) and "role" in plain:
        plain = [plain]
    if _is_chat(plain):
        if plain[-1] == CUT_ITEMS and type(value) is list:
            # What was asked stands at the end: rather lose the beginning.
            plain = captured(value[-MAX_NODES:][::-1], room)[::-1]
        return [_message(message) for message in plain if isinstance(message, dict) and "role" in message]
    text = plain if isinstance(plain, str) else fit(dumps(plain), room)
    return [{"role": role, "parts": [{"type": "text", "content": text}]}]


def _is_chat(plain: Any) -> bool:
    if not isinstance(plain, list) or not plain:
        return False
    whole = plain[:-1] if plain[-1] == CUT_ITEMS else plain
    return bool(whole) and all(isinstance(message, dict) and "role" in message for message in whole)


def _message(message: dict[str, Any]) -> dict[str, Any]:
    if "parts" in message:
        return message
    parts: list[Any] = []
    thoughts = message.get("reasoning_content")
    if isinstance(thoughts, str) and thoughts:
        parts.append({"type": "reasoning", "content": thoughts})
    content = message.get("content")
    if isinstance(content, str):
        parts.append({"type": "text", "content": content})
    elif isinstance(content, list):
        for item in content:
            text = item.get("text") if isinstance(item, dict) else None
            parts.append(
                {"type": "text", "content": text} if isinstance(text, str) else {"type": "generic", "content": item}
            )
    calls = message.get("tool_calls")
    for call in calls if isinstance(calls, list) else ():
        function = call.get("function", {}) if isinstance(call, dict) else None
        parts.append({"type": "tool_call", "id": call.get("id"), **function} if isinstance(function, dict) else call)
    return {"role": message["role"], "parts": parts}
