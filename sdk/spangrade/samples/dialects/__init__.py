"""The dialects, in the order in which they are believed: what a vendor says explicitly before what is generic.

A new dialect is one module with the members of `Dialect`, and one entry here.
"""

from typing import Final

from spangrade.samples.dialects import (
    agent_framework,
    claude_code,
    genai_events,
    genkit,
    google_adk,
    haystack,
    laminar,
    langchain4j,
    langfuse,
    langsmith,
    livekit,
    logfire,
    mlflow,
    openinference,
    otel_genai,
    own,
    plain,
    pydantic_ai,
    semantic_kernel,
    spring_ai,
    traceloop,
    trulens,
    vercel,
)
from spangrade.samples.dialects.base import Dialect

DIALECTS: Final[tuple[Dialect, ...]] = (
    own,
    langfuse,
    langsmith,
    mlflow,
    trulens,
    vercel,
    haystack,
    laminar,
    genkit,
    livekit,
    claude_code,
    logfire,
    pydantic_ai,
    google_adk,
    semantic_kernel,
    agent_framework,
    traceloop,
    openinference,
    spring_ai,
    otel_genai,
    genai_events,
    langchain4j,
    plain,
)

__all__ = ["DIALECTS", "Dialect"]
