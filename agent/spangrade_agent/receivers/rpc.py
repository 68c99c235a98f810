"""The little of google.rpc and of OTLP's answers that the wire's two ends need, read and written without protobuf
classes (those stay in `codec` and `relay`).

    google.rpc.Status      {1: code, 2: message, 3: repeated Any {1: type_url, 2: value}}
    google.rpc.RetryInfo   {1: Duration {1: seconds, 2: nanos}}
    Export*ServiceResponse {1: partial_success {1: rejected items (int64), 2: error_message}}, the same for each signal

Sources: googleapis google/rpc/{status,error_details}.proto; opentelemetry-proto 1.11 collector/*/v1.
"""

from collections.abc import Iterator
from typing import Final

RETRY_INFO: Final = b"type.googleapis.com/google.rpc.RetryInfo"
_MAX_TEXT: Final = 300
_MAX_FIELDS: Final = 1000  # a megabyte of text reads as half a million fields


def status_with_retry(code: int, message: str, retry_after_s: float) -> bytes:
    """An encoded google.rpc.Status with a RetryInfo detail, for ``grpc-status-details-bin``."""
    nanos = max(0, round(retry_after_s * 1e9))
    delay = _number(1, nanos // 1_000_000_000) + _number(2, nanos % 1_000_000_000)
    detail = _bytes(1, RETRY_INFO) + _bytes(2, _bytes(1, delay))
    return _number(1, code) + _bytes(2, message.encode("utf-8", "replace")) + _bytes(3, detail)


def read_status(body: bytes) -> tuple[str, float | None]:
    """(message, seconds of its RetryInfo or None) of an encoded google.rpc.Status; ("", None) for anything else."""
    message, retry = "", None
    try:
        for field, value in _fields(body):
            if field == 2 and isinstance(value, bytes):
                message = clipped(value)
            elif field == 3 and isinstance(value, bytes):
                detail = dict(_fields(value))
                if detail.get(1) == RETRY_INFO:
                    retry = _seconds(detail.get(2, b""))
    except ValueError:
        return "", None
    return message, retry


def _seconds(retry_info: int | bytes) -> float:
    delay = dict(_fields(retry_info)).get(1, b"") if isinstance(retry_info, bytes) else b""
    parts = dict(_fields(delay)) if isinstance(delay, bytes) else {}
    seconds, nanos = parts.get(1, 0), parts.get(2, 0)
    if not isinstance(seconds, int) or not isinstance(nanos, int) or seconds >= 1 << 63:  # negative: come at once
        return 0.0
    return seconds + nanos / 1e9


def read_partial_success(body: bytes) -> tuple[int, str]:
    """(rejected, message) of an encoded Export<Signal>ServiceResponse; (0, "") where there is none, or not one."""
    rejected, message = 0, ""
    try:
        partial = dict(_fields(body)).get(1, b"")
        for field, value in _fields(partial if isinstance(partial, bytes) else b""):
            if field == 1 and isinstance(value, int):
                rejected = value if value < 1 << 63 else 0
            elif field == 2 and isinstance(value, bytes):
                message = clipped(value)
    except ValueError:
        return 0, ""
    return rejected, message


def clipped(text: bytes | str) -> str:
    """A peer's words, short and on one line, as they go into a log or an answer."""
    if isinstance(text, bytes):
        text = text[: 4 * _MAX_TEXT].decode("utf-8", "replace")
    text = " ".join("".join(c if c.isprintable() else " " for c in text[: 4 * _MAX_TEXT]).split())
    return text if len(text) <= _MAX_TEXT else text[: _MAX_TEXT - 1] + "…"


def _fields(body: bytes) -> Iterator[tuple[int, int | bytes]]:
    """(field number, varint or bytes) of each field; 32 and 64 bit fields as bytes. ValueError where it is no message."""
    at = 0
    for _ in range(_MAX_FIELDS):
        if at >= len(body):
            return
        tag, at = _varint(body, at)
        number, kind = tag >> 3, tag & 7
        if not number or kind not in (0, 1, 2, 5):
            raise ValueError("not a protobuf message")
        if kind == 0:
            value, at = _varint(body, at)
            yield number, value
            continue
        length, at = (8, at) if kind == 1 else (4, at) if kind == 5 else _varint(body, at)
        if at + length > len(body):
            raise ValueError("cut short")
        yield number, body[at : at + length]
        at += length
    raise ValueError("not an answer that anybody sends")


def _varint(body: bytes, at: int) -> tuple[int, int]:
    value = 0
    for shift in range(0, 70, 7):
        if at >= len(body):
            raise ValueError("cut short")
        byte = body[at]
        at += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value & (1 << 64) - 1, at
    raise ValueError("not a varint")


def _encoded(value: int) -> bytes:
    out = bytearray()
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)


def _number(field: int, value: int) -> bytes:
    return _encoded(field << 3) + _encoded(value) if value else b""


def _bytes(field: int, value: bytes) -> bytes:
    return _encoded(field << 3 | 2) + _encoded(len(value)) + value
