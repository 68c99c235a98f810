"""OpenAI's client, traced by OpenTelemetry's own instrumentations of it: openai-v2, or with SUCCESSOR=1 genai-openai."""

import os

import openai_calls
import traced

if os.environ.get("SUCCESSOR") == "1":
    from opentelemetry.instrumentation.genai.openai import OpenAIInstrumentor
else:
    from opentelemetry.instrumentation.openai_v2 import OpenAIInstrumentor

if __name__ == "__main__":
    provider, logs = traced.make_provider(), traced.make_logs()
    OpenAIInstrumentor().instrument(tracer_provider=provider, logger_provider=logs)
    traced.main(openai_calls.SCENARIOS, provider, logs)
