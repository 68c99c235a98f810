"""An OTLP/HTTP receiver on the loopback for what an application's own exporter sends: spans as the agent reads them, with
the log records that belong to them among their events."""

from __future__ import annotations

import itertools
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

from spangrade.model.span import EventData, SpanData
from spangrade.samples.logs import with_logs
from spangrade_agent import codec
from spangrade_agent.codec_neutral import log_events, spans_of
from spangrade_agent.wire import Encoding

from ..serving import Request, Response, serve


@dataclass
class Inbox:
    """What came to one place: ``endpoint`` is what an exporter is given as OTEL_EXPORTER_OTLP_ENDPOINT."""

    endpoint: str
    _spans: list[SpanData] = field(default_factory=list)
    _logs: list[tuple[int, int, EventData]] = field(default_factory=list)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def spans(self) -> list[SpanData]:
        """The spans in order of start, each with its log records."""
        with self._lock:
            spans, logs = sorted(self._spans, key=lambda span: (span.start_ns, span.end_ns)), list(self._logs)
        mine = {(span.trace_id, span.span_id): [] for span in spans}
        for trace_id, span_id, event in logs:
            mine.setdefault((trace_id, span_id), []).append(event)
        return [with_logs(span, mine[span.trace_id, span.span_id]) for span in spans]

    def logs(self) -> list[tuple[int, int, EventData]]:
        """The records that belong to a span: trace id, span id, event."""
        with self._lock:
            return list(self._logs)

    def take(self, path: str, request: Request) -> Response:
        encoding: Encoding = "json" if "json" in request.headers.get("content-type", "") else "protobuf"
        if path == "v1/traces":
            decoded, rejected, message = codec.decode_traces(request.body, encoding)
            with self._lock:
                self._spans += spans_of(decoded)
            body = codec.response("traces", encoding, rejected, message)
        elif path == "v1/logs":
            logs, rejected, message = log_events(request.body, encoding)
            with self._lock:
                self._logs += logs
            body = codec.response("logs", encoding, rejected, message)
        elif path == "v1/metrics":
            body = codec.response("metrics", encoding)
        else:
            return Response(404, (b"",))
        return Response(200, (body,), {"content-type": request.headers.get("content-type", "application/x-protobuf")})


class Receiver:
    """The running receiver."""

    def __init__(self) -> None:
        self.url = ""
        self._inboxes: dict[str, Inbox] = {}
        self._numbers = itertools.count(1)

    def inbox(self) -> Inbox:
        """A place for what one program sends."""
        number = str(next(self._numbers))
        return self._inboxes.setdefault(number, Inbox(f"{self.url}/{number}"))

    def take(self, request: Request) -> Response:
        number, path = request.path.removeprefix("/").split("/", 1)
        return self._inboxes[number].take(path, request)


@contextmanager
def receiving() -> Iterator[Receiver]:
    """The receiver, until the end of the block."""
    receiver = Receiver()
    with serve(receiver.take) as receiver.url:
        yield receiver
