"""Semantic Kernel for Python: OpenTelemetry GenAI, and what is its own.

Source: semantic-kernel 1.45.0, utils/telemetry. A model's messages go through Python's ``logging`` as records whose body is
JSON text and whose name is the attribute ``event.name`` (read by `genai_events`); agents' stand on their spans
(read by `otel_genai`). Its own is one text of finish reasons, of its enumeration's members, and how it is switched on.
"""

from collections.abc import Mapping
from typing import Any, Final

from spangrade import semconv
from spangrade.model.span import SpanData
from spangrade.samples import scalars
from spangrade.samples.dialects.base import KindMark
from spangrade.samples.reading import Reading

SCOPE: Final = "semantic_kernel"
_FINISH_REASON: Final = "gen_ai.response.finish_reason"

name: Final = "semantic_kernel"
capture: Final = (
    "set SEMANTICKERNEL_EXPERIMENTAL_GENAI_ENABLE_OTEL_DIAGNOSTICS_SENSITIVE=true in the application's environment, and send"
    " the records of its logging (OpenTelemetry's LoggingHandler, level INFO) where its spans go"
)
kind_marks: Final[Mapping[str, KindMark]] = {}
content_keys: Final[frozenset[str]] = frozenset()
content_prefixes: Final[tuple[str, ...]] = ()


def claims(attributes: Mapping[str, Any]) -> bool:
    return semconv.OPERATION_NAME in attributes


def read(span: SpanData) -> Reading | None:
    if not span.scope_name.startswith(SCOPE):
        return None
    told = scalars.names(span.attributes.get(_FINISH_REASON))
    return Reading(
        name,
        finish_reasons=tuple(word.removeprefix("FinishReason.").lower() for word in told if word != "None"),
    )
