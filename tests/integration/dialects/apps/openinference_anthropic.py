"""Anthropic's client, traced by openinference-instrumentation-anthropic."""

import anthropic_calls
import traced
from openinference.instrumentation.anthropic import AnthropicInstrumentor

if __name__ == "__main__":
    provider = traced.make_provider()
    AnthropicInstrumentor().instrument(tracer_provider=provider)
    traced.main(anthropic_calls.SCENARIOS, provider)
