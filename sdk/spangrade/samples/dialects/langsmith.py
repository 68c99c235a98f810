"""LangSmith's OTel export: a run's whole inputs and outputs, each one JSON text, as ``gen_ai.prompt`` and ``gen_ai.completion``.

Source: langsmith 0.15.1 (langsmith/_internal/otel/_otel_exporter.py). The kind is ``langsmith.span.kind``:
``gen_ai.operation.name`` calls retrievers ``embeddings`` and prompts ``chat``. ``langsmith.trace.session_id`` and
``session_name`` are the project; a chat's session is among the metadata. Models, tokens and ids are OpenTelemetry GenAI.
"""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Final

from spangrade._values import snapshot
from spangrade.model.span import SpanData
from spangrade.samples import scalars
from spangrade.samples.dialects.base import NOT_A_CALL, KindMark
from spangrade.samples.exchanges import read_exchange, read_run
from spangrade.samples.flat import under
from spangrade.samples.jsontext import read_value
from spangrade.samples.reading import Reading

KIND: Final = "langsmith.span.kind"
PROMPT: Final = "gen_ai.prompt"
COMPLETION: Final = "gen_ai.completion"
_METADATA: Final = "langsmith.metadata."
#: What LangSmith calls a conversation: https://docs.langchain.com/langsmith/threads
_SESSIONS: Final = ("session_id", "thread_id", "conversation_id")
#: Of the metadata, what the libraries write themselves.
_THEIRS: Final = ("ls_", "lc_", "LANGSMITH_", "LANGCHAIN_", "langgraph_", "checkpoint_", "__")
_THEIR_KEYS: Final = frozenset({"usage_metadata", "revision_id", *_SESSIONS})

KINDS: Final[Mapping[str, str]] = {
    "llm": "llm",
    "chain": "chain",
    "agent": "agent",
    "tool": "tool",
    "retriever": "retriever",
    "embedding": "embedding",
    "parser": "chain",
    "prompt": NOT_A_CALL,  # a template being filled in
}

name: Final = "langsmith"
capture: Final = "it is on unless LANGSMITH_HIDE_INPUTS or LANGSMITH_HIDE_OUTPUTS hides it"
kind_marks: Final[Mapping[str, KindMark]] = {KIND: KindMark(KINDS, default="chain")}
content_keys: Final = frozenset({PROMPT, COMPLETION})
content_prefixes: Final[tuple[str, ...]] = ()
_CLAIMS: Final = frozenset(kind_marks)


def claims(attributes: Mapping[str, Any]) -> bool:
    return not _CLAIMS.isdisjoint(attributes)


def read(span: SpanData) -> Reading:
    attributes = span.attributes
    kind = KINDS.get((scalars.first_name(attributes, KIND) or "").lower(), "chain")
    given, given_cut = _whole(attributes.get(PROMPT))
    result, result_cut = _whole(attributes.get(COMPLETION))
    metadata = under(attributes, _METADATA)
    cut = given_cut or result_cut
    if kind == "llm":
        found = read_exchange(name, given, result, truncated=cut)
    else:
        found = read_run(
            name, span, kind, given, result, function=metadata.get("ls_method") == "traceable", truncated=cut
        )
    return replace(
        found,
        session_id=scalars.first_name(metadata, *_SESSIONS),
        user_id=scalars.first_name(metadata, "user_id"),
        metadata=_own(metadata, attributes.get("langsmith.span.tags")),
    )


def _whole(value: Any) -> tuple[Any, bool]:
    """All inputs, or all outputs: an empty object where they are hidden. What a function returned that was no mapping stands
    under ``output``."""
    held, cut = read_value(value)
    if isinstance(held, Mapping):
        held = held["output"] if held.keys() == {"output"} else held or None
    return held, cut


def _own(metadata: Mapping[str, Any], tags: Any) -> dict[str, Any]:
    """The application's own."""
    found = {
        key: snapshot(value)
        for key, value in metadata.items()
        if key not in _THEIR_KEYS and not key.startswith(_THEIRS)
    }
    names = scalars.names(tags)
    if names:
        found.setdefault("tags", list(names))
    return found
