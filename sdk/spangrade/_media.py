"""Images, sound and files in what a call was given: never sent; named by type, length and a hash instead.

Media come as bytes, as ``data:`` URLs, alone or inside a text, and as long bare base64. The hash is of the first `HASHED`
bytes at most, and says so, since nobody may wait for a whole video: the same image gives the same hash in each form.
"""

import binascii
import hashlib
import re
from typing import Final

HASHED: Final = 16_384  # bytes of media that are hashed
MIN_URL: Final = 256  # base64 characters in a data URL; a shorter one says less than its name would
MIN_BASE64: Final = 2_048  # characters of bare base64; no word of any text is as long

_STEP: Final = 1_024
_ENDS: Final = 4_096
_HASHED_CHARS: Final = (HASHED + 2) // 3 * 4
_B64: Final = "A-Za-z0-9+/_-"
_START: Final = re.compile(r"data:([a-zA-Z0-9.+-]{1,64}/[a-zA-Z0-9.+-]{1,64})?(?:;[a-zA-Z0-9_.=+-]{1,64}){0,4};base64,")
_URL: Final = re.compile(rf"{_START.pattern}([%{_B64}]{{{MIN_URL},}}={{0,2}})")
_RUN: Final = re.compile(rf"[{_B64}]+={{0,2}}")
_OTHER: Final = re.compile(rf"[^{_B64}]")
_PROBE: Final = re.compile(rf"[{_B64}]{{32}}")
_PIECE: Final = re.compile(rf"[%\r\n{_B64}]*={{0,2}}")
_MIXED: Final = (re.compile("[a-z]"), re.compile("[A-Z]"), re.compile("[0-9]"))

_MAGIC: Final = (
    (b"\x89PNG", "image/png"),
    (b"\xff\xd8\xff", "image/jpeg"),
    (b"GIF8", "image/gif"),
    (b"%PDF", "application/pdf"),
    (b"ID3", "audio/mpeg"),
    (b"OggS", "audio/ogg"),
    (b"fLaC", "audio/flac"),
    (b"\x1a\x45\xdf\xa3", "video/webm"),
    (b"PK\x03\x04", "application/zip"),
    (b"\x1f\x8b\x08", "application/gzip"),
)
_MAGICS: Final = tuple(magic for magic, _ in _MAGIC)
_RIFF: Final = {b"WEBP": "image/webp", b"WAVE": "audio/wav", b"AVI ": "video/x-msvideo"}


def of_bytes(start: bytes, length: int) -> str:
    """The name of ``length`` bytes that begin with ``start`` (at most `HASHED`; empty: no hash is given)."""
    kind = _sniff(start)
    return _name("bytes" if kind is None else f"media {kind}", start, length)


def suspected(text: str) -> bool:
    """Whether `replace` may find something in ``text``; soon done for what people write."""
    if ";base64," in text:
        return True
    # Every run of MIN_BASE64 characters has _PROBE's at some multiple of _STEP.
    return len(text) >= MIN_BASE64 and any(_PROBE.match(text, at) for at in range(0, len(text), _STEP))


def replace(text: str) -> str:
    """``text`` with the media in it named. Takes time in proportion to its length: bound that first."""
    if ";base64," in text:
        text = _URL.sub(lambda found: _url(found[1], found[2]), text)
    parts, done, at = [], 0, 0
    while at < len(text):
        if _PROBE.match(text, at):
            before = _OTHER.search(text[max(at - _STEP, done) : at][::-1])
            start = at - before.start() if before else max(at - _STEP, done)
            run = _RUN.match(text, start)
            if run:
                if run.end() - start >= MIN_BASE64:
                    parts += [text[done:start], _run(run[0])]
                    done = run.end()
                at = max(at, run.end())
        at += _STEP - at % _STEP
    return "".join((*parts, text[done:]))


def whole(text: str) -> str | None:
    """The name of a text that is one piece of media from its first to its last character, as its two ends have it; None
    for any other. Takes the same time however long the text is."""
    start = _START.match(text)
    at = start.end() if start else 0
    if len(text) - at < MIN_URL or not _PIECE.fullmatch(text, at, at + _ENDS) or not _PIECE.fullmatch(text[-_ENDS:]):
        return None
    if start:
        return _url(start[1], text, at)
    named = _run(text)
    return None if named is text else named


def _url(kind: str | None, payload: str, at: int = 0) -> str:
    return _name(f"media {kind or 'text/plain'}", _decoded(payload, at), _bytes_in(payload, at))


def _run(payload: str) -> str:
    start = _decoded(payload)
    kind = _sniff(start)
    # Without a known beginning it has to look like base64: hexadecimal digits, a row of dashes or a gene do not.
    if kind is None and not all(some.search(payload, 0, MIN_BASE64) for some in _MIXED):
        return payload
    return _name("base64" if kind is None else f"media {kind}", start, _bytes_in(payload))


def _bytes_in(payload: str, at: int = 0) -> int:
    return (len(payload) - at - payload[-2:].count("=")) * 3 // 4


def _decoded(payload: str, at: int = 0) -> bytes:
    piece = payload[at : at + _HASHED_CHARS].replace("-", "+").replace("_", "/")
    try:
        return binascii.a2b_base64(piece + "=" * (-len(piece) % 4))[:HASHED]
    except binascii.Error:  # per cent signs in a URL, or no base64 after all: the text itself then
        return piece.encode("ascii", "replace")[:HASHED]


def _name(what: str, start: bytes, length: int) -> str:
    if not start and length:
        return f"<{what} length={length}>"
    first = "" if length <= len(start) else f" of the first {len(start)}"
    return f"<{what} length={length} sha256{first}={hashlib.sha256(start, usedforsecurity=False).hexdigest()[:16]}>"


def _sniff(start: bytes) -> str | None:
    if start.startswith(_MAGICS):
        return next(kind for magic, kind in _MAGIC if start.startswith(magic))
    if start.startswith(b"RIFF"):
        return _RIFF.get(start[8:12])
    return "video/mp4" if start[4:8] == b"ftyp" else None
