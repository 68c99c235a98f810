"""What was found in one span."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from spangrade.model.span import SpanData

#: Kinds of call that can be the end-to-end answer (DESIGN section 5). The others are never root.
ROOT_KINDS = frozenset({"llm", "agent", "chain"})
#: Kinds whose documents can have fed an answer.
RETRIEVAL_KINDS = frozenset({"retriever", "reranker"})


@dataclass(
    slots=True
)  # not frozen: one is made for each dialect of every call, and a frozen one takes four times as long
class Reading:
    """What a dialect found in one span. None (or an empty tuple) means: this dialect says nothing of it.

    ``input`` and ``output`` are text, or a parsed JSON value where a mime type or the key says JSON. ``messages`` (what
    was sent, system turn included) and ``output_messages`` (the choices) are ``{"role", "content", "tool_calls"?,
    "tool_call_id"?, "name"?, "reasoning"?, "refusal"?, "finish_reason"?}`` with ``content`` as text, and a tool call
    ``{"id"?, "name", "arguments"}``. ``tool_calls`` are those that the answer asks for; of a tool span, the one it is.
    ``documents`` is None when the span says nothing of retrieval and ``()`` when it searched and found nothing.
    ``usage``: ``input_tokens`` (cached ones included), ``output_tokens`` (thoughts included) and their parts
    ``cache_read_tokens``, ``cache_write_tokens``, ``reasoning_tokens`` as ints, absent when unknown. ``provider``: whose model
    it is, in the sender's word. ``tools``: the tools that the model was offered, each as the sender declares it.
    ``first_chunk_s``: seconds from the span's start to the first piece of a streamed answer. ``duration_s``: how long the call
    took, where the span is only a note of it. ``context`` and ``metadata`` are the
    application's own. ``truncated``: something of it was cut on the way here.
    """

    dialect: str
    kind: str | None = None
    input: Any = None
    output: Any = None
    messages: tuple[Mapping[str, Any], ...] = ()
    output_messages: tuple[Mapping[str, Any], ...] = ()
    system: str | None = None
    documents: tuple[Mapping[str, Any], ...] | None = None
    query: str | None = None
    tool_calls: tuple[Mapping[str, Any], ...] = ()
    model: str | None = None
    provider: str | None = None
    response_id: str | None = None
    finish_reasons: tuple[str, ...] = ()
    usage: Mapping[str, int] = field(default_factory=dict)
    tools: tuple[Mapping[str, Any], ...] = ()
    first_chunk_s: float | None = None
    duration_s: float | None = None
    session_id: str | None = None
    user_id: str | None = None
    metadata: Mapping[str, Any] = field(default_factory=dict)
    context: Mapping[str, Any] = field(default_factory=dict)
    reasoning: str | None = None
    refusal: bool = False
    truncated: bool = False


@dataclass(frozen=True, slots=True)
class Call:
    """A span that is a call, and its merged reading. ``evaluator`` True: somebody's judge traffic, never scored.

    ``within``: the kind of the nearest call above it in its process that is no chain, and ``over``: the span id of the nearest
    call above, where the host has seen what is above it; spans between that are no calls do not hide them.
    """

    span: SpanData
    reading: Reading
    evaluator: bool = False
    within: str | None = None
    over: int | None = None

    @property
    def kind(self) -> str:
        """One of the target kinds; ``chain`` where the dialect names none."""
        return self.reading.kind or "chain"
