"""What the page says before the first call has come: how to send one."""

import json
from typing import Final

from spangrade_agent.page.markup import Child, Html, element
from spangrade_agent.page.settings import PageSettings, as_address, host_of

#: One LLM call as OTLP/JSON. The times are the shell's, so that the sample is as new as the command.
TRY_IT: Final = {
    "resourceSpans": [
        {
            "resource": {"attributes": [{"key": "service.name", "value": {"stringValue": "try-it"}}]},
            "scopeSpans": [
                {
                    "scope": {"name": "by hand"},
                    "spans": [
                        {
                            "traceId": "TRACE_ID",
                            "spanId": "SPAN_ID",
                            "name": "answer",
                            "kind": 1,
                            "startTimeUnixNano": "NOW000000000",
                            "endTimeUnixNano": "NOW500000000",
                            "attributes": [
                                {"key": "openinference.span.kind", "value": {"stringValue": "LLM"}},
                                {"key": "input.value", "value": {"stringValue": "When does my parcel arrive?"}},
                                {"key": "output.value", "value": {"stringValue": "Within three working days."}},
                            ],
                        }
                    ],
                }
            ],
        }
    ]
}


def welcome(settings: PageSettings, *, called: str, waiting: bool) -> Html:
    """``called``: the name by which the visitor reaches this agent. ``waiting``: nothing was counted either, so nothing
    that could be scored has come at all."""
    http, grpc = (_url(settings.receivers.get(name), called) for name in ("http", "grpc"))
    first = (
        "No call has come yet. Point an OpenTelemetry SDK or Collector at this agent, and every LLM call that arrives is "
        "scored and shown here."
        if waiting
        else "No sample is kept any more: those that were scored have passed the store's bounds."
    )
    parts: list[Child] = [element("p", first)]
    if http:
        parts.append(element("p", "Any SDK, any language, over HTTP:"))
        parts.append(_code(f"OTEL_EXPORTER_OTLP_ENDPOINT={http}", "OTEL_EXPORTER_OTLP_PROTOCOL=http/protobuf"))
    if grpc:
        parts.append(element("p", "or over gRPC:"))
        parts.append(_code(f"OTEL_EXPORTER_OTLP_ENDPOINT={grpc}", "OTEL_EXPORTER_OTLP_PROTOCOL=grpc"))
    if http:
        parts.append(element("p", "or one call by hand:"))
        parts.append(_code(*by_hand(http), wrapped=True))
    parts.append(
        element(
            "p",
            "A span is a call when it says so in the words of OpenTelemetry GenAI or OpenInference. Switch the content "
            "capture of your instrumentation on: without input and output there is nothing to grade.",
            class_="note",
        )
    )
    return element("section", element("div", element("h2", "Waiting for calls"), class_="head"), _box(parts))


def _url(listen: str | None, called: str) -> str | None:
    """Where a sender reaches a receiver; one that listens everywhere is reached by the name of the page."""
    if not listen or "://" in listen:
        return listen
    address = as_address(host_of(listen))
    if address is None or not address.is_unspecified:
        return f"http://{listen}"
    host = f"[{called}]" if ":" in called else called
    return f"http://{host}:{listen.rpartition(':')[2]}"


def by_hand(http: str) -> list[str]:
    """A shell command, line by line, that sends `TRY_IT`."""
    body = json.dumps(TRY_IT, separators=(",", ":"))
    # Shell variables end the single-quoted text, so that the JSON around them needs no escapes.
    for name, value in (("TRACE_ID", "$trace"), ("SPAN_ID", "${trace#????????????????}"), ("NOW", "$now")):
        body = body.replace(name, f"'{value}'")
    return [
        "now=$(date +%s) trace=$(od -An -N16 -tx1 /dev/urandom | tr -d ' \\n')",
        f"curl {http}/v1/traces -H 'content-type: application/json' -d '{body}'",
    ]


def _box(parts: list[Child]) -> Html:
    return element("div", parts, class_="empty")


def _code(*lines: str, wrapped: bool = False) -> Html:
    return element("pre", "\n".join(lines), tabindex=0, class_="wrapped" if wrapped else None)
