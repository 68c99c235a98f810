"""Between OTLP on the wire and the pipeline: requests in, neutral spans, scores on the message, answers out.

Scores (`add_scores`, `evaluation_span`, `log_record`) and the requests around them are in `codec_scores`, the JSON reader
in `codec_json`; whoever uses the codec finds all of it here.
"""

import json
from collections.abc import Iterable, Mapping
from typing import Any, Final

from google.protobuf.message import DecodeError, Message
from google.rpc.status_pb2 import Status  # type: ignore[import-untyped]
from opentelemetry.proto.collector.logs.v1.logs_service_pb2 import ExportLogsServiceRequest, ExportLogsServiceResponse
from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import (
    ExportMetricsServiceRequest,
    ExportMetricsServiceResponse,
)
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import (
    ExportTraceServiceRequest,
    ExportTraceServiceResponse,
)
from opentelemetry.proto.common.v1.common_pb2 import AnyValue, InstrumentationScope, KeyValue
from opentelemetry.proto.trace.v1.trace_pb2 import Span, SpanFlags

from spangrade._values import valid
from spangrade.model.span import EventData, SpanData
from spangrade.samples import kinds
from spangrade_agent.codec_json import BadRequest, Losses, read_json
from spangrade_agent.codec_scores import OUR_SCOPE, add_scores, evaluation_span, log_record, wrap_log, wrap_span
from spangrade_agent.wire import Encoding, Signal

__all__ = [
    "OUR_SCOPE",
    "BadRequest",
    "add_scores",
    "attributes_of_kvs",
    "decode_logs",
    "decode_other",
    "decode_other_counted",
    "decode_traces",
    "evaluation_span",
    "log_record",
    "quick_llm",
    "response",
    "span_data",
    "status_body",
    "wrap_log",
    "wrap_span",
]

_REQUESTS: Final[Mapping[Signal, type[Message]]] = {
    "traces": ExportTraceServiceRequest,
    "logs": ExportLogsServiceRequest,
    "metrics": ExportMetricsServiceRequest,
}
_RESPONSES: Final[Mapping[Signal, tuple[type[Message], str, str]]] = {
    "traces": (ExportTraceServiceResponse, "rejected_spans", "rejectedSpans"),
    "logs": (ExportLogsServiceResponse, "rejected_log_records", "rejectedLogRecords"),
    "metrics": (ExportMetricsServiceResponse, "rejected_data_points", "rejectedDataPoints"),
}
_STATUS: Final = ("unset", "ok", "error")
_ENTRIES: Final = (Span.SPAN_KIND_SERVER, Span.SPAN_KIND_CONSUMER)
_NO_TRACE: Final = bytes(16)
_NO_SPAN: Final = bytes(8)
_HAS_REMOTE: Final = SpanFlags.SPAN_FLAGS_CONTEXT_HAS_IS_REMOTE_MASK
_IS_REMOTE: Final = SpanFlags.SPAN_FLAGS_CONTEXT_IS_REMOTE_MASK


# --- requests in ------------------------------------------------------------------------------------------------------


def decode_traces(body: bytes, encoding: Encoding) -> tuple[ExportTraceServiceRequest, int, str]:
    """``(request, rejected, message)``: what could be read, how many spans were not, and a sentence on what was left out.

    Spans without a trace id and span id of the right length and not all zero are rejected, as are those with half a
    parent id: stores refuse the whole batch for one of them. A link with half an id is left out and counted in its span.
    Attributes, events and links that are left out of a span are in the message, not in ``rejected``. Fields that the
    protobuf schema does not know stay in the message, and go on when it is encoded again.

    Raises:
        BadRequest: the body as a whole cannot be read; for protobuf that includes text that is no UTF-8.
    """
    request = ExportTraceServiceRequest()
    if encoding == "json":
        losses = read_json(body, request)
    else:
        losses = Losses()
        _parse(request, body)
    for group in request.resource_spans:
        for scope in group.scope_spans:
            _check_ids(scope.spans, losses)
    return request, losses.rejected, losses.message


