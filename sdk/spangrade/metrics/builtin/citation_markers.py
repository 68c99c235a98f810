"""Citation markers in an answer, and which document each means."""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

STYLES: Final = ("brackets", "lenticular", "parentheses", "superscript", "url")
_MAX_RANGE: Final = 50
_KEYS: Final = (
    "source",
    "url",
    "uri",
    "link",
    "href",
    "title",
    "file_name",
    "filename",
    "file",
    "path",
    "doc_id",
    "document_id",
    "name",
    "id",
)

_CODE: Final = re.compile(r"```.*?(?:```|\Z)|`[^`\n]{1,300}`", re.DOTALL)
_LIST: Final = r"\d{1,4}(?:\s?[-–—]\s?\d{1,4})?(?:\s?[,;]\s?\d{1,4}(?:\s?[-–—]\s?\d{1,4})?){0,20}"
_BRACKETS: Final = re.compile(rf"\[\^?({_LIST})\](?!\()|\[([^\[\]\n]{{1,120}})\](?!\()")
_LENTICULAR: Final = re.compile(r"【([^【】\n]{1,120})】")
_PARENTHESES: Final = re.compile(rf"(?<=[^\W_])\s?\(({_LIST})\)|(?<=[.!?,;:。])\s?\(({_LIST})\)")
_SUPERSCRIPT: Final = re.compile(
    r"(?<=[^\W\d_]|[.,;:!?)\"”»。])([⁰¹²³⁴⁵⁶⁷⁸⁹]{1,3}(?:[˒,⁻][⁰¹²³⁴⁵⁶⁷⁸⁹]{1,3}){0,10})(?![⁰¹²³⁴⁵⁶⁷⁸⁹⁻])"
)
_SUPER_DIGITS: Final = str.maketrans("⁰¹²³⁴⁵⁶⁷⁸⁹⁻˒", "0123456789-,")
_UNITS: Final = re.compile(r"(?:\b(?:k|c|m|d|µ|n)?m|\b(?:ft|in|yd|s|x|y|n|r|e|a|b))\Z", re.IGNORECASE)  # m², x³
_URL: Final = re.compile(r"https?://[^\s<>\"'()\[\]{}「」【】，。]{3,2000}")
_NUMBER: Final = re.compile(r"\d{1,4}")
#: Bracketed words that look like ids of documents: a word and a number, or a file name.
_ID_LIKE: Final = re.compile(
    r"(?:[a-z]{2,20}[ _:#.-]{0,2}\d{1,6}|[\w-]{1,60}\.(?:pdf|md|txt|html?|docx?|csv|json))\Z", re.IGNORECASE
)


@dataclass(frozen=True, slots=True)
class Marker:
    """A place where the answer cites: ``label`` as written, ``document`` its index or None where there is none such."""

    start: int
    end: int
    label: str
    document: int | None


class Library:
    """The documents, found by position, id, address, title or file name."""

    def __init__(self, documents: Sequence[Any], texts: Sequence[str], first: int = 1) -> None:
        self.count = len(documents)
        self.first = first
        self.texts = texts
        self.ids: dict[str, int] = {}
        self.urls: dict[str, int] = {}
        for number, document in enumerate(documents):
            for name in _names(document):
                if "://" in name:
                    self.urls.setdefault(_address(name), number)
                    tail = name.rstrip("/").rpartition("/")[2]
                    names = (name, tail) if tail else (name,)
                else:
                    names = (name, name.replace("\\", "/").rpartition("/")[2])
                for one in names:
                    if one.strip():
                        self.ids.setdefault(_folded(one), number)

    def by_label(self, label: str) -> int | None:
        """The document of an id, else of a position."""
        found = self.ids.get(_folded(label))
        if found is None and label.isdecimal() and 0 <= int(label) - self.first < self.count:
            found = int(label) - self.first
        if found is None:
            numbered = re.fullmatch(
                r"(?:doc|document|source|src|ref|passage|chunk|context)[ _:#.-]{0,2}(\d{1,4})",
                label.strip(),
                re.IGNORECASE,
            )
            if numbered and not self.ids_like(label) and 0 <= int(numbered.group(1)) - self.first < self.count:
                found = int(numbered.group(1)) - self.first
        return found

    def ids_like(self, label: str) -> bool:
        """Whether documents have ids of this label's form: then ``doc-9`` is an id that is missing and no position."""
        stem = re.sub(r"\d+", "0", _folded(label))
        return any(re.sub(r"\d+", "0", name) == stem for name in self.ids)

    def by_url(self, url: str) -> int | None:
        """The document at an address, else the first whose text has it."""
        address = _address(url)
        found = self.urls.get(address)
        if found is None:
            found = next((n for known, n in self.urls.items() if address.startswith((known + "/", known + "?"))), None)
        if found is None:
            found = next((n for n, text in enumerate(self.texts) if address and address in text.casefold()), None)
        return found


