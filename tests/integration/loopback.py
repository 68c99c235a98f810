"""A loopback server for programs that talk to several places at once: a model's API that answers every question, OTLP
receivers told apart by the path before ``/v1/``, and Sentry's envelopes. What arrived is kept by place."""

from __future__ import annotations

import base64
import json
import threading
from collections import defaultdict
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from google.protobuf.json_format import MessageToDict
from opentelemetry.proto.collector.logs.v1.logs_service_pb2 import ExportLogsServiceRequest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

from . import serving
from .serving import Request, Response

ANSWER = "Parcels arrive within three working days."
VERDICT = json.dumps({"explanation": "It says when.", "verdict": "pass", "score": 1})
JsonObject = dict[str, Any]


class Places:
    """Everything that arrived, by place: ``ours`` for what came to ``/ours/v1/traces``."""

    def __init__(self, base: str) -> None:
        self.base = base
        self._lock = threading.Lock()
        self._spans: dict[str, list[JsonObject]] = defaultdict(list)
        self._logs: dict[str, list[JsonObject]] = defaultdict(list)
        self._sentry: list[JsonObject] = []
        self.questions = 0
        self.judged: list[JsonObject] = []  # the headers of each call of a judge
        self.unknown: list[str] = []

    def spans(self, place: str) -> list[JsonObject]:
        """``name``, ``scope``, ``trace_id``, ``span_id``, ``parent_id``, ``attributes``, ``events`` of each."""
        with self._lock:
            return list(self._spans[place])

    def logs(self, place: str) -> list[JsonObject]:
        with self._lock:
            return list(self._logs[place])

    def transactions(self) -> list[JsonObject]:
        """Sentry's transactions."""
        with self._lock:
            return list(self._sentry)

    def used(self) -> set[str]:
        """The places that got anything."""
        with self._lock:
            named = {place for kept in (self._spans, self._logs) for place, items in kept.items() if items}
            return named | ({"sentry"} if self._sentry else set())

    def take(self, path: str, headers: JsonObject, body: bytes) -> tuple[int, bytes]:
        """Status and body of the answer to one request."""
        with self._lock:
            if path.endswith("/chat/completions"):
                if path.startswith("/judge/"):
                    self.judged.append(headers)
                    return 200, _completion(len(self.judged), VERDICT)
                self.questions += 1
                return 200, _completion(self.questions, ANSWER)
            if path.endswith("/envelope/"):
                self._sentry += _transactions(body)
                return 200, b"{}"
            path = path.rstrip("/")
            if path.endswith("/v1/traces"):
                self._spans[_place(path)] += _spans(body)
                return 200, b""
            if path.endswith("/v1/logs"):
                self._logs[_place(path)] += _logs(body)
                return 200, b""
            self.unknown.append(path)
            return 404, b"{}"


def _place(path: str) -> str:
    """``ours`` of ``/ours/v1/traces``; Sentry's own OTLP address has no name of ours in it."""
    first = path.lstrip("/").split("/")[0]
    return "sentry_otlp" if first == "api" else first


def _completion(number: int, text: str) -> bytes:
    message = {"role": "assistant", "content": text, "refusal": None}
    answer = {
        "id": f"chatcmpl-{number}",
        "object": "chat.completion",
        "created": 1_700_000_000,
        "model": "small-1-2026",
        "choices": [{"index": 0, "message": message, "logprobs": None, "finish_reason": "stop"}],
        "usage": {"prompt_tokens": 7, "completion_tokens": 6, "total_tokens": 13},
    }
    return json.dumps(answer).encode()


def _transactions(body: bytes) -> list[JsonObject]:
    """An envelope is lines: its header, then for each item a header and a payload."""
    lines = body.split(b"\n")[1:]
    found = []
    for header, payload in zip(lines[::2], lines[1::2], strict=False):
        if header and json.loads(header).get("type") == "transaction":
            found.append(json.loads(payload))
    return found


def _plain(pairs: list[JsonObject]) -> JsonObject:
    # Each value has one field, named for its type: {"stringValue": ...}.
    return {pair["key"]: next(iter(pair.get("value", {}).values()), None) for pair in pairs}


def _hex(text: str) -> str:
    return base64.b64decode(text).hex()


def _spans(body: bytes) -> list[JsonObject]:
    request = MessageToDict(ExportTraceServiceRequest.FromString(body))
    return [
        {
            "name": span["name"],
            "scope": scoped.get("scope", {}).get("name", ""),
            "trace_id": _hex(span["traceId"]),
            "span_id": _hex(span["spanId"]),
            "parent_id": _hex(span["parentSpanId"]) if "parentSpanId" in span else None,
            "attributes": _plain(span.get("attributes", [])),
            "events": [
                {"name": e["name"], "attributes": _plain(e.get("attributes", []))} for e in span.get("events", [])
            ],
        }
        for resource in request.get("resourceSpans", [])
        for scoped in resource["scopeSpans"]
        for span in scoped["spans"]
    ]


def _logs(body: bytes) -> list[JsonObject]:
    request = MessageToDict(ExportLogsServiceRequest.FromString(body))
    return [
        {
            "name": record.get("eventName", ""),
            "trace_id": _hex(record["traceId"]) if "traceId" in record else None,
            "span_id": _hex(record["spanId"]) if "spanId" in record else None,
            "attributes": _plain(record.get("attributes", [])),
        }
        for resource in request.get("resourceLogs", [])
        for scoped in resource["scopeLogs"]
        for record in scoped["logRecords"]
    ]


@contextmanager
def serve() -> Iterator[Places]:
    """The server on a free port, until the end of the block."""
    places = Places("")

    def answer(request: Request) -> Response:
        status, body = places.take(request.path, dict(request.headers), request.body)
        kind = "application/x-protobuf" if not body else "application/json"
        return Response(status, (body,), {"content-type": kind})

    with serving.serve(answer) as places.base:
        yield places
