"""Anthropic's client, traced by OpenTelemetry's own instrumentation of it (genai-anthropic)."""

import anthropic_calls
import traced
from opentelemetry.instrumentation.genai.anthropic import AnthropicInstrumentor

if __name__ == "__main__":
    provider, logs = traced.make_provider(), traced.make_logs()
    AnthropicInstrumentor().instrument(tracer_provider=provider, logger_provider=logs)
    traced.main(anthropic_calls.SCENARIOS, provider, logs)
