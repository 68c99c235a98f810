"""What receivers, relay and forwarders say to each other: OTLP's own distinctions, no transport's."""

from dataclasses import dataclass
from enum import StrEnum
from typing import Literal, Protocol

Signal = Literal["traces", "logs", "metrics"]
SIGNALS: tuple[Signal, ...] = ("traces", "logs", "metrics")
Encoding = Literal["protobuf", "json"]


class Kind(StrEnum):
    """How a request ended, as OTLP has it."""

    OK = "ok"  # also with `rejected`: partial success, never sent again
    BAD = "bad"  # HTTP 400, gRPC INVALID_ARGUMENT: sending it again is no use
    TOO_LARGE = "too_large"  # HTTP 413, gRPC RESOURCE_EXHAUSTED without RetryInfo
    UNAUTHORIZED = "unauthorized"  # HTTP 401, gRPC UNAUTHENTICATED
    RETRY = "retry"  # HTTP 503 with Retry-After, gRPC UNAVAILABLE with RetryInfo
    UNIMPLEMENTED = "unimplemented"  # HTTP 404, gRPC UNIMPLEMENTED: this signal is not taken here


@dataclass(frozen=True, slots=True)
class Answer:
    """``rejected``: spans, log records or data points that were refused although the request was taken.
    ``retry_after_s``: for RETRY, when to come again."""

    kind: Kind = Kind.OK
    message: str = ""
    rejected: int = 0
    retry_after_s: float | None = None


class Ingest(Protocol):
    """What stands behind the receivers. Called from many threads at once; may block for as long as an upstream takes."""

    def ingest(self, signal: Signal, body: bytes, encoding: Encoding) -> Answer: ...


class Upstream(Protocol):
    """One place to send to. Called from many threads at once. Never raises: what went wrong is the answer's kind."""

    def send(self, signal: Signal, body: bytes) -> Answer:
        """Send one encoded Export<Signal>ServiceRequest (protobuf) and wait for the answer."""

    def close(self) -> None:
        """End connections."""
