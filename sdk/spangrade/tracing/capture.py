"""A traced call's arguments and result as span attributes: bounded, valid, and never the application's problem."""

import inspect
import os
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, Literal, get_args

from opentelemetry.trace import Span

from spangrade import semconv as s
from spangrade._values import dumps, snapshot, to_text
from spangrade.errors import ConfigError
from spangrade.model.documents import read_documents

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
_SKIPPED: Final = ("self", "cls")


class Form:
    """``SPANGRADE_SPAN_CONTENT=both``: content is written in both the GenAI and the OpenInference keys. Read at import
    and by `configure`, since the environment is slow to ask on every call."""

    both = os.environ.get("SPANGRADE_SPAN_CONTENT", "").strip().lower() == "both"

    @classmethod
    def reread(cls) -> None:
        """Look at the environment again."""
        cls.both = os.environ.get("SPANGRADE_SPAN_CONTENT", "").strip().lower() == "both"


def check_kind(kind: str) -> str:
    """One of `KINDS`, or `ConfigError`."""
    if kind not in KINDS:
        raise ConfigError(f"trace: kind {kind!r} is not one of {', '.join(KINDS)}")
    return kind


def kind_attributes(kind: str, name: str) -> dict[str, Any]:
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


class Arguments:
    """A function's parameter names, read once. One parameter (self and cls apart): its value is the input; several: a
    dict of those that were given, by name."""

    __slots__ = ("_names", "_rest", "_single", "_skip")

    def __init__(self, fn: Callable[..., Any]) -> None:
        names: list[str] = []
        self._rest: str | None = None
        more = False
        try:
            parameters = list(inspect.signature(fn).parameters.values())
        except (TypeError, ValueError):
            parameters, more = [], True
        for parameter in parameters:
            if parameter.kind is parameter.VAR_POSITIONAL:
                self._rest = parameter.name
            elif parameter.kind is parameter.VAR_KEYWORD:
                more = True
            elif parameter.kind is not parameter.KEYWORD_ONLY:
                names.append(parameter.name)
        keyword_only = sum(p.kind is p.KEYWORD_ONLY for p in parameters)
        self._skip = 1 if names and names[0] in _SKIPPED else 0
        self._names = tuple(names)
        self._single = len(names) - self._skip + keyword_only == 1 and self._rest is None and not more

    def of(self, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Any:
        """The input of one call; None for a call without arguments."""
        given = args[self._skip :] if self._skip else args
        if self._single and len(given) + len(kwargs) == 1:
            return given[0] if given else next(iter(kwargs.values()))
        if not given and not kwargs:
            return None
        names = self._names[self._skip :]
        bound = dict(zip(names, given, strict=False))
        if len(given) > len(names):
            bound[self._rest or "args"] = list(given[len(names) :])
        bound.update(kwargs)
        return bound


def write_input(span: Span, kind: str, value: Any) -> None:
    """The call's input, once: as messages on an llm span, as ``input.value`` on the rest."""
    if value is not None:
        _write(span, kind, value, (s.INPUT_MESSAGES, "user"), (s.OI_INPUT, s.OI_INPUT_MIME))


def write_output(span: Span, kind: str, value: Any) -> None:
    """The call's output, in the same forms; of a retriever or reranker, its documents (each content once)."""
    if value is None:
        return
    documents = read_documents(value) if kind in ("retriever", "reranker") else None
    if documents is not None:
        span.set_attribute(s.RETRIEVAL_DOCUMENTS, dumps(snapshot(list(documents))))
    else:
        _write(span, kind, value, (s.OUTPUT_MESSAGES, "assistant"), (s.OI_OUTPUT, s.OI_OUTPUT_MIME))


def _write(span: Span, kind: str, value: Any, messages: tuple[str, str], plain: tuple[str, str]) -> None:
    if kind == "llm" or Form.both:
        span.set_attribute(messages[0], dumps(_messages(value, messages[1])))
    if kind != "llm" or Form.both:
        _write_value(span, *plain, value)


def _write_value(span: Span, key: str, mime_key: str, value: Any) -> None:
    text, is_json = to_text(value)
    span.set_attributes({key: text, mime_key: s.MIME_JSON if is_json else s.MIME_TEXT})


def _messages(value: Any, role: str) -> list[dict[str, Any]]:
    """GenAI messages of a text, of chat messages (``[{"role", "content"}]``, alone or under ``messages``), or of anything."""
    plain = snapshot(value)
    if isinstance(plain, dict) and isinstance(plain.get("messages"), list):
        plain = plain["messages"]
    if isinstance(plain, list) and plain and all(isinstance(m, dict) and "role" in m for m in plain):
        return [_message(m) for m in plain]
    if isinstance(plain, dict) and "role" in plain:
        return [_message(plain)]
    text = plain if isinstance(plain, str) else dumps(plain)
    return [{"role": role, "parts": [{"type": "text", "content": text}]}]


def _message(message: dict[str, Any]) -> dict[str, Any]:
    if "parts" in message:
        return message
    parts: list[Any] = []
    content = message.get("content")
    if isinstance(content, str):
        parts.append({"type": "text", "content": content})
    elif isinstance(content, list):
        for item in content:
            text = item.get("text") if isinstance(item, dict) else None
            parts.append(
                {"type": "text", "content": text} if isinstance(text, str) else {"type": "generic", "content": item}
            )
    for call in message.get("tool_calls") or ():
        function = call.get("function", {}) if isinstance(call, dict) else {}
        parts.append({"type": "tool_call", "id": call.get("id"), **function} if isinstance(function, dict) else call)
    return {"role": message["role"], "parts": parts}
