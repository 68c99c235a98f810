"""Text that can be encoded and has an end."""

from typing import Final

MAX_CHARS: Final = 1_048_576  # of a value that is read

_MANY: Final = 10_000  # surrogates: to replace them one by one takes long, and nobody wrote so many


def valid(text: str) -> str:
    """``text`` with lone surrogates replaced: they cannot be encoded, and one costs a whole export batch."""
    if text.isascii():
        return text
    try:
        text.encode()
    except UnicodeEncodeError:
        if len(text) - len(text.encode("utf-8", "ignore").decode()) > _MANY:
            return text.encode("utf-8", "replace").decode()
        return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    return text


def cut(text: str, limit: int) -> str:
    """``text`` cut in the middle to about ``limit`` characters, with a mark that says how many are missing."""
    if len(text) <= limit:
        return text
    keep = max(limit // 2, 1)
    return f"{text[:keep]}…[{len(text) - 2 * keep} characters cut]…{text[-keep:]}"


def bounded(text: str, limit: int = MAX_CHARS) -> str:
    """`cut`, then `valid`: the order in which a long text costs least."""
    return valid(cut(text, limit))


def fit(text: str, limit: int) -> str:
    """`bounded`, with the limit in bytes of UTF-8."""
    if len(text) <= limit:
        text = valid(text)
        if text.isascii() or len(text) * 4 <= limit or len(text.encode()) <= limit:
            return text
    keep = max(limit // 2, 1)
    head = valid(text[:keep]).encode()[:keep].decode(errors="ignore")
    tail = valid(text[-keep:]).encode()[-keep:].decode(errors="ignore")
    return f"{head}…[{len(text) - len(head) - len(tail)} characters cut]…{tail}"
