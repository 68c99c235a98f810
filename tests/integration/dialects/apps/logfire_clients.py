"""Logfire's instrumentation of OpenAI's and Anthropic's clients, nothing sent to Logfire; ``SEMCONV``: the version of its
attributes, 1 or 2."""

import os

import anthropic
import anthropic_calls
import logfire
import openai
import openai_calls
import traced

if __name__ == "__main__":
    # It adds an exporter to OTEL_EXPORTER_OTLP_ENDPOINT by itself.
    logfire.configure(send_to_logfire=False, console=False, service_name="app", inspect_arguments=False)
    version = int(os.environ["SEMCONV"])
    logfire.instrument_openai(openai.OpenAI, version=version)
    logfire.instrument_anthropic(anthropic.Anthropic, version=version)
    mine = {f"anthropic_{name}": scenario for name, scenario in anthropic_calls.SCENARIOS.items()}
    traced.main({**openai_calls.SCENARIOS, **mine}, logfire.DEFAULT_LOGFIRE_INSTANCE.config.get_tracer_provider())