def decode_logs(body: bytes, encoding: Encoding) -> tuple[ExportLogsServiceRequest, int, str]:
    """``(request, rejected, message)``: what could be read, how many log records were not, and why.

    Raises:
        BadRequest: the body as a whole cannot be read.
    """
    request = ExportLogsServiceRequest()
    if encoding == "json":
        losses = read_json(body, request)
        return request, losses.rejected, losses.message
    _parse(request, body)
    return request, 0, ""


def decode_other(signal: Signal, body: bytes, encoding: Encoding) -> bytes:
    """`decode_other_counted` without the counts."""
    return decode_other_counted(signal, body, encoding)[0]


def decode_other_counted(signal: Signal, body: bytes, encoding: Encoding) -> tuple[bytes, int, str]:
    """``(protobuf, rejected, message)``: a request of any signal as protobuf, to be relayed; how many log records or data
    points could not be read, and why. A protobuf body is only tried, and comes back as it is.

    Raises:
        BadRequest: the body as a whole cannot be read.
    """
    request = _REQUESTS[signal]()
    if encoding == "protobuf":
        _parse(request, body)
        return body, 0, ""
    losses = read_json(body, request)
    return request.SerializeToString(), losses.rejected, losses.message


def _parse(request: Message, body: bytes) -> None:
    name = request.DESCRIPTOR.name
    try:
        request.ParseFromString(body)
    except DecodeError:
        raise BadRequest(
            f"the body is no {name} in protobuf: cut, not protobuf, or with text that is no UTF-8"
        ) from None
    if body and not request.ListFields():
        raise BadRequest(f"the body is no {name} in protobuf: it has none of its fields")


def _check_ids(spans: Any, losses: Losses) -> None:
    """Take away the spans that nobody could store."""
    for index in range(len(spans) - 1, -1, -1):
        span = spans[index]
        trace_id, span_id, parent = span.trace_id, span.span_id, span.parent_span_id
        why = ""
        if len(trace_id) != 16 or trace_id == _NO_TRACE:
            why = "traceId is missing, all zero or not of 16 bytes"
        elif len(span_id) != 8 or span_id == _NO_SPAN:
            why = "spanId is missing, all zero or not of 8 bytes"
        elif parent and len(parent) != 8:
            why = "parentSpanId is not of 8 bytes"
        if why:
            del spans[index]
            losses.note("spans", why)
            continue
        links = span.links
        for at in range(len(links) - 1, -1, -1):
            if len(links[at].trace_id) not in (0, 16) or len(links[at].span_id) not in (0, 8):
                del links[at]
                span.dropped_links_count += 1
                losses.note("links", "an id of a link is not of 16 or 8 bytes")


# --- neutral spans ----------------------------------------------------------------------------------------------------


def span_data(span: Span, resource_attributes: Mapping[str, Any], scope: InstrumentationScope) -> SpanData:
    """The neutral view of a span: equal to what the SDK's adapter gives for it in the process, but for what no exporter
    sends (the Python one leaves the W3C flags out: 1, sampled, is taken then).

    ``resource_attributes``: `attributes_of_kvs` of its resource, made once for all its spans.
    """
    parent, flags, status, events = span.parent_span_id, span.flags, span.status, span.events
    parent_id = int.from_bytes(parent, "big") or None
    code = status.code
    return SpanData(
        trace_id=int.from_bytes(span.trace_id, "big"),
        span_id=int.from_bytes(span.span_id, "big"),
        parent_span_id=parent_id,
        name=span.name,
        start_ns=span.start_time_unix_nano,
        end_ns=span.end_time_unix_nano,
        attributes=attributes_of_kvs(span.attributes),
        events=[EventData(e.name, attributes_of_kvs(e.attributes), e.time_unix_nano) for e in events] if events else (),
        resource=resource_attributes,
        scope_name=scope.name,
        status=_STATUS[code] if 0 <= code < len(_STATUS) else "unset",
        status_message=status.message,
        parent_is_remote=None if parent_id is None else _is_remote(flags, span.kind),
        trace_flags=flags & 0xFF or 1,
        trace_state=span.trace_state,
        dropped_attributes=span.dropped_attributes_count,
    )


