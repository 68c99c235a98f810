"""Images, sound and files among a message's parts: what is said of each in place of it.

``[image: image/png, 12345 bytes, sha256=0123456789abcdef]``, as far as it is known: the media type where the part or a data
URL gives one, the size where the content is there, the hash where `media` has named it; ``by URL`` or ``by id`` where the
content is elsewhere (addresses are not shown: they may hold keys). Nothing known: ``[image]``. Neighbours of one kind are
one mark: ``[image x2: image/png, 8 bytes; by URL]``. Only the ends of long content are looked at.
"""

import re
from collections.abc import Mapping
from typing import Any, Final

from spangrade.samples import scalars

MEDIA: Final = ("image", "audio", "video", "document", "file", "media", "blob", "uri", "binary")
_MAJOR: Final = ("image", "audio", "video")
_DOCUMENTS: Final = frozenset({"application/pdf", "text/plain", "text/markdown", "application/msword"})
_HOLDERS: Final = (
    "source", "image_url", "input_audio", "file", "image", "audio", "video", "inlineData", "inline_data", "fileData",
    "file_data", "document",
)  # fmt: skip
_TYPES: Final = ("mime_type", "mimeType", "mediaType", "media_type", "image.image.mime_type", "audio.audio.mime_type")
_CONTENTS: Final = (
    "data", "content", "blob", "bytes", "base64", "image", "audio", "video", "file_data", "url", "uri", "image_url", "fileUri",
    "file_uri", "image.image.url", "audio.audio.url", "source",
)  # fmt: skip
_IDS: Final = ("file_id", "fileId", "id")
_DATA: Final = re.compile(r"data:([a-zA-Z0-9.+-]{1,64}/[a-zA-Z0-9.+-]{1,64})?[^,]{0,256}?(;base64)?,")
_NAMED: Final = re.compile(
    r"<(?:media ([^ >]{1,130})|base64|bytes) length=(\d{1,15})(?: sha256[^=>]{0,40}=([0-9a-f]{16}))?>"
)
_BASE64: Final = re.compile(r"[A-Za-z0-9+/_\-\r\n]+={0,2}")
_ENDS: Final = 512
_MAX_DEPTH: Final = 2
_SHOWN: Final = 4


def medium_of(part: Mapping[str, Any], fallback: str) -> str:
    """image, audio, video, document or file; or the sender's own word for a modality."""
    modality = scalars.name(part.get("modality"))
    if modality is not None:
        return modality[:32].lower()
    if fallback in ("image", "audio", "video", "document"):
        return fallback
    mime = _Seen(part).mime or ""
    major = mime.partition("/")[0]
    return major if major in _MAJOR else "document" if mime in _DOCUMENTS else "file"


def details_of(part: Mapping[str, Any]) -> str:
    """Media type, size and hash, or how it is referred to; empty where nothing is known."""
    seen = _Seen(part)
    known = [seen.mime] if seen.mime else []
    if seen.size is not None:
        known.append(f"{seen.size} bytes")
        if seen.hash:
            known.append(f"sha256={seen.hash}")
    elif seen.elsewhere:
        known.append(seen.elsewhere)
    return ", ".join(known)


class Mark:
    """The text in place of neighbours of one kind, one after the other. What several say alike is there once."""

    __slots__ = ("_count", "_known", "name")

    def __init__(self, name: str) -> None:
        self.name = name
        self._count = 0
        self._known: list[str] = []

    def add(self, details: str) -> str:
        """One more; returns the text for all."""
        self._count += 1
        if details and len(self._known) <= _SHOWN and details not in self._known:
            self._known.append(details)
        count = "" if self._count == 1 else f" x{self._count}"
        shown = "; ".join(self._known[:_SHOWN]) + ("; ..." if len(self._known) > _SHOWN else "")
        return f"[{self.name}{count}: {shown}]" if shown else f"[{self.name}{count}]"


class _Seen:
    """What a part says of its medium."""

    __slots__ = ("elsewhere", "hash", "mime", "size")

    def __init__(self, part: Mapping[str, Any]) -> None:
        self.mime: str | None = None
        self.size: int | None = None
        self.hash: str | None = None
        self.elsewhere = ""
        self._look(part, 0)

    def _look(self, part: Mapping[str, Any], depth: int) -> None:
        said = scalars.first_name(part, *_TYPES)
        if said is not None and "/" in said and self.mime is None:
            self.mime = said[:130].lower()
        for key in _CONTENTS:
            value = part.get(key)
            if isinstance(value, (str, bytes, bytearray)) and value and self._content(value):
                break
        if depth < _MAX_DEPTH:
            for key in _HOLDERS:
                inner = part.get(key)
                if isinstance(inner, Mapping):
                    self._look(inner, depth + 1)
                    if key == "input_audio" and self.mime is None and isinstance(inner.get("format"), str):
                        self.mime = f"audio/{inner['format'][:16].lower()}"
        if self.size is None and not self.elsewhere and scalars.first_name(part, *_IDS) is not None:
            self.elsewhere = "by id"

    def _content(self, value: Any) -> bool:
        """Whether the value was the content, or says where it is."""
        if not isinstance(value, str):
            self.size = len(value)
            return True
        named = _NAMED.search(value, 0, _ENDS)
        url = _DATA.match(value[:_ENDS])
        if named is not None and (url is not None or named.start() == 0):
            self.mime = self.mime or named[1] or (url[1] if url else None)
            self.size, self.hash = int(named[2]), named[3]
        elif url is not None:
            self.mime = self.mime or url[1]
            if url[2]:
                self.size = _decoded_size(value, url.end())
        elif "://" in value[:16]:
            self.elsewhere = "by URL"
        elif _BASE64.fullmatch(value[:_ENDS]) and len(value) % 4 == 0:
            self.size = _decoded_size(value, 0)
        else:
            return False
        return True


def _decoded_size(text: str, at: int) -> int:
    return (len(text) - at - text[-2:].count("=")) * 3 // 4
