"""Microsoft's Agent Framework for Python: OpenTelemetry GenAI, on the spans and in log records.

Source: agent-framework-core 1.23.0, observability.py. All it says is read by `otel_genai` and `genai_events`; its own is how
it is switched on.
"""

from collections.abc import Mapping
from typing import Any, Final

from spangrade import semconv
from spangrade.model.span import SpanData
from spangrade.samples.dialects.base import KindMark
from spangrade.samples.reading import Reading

SCOPE: Final = "agent_framework"

name: Final = "agent_framework"
capture: Final = (
    "set ENABLE_SENSITIVE_DATA=true in the application's environment (where its OTEL_SEMCONV_STABILITY_OPT_IN is set and does"
    " not name gen_ai_latest_experimental, send its log records where its spans go, too)"
)
kind_marks: Final[Mapping[str, KindMark]] = {}
content_keys: Final[frozenset[str]] = frozenset()
content_prefixes: Final[tuple[str, ...]] = ()


def claims(attributes: Mapping[str, Any]) -> bool:
    return semconv.OPERATION_NAME in attributes


def read(span: SpanData) -> Reading | None:
    return Reading(name) if span.scope_name.startswith(SCOPE) else None
