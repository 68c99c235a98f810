"""TruLens with OpenTelemetry: ``ai.observability.*``, a function's arguments and result apart, and its own evaluations.

Source: trulens-otel-semconv 2.16.0 (trulens/otel/semconv/trace.py). Its evaluations are spans too (``eval_root``, ``eval``,
``eval_decision``): evaluator traffic, as is what runs below them.
"""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Final

from spangrade import semconv
from spangrade.model.documents import read_documents
from spangrade.model.span import SpanData
from spangrade.samples import scalars
from spangrade.samples.arguments import by_name
from spangrade.samples.dialects.base import EVALUATOR, KindMark
from spangrade.samples.exchanges import read_exchange, read_run
from spangrade.samples.flat import under
from spangrade.samples.jsontext import read_items, read_loose
from spangrade.samples.reading import Reading

_SCOPE: Final = "ai.observability."
TYPE: Final = f"{_SCOPE}span_type"
ROOT_INPUT: Final = f"{_SCOPE}record_root.input"
ROOT_OUTPUT: Final = f"{_SCOPE}record_root.output"
RETURN: Final = f"{_SCOPE}call.return"
_ARGUMENTS: Final = f"{_SCOPE}call.kwargs."
_FUNCTION: Final = f"{_SCOPE}call.function"
#: Kind → its query, and the texts that it found with their scores.
_FOUND: Final[Mapping[str, tuple[str, str, str]]] = {
    "retriever": ("retrieval.query_text", "retrieval.retrieved_contexts", ""),
    "reranker": ("reranking.query_text", "reranking.output_context_texts", "reranking.output_context_scores"),
}

KINDS: Final[Mapping[str, str]] = {
    "record_root": "chain",
    "nested_record_root": "chain",
    "generation": "llm",
    "retrieval": "retriever",
    "reranking": "reranker",
    "agent": "agent",
    "tool": "tool",
    "mcp": "tool",
    "guardrail": "guardrail",
    "eval_root": EVALUATOR,
    "eval": EVALUATOR,
    "eval_decision": EVALUATOR,
}

name: Final = "trulens"
capture: Final = "it is on for functions with TruLens's @instrument()"
kind_marks: Final[Mapping[str, KindMark]] = {TYPE: KindMark(KINDS, default="chain")}
content_keys: Final[frozenset[str]] = frozenset({f"{_SCOPE}coding_agent.diff"})
content_prefixes: Final = (
    f"{_SCOPE}record_root.",
    f"{_SCOPE}call.",
    f"{_SCOPE}retrieval.",
    f"{_SCOPE}reranking.",
    f"{_SCOPE}graph_node.",
    f"{_SCOPE}graph_task.",
    f"{_SCOPE}workflow.",
    f"{_SCOPE}mcp.",
)
_CLAIMS: Final = frozenset(kind_marks)


def claims(attributes: Mapping[str, Any]) -> bool:
    return not _CLAIMS.isdisjoint(attributes)


def read(span: SpanData) -> Reading:
    attributes = span.attributes
    kind = KINDS.get((scalars.first_name(attributes, TYPE) or "").lower(), "chain")
    given = {key: read_loose(value)[0] for key, value in under(attributes, _ARGUMENTS).items()}
    result, cut = read_loose(attributes.get(RETURN))
    if kind == "llm":
        found = read_exchange(name, by_name(given), result, truncated=cut)
    else:
        found = read_run(name, span, kind, given, result, function=True, truncated=cut)
    query, documents = _found(attributes, kind)
    return replace(
        found,
        input=_first(attributes.get(ROOT_INPUT), query, found.input if given else None),
        output=_first(read_loose(attributes.get(ROOT_OUTPUT))[0], found.output),
        documents=documents if documents is not None else found.documents,
        query=query,
        model=scalars.first_name(attributes, f"{_SCOPE}cost.model") or found.model,
        usage=scalars.usage(
            attributes,
            (f"{_SCOPE}cost.num_prompt_tokens",),
            (f"{_SCOPE}cost.num_completion_tokens",),
            (),
            (),
            (f"{_SCOPE}cost.num_reasoning_tokens",),
        )
        or found.usage,
        first_chunk_s=_milliseconds(attributes.get(f"{_SCOPE}generation.time_to_first_token_ms")),
        session_id=scalars.first_name(attributes, semconv.CONVERSATION_ID, f"{_SCOPE}conversation_id"),
    )


def _found(attributes: Mapping[str, Any], kind: str) -> tuple[str | None, tuple[dict[str, Any], ...] | None]:
    """The query, and the texts as documents, scores beside them where there is one for each."""
    if kind not in _FOUND:
        return None, None
    query, texts_key, scores_key = (f"{_SCOPE}{key}" for key in _FOUND[kind])
    held = attributes.get(texts_key)
    documents = read_documents(read_items(held).items) if held is not None else None
    scores = [scalars.text(score) for score in read_items(attributes.get(scores_key)).items]
    if documents and len(scores) == len(documents):
        documents = read_documents(
            [{**document, "score": score} for document, score in zip(documents, scores, strict=True)]
        )
    return scalars.text(attributes.get(query)), documents


def _milliseconds(value: Any) -> float | None:
    found = scalars.seconds(value)
    return found / 1_000 if found is not None else None


def _first(*values: Any) -> Any:
    return next((value for value in values if value is not None), None)
