"""Anthropic's client, traced by OpenLLMetry."""

import anthropic_calls
import traced
from opentelemetry.instrumentation.anthropic import AnthropicInstrumentor

if __name__ == "__main__":
    provider = traced.make_provider()
    AnthropicInstrumentor().instrument(tracer_provider=provider)
    traced.main(anthropic_calls.SCENARIOS, provider)
