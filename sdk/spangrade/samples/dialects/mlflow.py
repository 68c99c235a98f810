"""MLflow tracing: every attribute a JSON text, a text in quotes too.

Source: mlflow-tracing 3.17.2 (mlflow/tracing/constant.py, mlflow/entities/span.py), as its OTLP exporter sends it. A model's span
holds its request and response whole, in the provider's shape; a decorated function's its arguments by name.
"""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Final

from spangrade import semconv
from spangrade.model.span import SpanData
from spangrade.samples import scalars
from spangrade.samples.dialects.base import EVALUATOR, KindMark
from spangrade.samples.exchanges import read_exchange, read_run
from spangrade.samples.flat import under
from spangrade.samples.jsontext import read_object, read_value
from spangrade.samples.reading import Reading

TYPE: Final = "mlflow.spanType"
INPUTS: Final = "mlflow.spanInputs"
OUTPUTS: Final = "mlflow.spanOutputs"
FUNCTION: Final = "mlflow.spanFunctionName"  # decorated
TOOLS: Final = "mlflow.chat.tools"
_TAG: Final = "mlflow.traceTag."
_FIRST_CHUNK: Final = "mlflow.chunk.item.0"

KINDS: Final[Mapping[str, str]] = {
    "llm": "llm",
    "chat_model": "llm",
    "chain": "chain",
    "agent": "agent",
    "tool": "tool",
    "retriever": "retriever",
    "reranker": "reranker",
    "embedding": "embedding",
    "guardrail": "guardrail",
    "evaluator": EVALUATOR,
}

name: Final = "mlflow"
capture: Final = "it is on in mlflow.<library>.autolog() and @mlflow.trace; what their span processors take out is gone"
kind_marks: Final[Mapping[str, KindMark]] = {
    TYPE: KindMark({**KINDS, **{f'"{word}"': kind for word, kind in KINDS.items()}}, default="chain"),
    INPUTS: KindMark(present="chain"),
    OUTPUTS: KindMark(present="chain"),
}
content_keys: Final = frozenset({INPUTS, OUTPUTS, TOOLS, "mlflow.trace.intermediate_outputs", "mlflow.chunk.value"})
content_prefixes: Final[tuple[str, ...]] = ()
_CLAIMS: Final = frozenset(kind_marks)


def claims(attributes: Mapping[str, Any]) -> bool:
    return not _CLAIMS.isdisjoint(attributes)


def read(span: SpanData) -> Reading:
    attributes = span.attributes
    kind = KINDS.get((_name(attributes, TYPE) or "").lower(), "chain")
    given, given_cut = read_value(attributes.get(INPUTS))
    result, result_cut = read_value(attributes.get(OUTPUTS))
    cut = given_cut or result_cut
    if kind == "llm":
        found = read_exchange(name, given, result, truncated=cut)
    else:
        found = read_run(name, span, kind, given, result, function=FUNCTION in attributes, truncated=cut)
    usage = read_object(attributes.get("mlflow.chat.tokenUsage"))
    return replace(
        found,
        model=_name(attributes, "mlflow.llm.model") or found.model,
        provider=_name(attributes, "mlflow.llm.provider"),
        usage=scalars.usage(
            usage,
            ("input_tokens",),
            ("output_tokens",),
            ("cache_read_input_tokens",),
            ("cache_creation_input_tokens",),
        )
        or found.usage,
        tools=scalars.declared_tools(attributes.get(TOOLS)) if TOOLS in attributes else found.tools,
        first_chunk_s=_first_chunk(span),
        session_id=_name(attributes, semconv.SESSION_ID, "mlflow.trace.session"),
        user_id=_name(attributes, semconv.USER_ID, "mlflow.trace.user"),
        metadata={key: read_value(value)[0] for key, value in under(attributes, _TAG).items()},
    )


def _name(attributes: Mapping[str, Any], *keys: str) -> str | None:
    """The first that is there, without JSON's quotes."""
    for key in keys:
        found = scalars.name(read_value(attributes.get(key))[0])
        if found is not None:
            return found
    return None


def _first_chunk(span: SpanData) -> float | None:
    """From the event that a stream's first piece is."""
    for event in span.events:
        if event.name == _FIRST_CHUNK:
            return scalars.seconds((event.time_ns - span.start_ns) / 1e9)
    return None