def _is_remote(flags: int, kind: int) -> bool | None:
    """Whether a parent is another process's: as the sender says; of one that does not say (older SDKs do not), as the kind
    tells, since what a server or consumer span answers came from elsewhere. None: nobody knows."""
    if flags & _HAS_REMOTE:
        return bool(flags & _IS_REMOTE)
    return True if kind in _ENTRIES else None


def attributes_of_kvs(kvs: Iterable[KeyValue]) -> dict[str, Any]:
    """Attributes as the Python SDK has them: lists are tuples, maps dicts, an empty value None. Of a key that is there
    twice the last counts."""
    # Nearly every attribute is text, and each access to a message costs as much as parsing a quarter of a span.
    return {kv.key: value.string_value or value_of(value) for kv in kvs for value in (kv.value,)}


def value_of(value: AnyValue) -> Any:
    """A value as `attributes_of_kvs` has it."""
    kind = value.WhichOneof("value")
    if kind is None:
        return None
    if kind == "array_value":
        return tuple([item.string_value or value_of(item) for item in value.array_value.values])
    if kind == "kvlist_value":
        return attributes_of_kvs(value.kvlist_value.values)
    return getattr(value, kind)


# --- is there anything to score? ---------------------------------------------------------------------------------------


def _needles(keys: Iterable[str]) -> tuple[bytes, ...]:
    """The fewest texts such that every key holds one of them; several keys of one namespace share its name."""
    keys = list(keys)
    # Spans that are no call have db.* attributes too: of those keys the first two words are shared.
    names = {key: key[: key.find(".", 3 if key.startswith("db.") else 0) + 1] or key for key in keys}
    wanted = {name if list(names.values()).count(name) > 1 else key for key, name in names.items()}
    found: list[str] = []
    for text in sorted(wanted, key=len):
        if not any(shorter in text for shorter in found):
            found.append(text)
    # What is met most is looked for first; a body without any call is searched for all of them.
    return tuple(text.encode() for text in sorted(found, key=lambda text: -sum(text in key for key in keys)))


_NEEDLES: Final = _needles(kinds._KEYS)


def quick_llm(body: bytes) -> bool:
    """Whether an encoded (protobuf, not compressed) trace request may hold a call: whether a key by which
    `spangrade.samples.kinds` tells calls is anywhere in it. May be wrong with True, never with False.

    It says nothing of spans that matter for other reasons: the local root of a trace whose calls came in another request.
    """
    return any(needle in body for needle in _NEEDLES)


# --- answers out --------------------------------------------------------------------------------------------------------


def response(signal: Signal, encoding: Encoding, rejected: int = 0, message: str = "") -> bytes:
    """The body of a 200: an Export<Signal>ServiceResponse, with ``partial_success`` only where there is something to say
    (``rejected`` 0 with a message is a warning)."""
    kind, field, json_field = _RESPONSES[signal]
    message = valid(message)
    if encoding == "json":
        partial: dict[str, str] = {json_field: str(rejected)} if rejected else {}
        partial |= {"errorMessage": message} if message else {}
        return _json({"partialSuccess": partial} if partial else {})
    answer: Any = kind()
    if rejected:
        setattr(answer.partial_success, field, rejected)
    if message:
        answer.partial_success.error_message = message
    encoded: bytes = answer.SerializeToString()
    return encoded


def status_body(encoding: Encoding, code: int, message: str) -> bytes:
    """The body of a 4xx or 5xx: a google.rpc.Status. ``code`` is one of google.rpc.Code (3 INVALID_ARGUMENT, ...)."""
    message = valid(message)
    if encoding == "json":
        return _json({"code": code, "message": message})
    encoded: bytes = Status(code=code, message=message).SerializeToString()
    return encoded


def _json(answer: Mapping[str, Any]) -> bytes:
    return json.dumps(answer, ensure_ascii=False, separators=(",", ":")).encode()
