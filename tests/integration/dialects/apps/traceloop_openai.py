"""OpenAI's client, traced by OpenLLMetry; with EVENTS=1 what was said goes out as log records."""

import os

import openai_calls
import traced
from opentelemetry import _logs
from opentelemetry.instrumentation.openai import OpenAIInstrumentor

if __name__ == "__main__":
    provider, logs = traced.make_provider(), traced.make_logs()
    _logs.set_logger_provider(logs)
    attributes = os.environ.get("EVENTS") != "1"
    OpenAIInstrumentor(use_legacy_attributes=attributes).instrument(tracer_provider=provider)
    traced.main(openai_calls.SCENARIOS, provider, logs)
