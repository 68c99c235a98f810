"""An application that uses the SDKs of several vendors, each started as its own documentation says.

    python program.py '{"base": URL, "start": ["langfuse", "spangrade"], "calls": 3, ...}'

``start`` and ``stop`` name vendors in order. It makes its calls, stops those named in ``stop`` and makes the calls again if
there are any, prints one JSON line, and ends like any program.
"""

from __future__ import annotations

import json
import logging
import os
import sys
import time
from collections.abc import Callable
from typing import Any

SAID: dict[str, Any] = json.loads(sys.argv[1])
BASE: str = SAID["base"]
answered: list[str] = []


def exporting_to(place: str) -> Any:
    from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
    from opentelemetry.sdk.trace.export import BatchSpanProcessor

    return BatchSpanProcessor(OTLPSpanExporter(endpoint=f"{BASE}/{place}/v1/traces"))


def start_openinference() -> None:
    """Its spans go where the application sends its own: a provider with an exporter, made unless there is one."""
    from openinference.instrumentation.openai import OpenAIInstrumentor
    from opentelemetry import trace
    from opentelemetry.sdk.trace import TracerProvider

    provider = trace.get_tracer_provider()
    if not isinstance(provider, TracerProvider):
        provider = TracerProvider()
        trace.set_tracer_provider(provider)
    provider.add_span_processor(exporting_to("openinference"))
    OpenAIInstrumentor().instrument()


def start_traceloop() -> None:
    """Only its instrumentation of the client; its spans go to whatever provider there is."""
    from opentelemetry.instrumentation.openai import OpenAIInstrumentor

    OpenAIInstrumentor().instrument()


def start_langfuse() -> None:
    from langfuse import Langfuse

    Langfuse(public_key="pk-test", secret_key="sk-test", base_url=f"{BASE}/langfuse")


def stop_langfuse() -> None:
    from langfuse import get_client

    get_client().shutdown()


def start_logfire() -> None:
    import logfire

    logfire.configure(
        send_to_logfire=False,
        console=False,
        inspect_arguments=False,
        additional_span_processors=[exporting_to("logfire")],
    )
    logfire.instrument_openai()


def stop_logfire() -> None:
    import logfire

    logfire.shutdown()


def sentry(**options: Any) -> None:
    import sentry_sdk

    sentry_sdk.init(dsn=BASE.replace("://", "://key@") + "/1", **options)


def start_sentry() -> None:
    sentry(traces_sample_rate=0.1)


def start_sentry_otel() -> None:
    """The integration of before, deprecated: a span processor that exports nothing itself, on a provider that it sets."""
    import warnings

    from sentry_sdk.integrations.opentelemetry.integration import OpenTelemetryIntegration

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        sentry(
            traces_sample_rate=1.0,
            instrumenter="otel",
            integrations=[OpenTelemetryIntegration()],
        )


def start_empty() -> None:
    """The application's own provider, with nothing in it."""
    from opentelemetry import trace
    from opentelemetry.sdk.trace import TracerProvider

    trace.set_tracer_provider(TracerProvider())


def start_sentry_otlp() -> None:
    from sentry_sdk.integrations.otlp import OTLPIntegration

    sentry(integrations=[OTLPIntegration()])


def stop_sentry() -> None:
    import sentry_sdk

    sentry_sdk.get_client().close(timeout=2.0)


def start_spangrade() -> None:
    import spangrade as sg

    def yes(sample: sg.Sample) -> bool:
        return True

    judges = []
    if SAID.get("judge"):
        os.environ.update(SPANGRADE_JUDGE_BASE_URL=f"{BASE}/judge/v1", SPANGRADE_JUDGE_API_KEY="key")
        judges.append(sg.live(sg.LlmJudge(name="helpful", criteria="Does it help?", model="judge-1"), rate=1.0))
    if SAID.get("listen"):
        handler = logging.StreamHandler(sys.stderr)
        handler.setFormatter(logging.Formatter("%(levelname)s %(message)s"))
        logging.getLogger("spangrade").addHandler(handler)
        logging.getLogger("spangrade").setLevel(logging.INFO)
    endpoint = SAID.get("endpoint", f"{BASE}/ours")
    sg.configure(metrics=[yes], judges=judges, endpoint=endpoint, instrument=SAID.get("instrument", []))


def stop_spangrade() -> None:
    import spangrade as sg

    sg.shutdown()


def ask(client: Any, question: str) -> str:
    """The application's work."""
    messages = [{"role": "user", "content": question}]
    return str(client.chat.completions.create(model="small-1", messages=messages).choices[0].message.content)


def make_client() -> Any:
    if SAID.get("client") == "langfuse":
        from langfuse.openai import OpenAI
    else:
        from openai import OpenAI
    return OpenAI(base_url=f"{BASE}/openai/v1", api_key="key", max_retries=0)


def traced(name: str, work: Callable[[str], str]) -> Callable[[str], str]:
    """By one of the SDKs, or not at all."""
    if name == "spangrade":
        import spangrade as sg

        return sg.trace(name="answer")(work)
    if name == "langfuse":
        from langfuse import observe

        return observe(name="answer")(work)
    if name == "otel":
        from opentelemetry import trace

        def in_span(question: str) -> str:
            attributes = {"gen_ai.operation.name": "chat", "gen_ai.request.model": "small-1"}
            with trace.get_tracer("shop").start_as_current_span("answer", attributes=attributes) as span:
                span.set_attribute("input.value", question)
                found = work(question)
                span.set_attribute("output.value", found)
                return found

        return in_span
    return work


def in_transaction(number: int, work: Callable[[], str]) -> str:
    """A request that Sentry traces, where it is there; which tenth of them it keeps is said by the caller's header."""
    if "sentry" not in SAID["start"]:
        return work()
    import sentry_sdk

    trace_id, draw = f"{number + 1:032x}", (number % 10 + 0.5) / 10
    headers = {
        "sentry-trace": f"{trace_id}-{number + 1:016x}",
        "baggage": f"sentry-trace_id={trace_id},sentry-sample_rand={draw:.6f}",
    }
    with sentry_sdk.start_transaction(sentry_sdk.continue_trace(headers, op="task", name="request")):
        answer = work()
        if SAID.get("judge") and "spangrade" in SAID["start"]:
            import spangrade as sg

            assert sg.flush(20)  # the judge has answered while this request is still open
        return answer


def make_calls() -> None:
    client = make_client()
    answer = traced(SAID.get("trace", ""), lambda question: ask(client, question))
    for number in range(SAID["calls"]):
        answered.append(in_transaction(number, lambda number=number: answer(f"When, {number}?")))  # type: ignore[misc]


def main() -> None:
    here = globals()
    for name in SAID["start"]:
        here[f"start_{name}"]()
    make_calls()
    stopping_at = time.monotonic()
    for name in SAID.get("stop", []):
        here[f"stop_{name}"]()
    stop_s = time.monotonic() - stopping_at
    if SAID.get("stop"):
        make_calls()
    assert ("spangrade" in sys.modules) == ("spangrade" in SAID["start"])
    print(json.dumps({"answers": answered, "stop_s": stop_s, "ended_at": time.time()}), flush=True)


if __name__ == "__main__":
    main()
