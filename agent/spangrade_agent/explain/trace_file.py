"""Traces in files: OTLP JSON as one document, or a request a line (the Collector's file exporter); logs may be among them."""

import gzip
import json
import zlib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from spangrade.errors import ConfigError
from spangrade.model.span import EventData, SpanData
from spangrade.samples.logs import with_logs
from spangrade_agent import codec, codec_neutral

_TRACES: Final = ("resourceSpans", "resource_spans")
_GZIP: Final = b"\x1f\x8b"
_TEMPO: Final = "batches"  # its older API's word for resourceSpans
_LOGS: Final = ("resourceLogs", "resource_logs")
_METRICS: Final = ("resourceMetrics", "resource_metrics")
_MAX_DEPTH: Final = 4  # of what requests are wrapped in
#: Files that people hand over instead, by a key that tells them.
_OTHERS: Final = {
    "data": "this is JSON of Jaeger's API or page, which has lost types and order; export the trace as OTLP JSON (Jaeger: "
    "/api/v3/traces/TRACE_ID), or let a Collector's file exporter write it",
}


@dataclass
class Found:
    """What is in the files. ``notes``: what could not be read, a sentence each, with file and line; not all was read then."""

    spans: list[SpanData] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)


def read_traces(paths: Iterable[Path | tuple[str, bytes]]) -> Found:
    """The spans of all files, with the log records that belong to them; a span that is there twice counts once.

    A path is read; ``(name, content)`` is there already.

    Raises:
        ConfigError: a file cannot be read, or holds no OTLP at all; the message says what it is, where that can be told.
    """
    found = Found()
    spans: dict[tuple[int, int, int], SpanData] = {}
    logs: dict[tuple[int, int], list[EventData]] = {}
    for given in paths:
        name, content = given if isinstance(given, tuple) else (str(given), _bytes(given))
        read = 0
        for where, document in _documents(name, content, found.notes):
            requests = list(_requests(document, 0))
            if not requests:
                found.notes.append(f"{where}: no OTLP request ({_what(document)}), left out")
            for kind, request in requests:
                read += 1
                _take(kind, request, where, spans, logs, found.notes)
        if not read:
            raise ConfigError(_nothing(name, content, found.notes))
    found.spans = [with_logs(span, logs.get((span.trace_id, span.span_id), ())) for span in spans.values()]
    return found


def _bytes(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as fault:
        raise ConfigError(f"{str(path)!r} cannot be read: {fault.strerror or fault}") from fault


def _documents(name: str, content: bytes, notes: list[str]) -> Iterator[tuple[str, Any]]:
    """Each JSON document, with where it stands: the whole file, or its lines."""
    if content.startswith(_GZIP):
        try:
            content = gzip.decompress(content)
        except (OSError, EOFError, zlib.error) as fault:
            notes.append(f"{name}: a gzip file that cannot be unpacked ({fault}), left out")
            return
    text = content.decode(json.detect_encoding(content), "replace")
    try:
        yield name, json.loads(text)
        return
    except (ValueError, RecursionError):
        pass
    for number, line in enumerate(text.split("\n"), 1):
        if not line.strip():
            continue
        try:
            document = json.loads(line)
        except (ValueError, RecursionError):
            notes.append(f"{name}:{number}: no JSON (cut, or no line of OTLP), left out")
            continue
        yield f"{name}:{number}", document


def _requests(document: Any, depth: int) -> Iterator[tuple[str, dict[str, Any]]]:
    """The requests in a document: it is one, or a list or an object of some (``{"POST /v1/traces": {...}}``)."""
    if isinstance(document, list) and depth < _MAX_DEPTH:
        for item in document:
            yield from _requests(item, depth + 1)
    if not isinstance(document, dict):
        return
    known = False
    for kind, keys in (("traces", _TRACES), ("logs", _LOGS), ("metrics", _METRICS)):
        if any(key in document for key in keys):
            known = True
            yield kind, document
    if not known and isinstance(document.get(_TEMPO), list):
        known = True
        yield "traces", {_TRACES[0]: document[_TEMPO]}
    if not known and depth < _MAX_DEPTH:
        for value in document.values():
            if isinstance(value, (dict, list)):
                yield from _requests(value, depth + 1)


def _take(
    kind: str,
    request: dict[str, Any],
    where: str,
    spans: dict[tuple[int, int, int], SpanData],
    logs: dict[tuple[int, int], list[EventData]],
    notes: list[str],
) -> None:
    if kind == "metrics":
        return
    body = json.dumps(request).encode()
    try:
        if kind == "traces":
            message, rejected, said = codec.decode_traces(body, "json")
            for span in codec_neutral.spans_of(message):
                spans[span.trace_id, span.span_id, span.start_ns] = span
        else:
            records, rejected, said = codec_neutral.log_events(body, "json")
            for trace_id, span_id, event in records:
                logs.setdefault((trace_id, span_id), []).append(event)
    except codec.BadRequest as fault:
        notes.append(f"{where}: {fault}")
        return
    if rejected or said:
        notes.append(f"{where}: {said or f'{rejected} could not be read'}")


def _what(document: Any) -> str:
    if isinstance(document, dict):
        keys = ", ".join(map(repr, list(document)[:4])) or "nothing"
        return f"an object with {keys}"
    return "a list" if isinstance(document, list) else "a bare value"


def _nothing(name: str, content: bytes, notes: list[str]) -> str:
    try:
        document = json.loads(content)
    except (ValueError, RecursionError):
        document = None
    hint = next((said for key, said in _OTHERS.items() if isinstance(document, dict) and key in document), None)
    why = hint or (notes[0].removeprefix(f"{name}: ") if notes else "it is empty")
    return (
        f'{name!r} holds no OTLP JSON: {why}. What is read: an ExportTraceServiceRequest ({{"resourceSpans": ...}}) as one '
        "document or one a line, as the Collector's file exporter writes it"
    )