def _names(document: Any) -> Iterator[str]:
    if not isinstance(document, Mapping):
        return
    metadata = document.get("metadata")
    for held in (document, metadata if isinstance(metadata, Mapping) else {}):
        for key in _KEYS:
            value = held.get(key)
            if isinstance(value, (str, int)) and not isinstance(value, bool) and 0 < len(str(value)) <= 2_000:
                yield str(value)


def _folded(label: str) -> str:
    return " ".join(label.casefold().split())


def _address(url: str) -> str:
    address = url.strip().casefold().partition("#")[0].rstrip(".,;:!?*_")
    for beginning in ("https://", "http://", "www."):
        address = address.removeprefix(beginning)
    return address.rstrip("/")


def markers(text: str, library: Library, styles: Sequence[str]) -> list[Marker]:
    """The markers in order. ``styles``: of `STYLES`."""
    readable = _CODE.sub(lambda found: " " * len(found.group()), text)
    found: list[Marker] = []
    readers: dict[str, Callable[[str, Library], Iterator[Marker]]] = {
        "brackets": _brackets, "lenticular": _lenticular, "parentheses": _parentheses, "superscript": _superscripts, "url": _urls,
    }  # fmt: skip
    for style in styles:
        found += readers[style](readable, library)
    return sorted(found, key=lambda marker: (marker.start, marker.end))


def _numbers(listed: str) -> Iterator[str]:
    """The numbers of ``1, 3-5``."""
    for part in re.split(r"[,;]", listed):
        ends = _NUMBER.findall(part)
        if len(ends) == 2 and 0 < int(ends[1]) - int(ends[0]) <= _MAX_RANGE:
            yield from map(str, range(int(ends[0]), int(ends[1]) + 1))
        else:
            yield from ends


def _brackets(text: str, library: Library) -> Iterator[Marker]:
    for found in _BRACKETS.finditer(text):
        if found.group(1) is not None:
            for number in _numbers(found.group(1)):
                yield Marker(*found.span(), f"[{number}]", library.by_label(number))
        else:
            yield from _named(found.group(2), found.span(), library)


def _named(inner: str, span: tuple[int, int], library: Library) -> Iterator[Marker]:
    """Ids in brackets. Other words in brackets (``[sic]``, ``[Name]``, ``[x]``) cite nothing."""
    whole = library.by_label(inner.strip().removeprefix("^"))
    parts = [inner] if whole is not None else re.split(r"[,;]", inner)
    for part in parts:
        label = part.strip().removeprefix("^")
        document = library.by_label(label)
        if document is None and "://" in label:
            document = library.by_url(label)
        if document is not None or _ID_LIKE.match(label):
            yield Marker(*span, f"[{label[:60]}]", document)


def _lenticular(text: str, library: Library) -> Iterator[Marker]:
    """``【1】``, and OpenAI's ``【4:0†source】``, where the number before the colon counts messages and the one after it sources."""
    for found in _LENTICULAR.finditer(text):
        inner, dagger, source = found.group(1).partition("†")
        label = inner.strip()
        document = library.by_label(source.strip()) if dagger else None
        if document is None and re.fullmatch(r"\d{1,4}:\d{1,4}", label):
            label = label.partition(":")[2]
            document = int(label) if int(label) < library.count else None
        elif document is None and re.fullmatch(_LIST, label):
            for number in _numbers(label):
                yield Marker(*found.span(), f"【{number}】", library.by_label(number))
            continue
        document = library.by_label(label) if document is None else document
        if document is not None or dagger or _ID_LIKE.match(label):
            yield Marker(*found.span(), found.group()[:64], document)


def _parentheses(text: str, library: Library) -> Iterator[Marker]:
    """``(1)`` after a word or a full stop. A number that no document has is a year or a step, and no marker."""
    for found in _PARENTHESES.finditer(text):
        numbers = list(_numbers(found.group(1) or found.group(2)))
        if all(library.by_label(number) is not None for number in numbers):
            for number in numbers:
                yield Marker(*found.span(), f"({number})", library.by_label(number))


def _superscripts(text: str, library: Library) -> Iterator[Marker]:
    for found in _SUPERSCRIPT.finditer(text):
        if _UNITS.search(text[max(found.start() - 4, 0) : found.start()]):
            continue
        for number in _numbers(found.group(1).translate(_SUPER_DIGITS)):
            yield Marker(*found.span(), found.group(1), library.by_label(number))


def _urls(text: str, library: Library) -> Iterator[Marker]:
    for found in _URL.finditer(text):
        shown = found.group().rstrip(".,;:!?*_")
        yield Marker(found.start(), found.start() + len(shown), shown[:100], library.by_url(shown))
