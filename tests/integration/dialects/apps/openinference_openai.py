"""OpenAI's client, traced by openinference-instrumentation-openai."""

import openai_calls
import traced
from openinference.instrumentation.openai import OpenAIInstrumentor

if __name__ == "__main__":
    provider = traced.make_provider()
    OpenAIInstrumentor().instrument(tracer_provider=provider)
    traced.main(openai_calls.SCENARIOS, provider)
