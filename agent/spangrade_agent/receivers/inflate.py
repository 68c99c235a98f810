"""gzip bodies, inflated no further than a limit, whatever they claim to be."""

import zlib
from collections.abc import Callable
from typing import Final

MAGIC: Final = b"\x1f\x8b"  # 0x1f has a wire type that protobuf does not know, so no protobuf message begins with it
_FEED: Final = 256 * 1024  # what zlib leaves unread is copied: in small pieces that copy stays small
_PIECE: Final = 1024 * 1024
_MAX_MEMBERS: Final = 1024  # each costs an inflater; a body of millions of empty ones is an attack


class TooLarge(Exception):
    """Inflates past the limit."""


class BadGzip(Exception):
    """Not gzip, corrupt, or cut short."""


def gunzip(body: bytes, limit: int, charge: Callable[[int], None] | None = None) -> bytes:
    """``body`` (one gzip member or several) inflated.

    Args:
        limit: bytes that the result may have; memory stays within it.
        charge: told of every piece's size before it is kept; may raise.

    Raises:
        TooLarge: the result would be longer than ``limit``.
        BadGzip: corrupt or cut short.
    """
    try:
        return b"".join(_pieces(memoryview(body), limit, charge))
    except zlib.error as fault:
        raise BadGzip(str(fault)) from fault


def _pieces(view: memoryview, limit: int, charge: Callable[[int], None] | None) -> list[bytes]:
    pieces: list[bytes] = []
    total = at = members = 0
    pending: bytes | memoryview = b""
    inflater = None
    while True:
        if not pending and at < len(view):
            pending, at = view[at : at + _FEED], at + _FEED
        if inflater is None:  # between two members
            pending = bytes(pending).lstrip(b"\0") if members else pending  # padding is allowed there, as gzip does
            if not pending and at >= len(view):
                if not members:
                    raise BadGzip("empty")
                return pieces
            if not pending:
                continue
            members += 1
            if members > _MAX_MEMBERS:
                raise BadGzip("too many members")
            inflater = zlib.decompressobj(wbits=31)
        fed = bool(pending)
        piece = inflater.decompress(pending, min(_PIECE, limit - total + 1))
        total += len(piece)
        if total > limit:
            raise TooLarge
        if piece:
            if charge is not None:
                charge(len(piece))
            pieces.append(piece)
        if inflater.eof:
            pending, inflater = inflater.unused_data, None
            continue
        pending = inflater.unconsumed_tail
        if not piece and not fed and at >= len(view):
            raise BadGzip("cut short")
