"""HTML that is escaped by construction: every text that becomes part of an element passes `escaped`, once, here.

Nothing else in the page writes a ``<``, the style sheet's own tag apart. What is `Html` already is taken as it is; a plain str never is.
"""

import html
import re
from collections.abc import Iterable
from typing import Final, Union

Child = Union["Html", str, int, float, None, Iterable["Child"]]

_VOID: Final = frozenset({"meta", "input"})
_NAME: Final = re.compile(r"[a-z][a-z0-9]*\Z")
_ATTRIBUTE: Final = re.compile(r"[a-zA-Z][a-zA-Z0-9-]*\Z")

# Characters that show nothing, or turn the text around them round, become visible: a reader should see what a model saw.
# The isolates U+2066 to U+2069 stay: honest right-to-left text uses them, and they end with their element.
_VISIBLE: Final = {
    **{code: chr(0x2400 + code) for code in range(32) if chr(code) not in "\t\n"},
    0x7F: "\u2421",
    **{code: f"\u27e6U+{code:04X}\u27e7" for code in (*range(0x80, 0xA0), *range(0x202A, 0x202F))},
}


class Html(str):
    """Markup that is safe as it stands. Made by `element`, `joined` and `escaped` only."""

    __slots__ = ()


def escaped(text: object) -> Html:
    """A text as HTML text and as an attribute's value."""
    plain = text if isinstance(text, str) else str(text)
    return Html(html.escape(plain.replace("\r\n", "\n").translate(_VISIBLE), quote=True))


def joined(*children: Child) -> Html:
    """Several, one after the other."""
    return Html("".join(_flat(children)))


def element(tag: str, *children: Child, **attributes: str | int | float | bool | None) -> Html:
    """``<tag attributes>children</tag>``.

    Attribute names: a trailing underscore is left out (``class_``), others become hyphens (``http_equiv``). None and
    False leave an attribute out, True gives it no value.

    Raises:
        ValueError: a tag or attribute name that is none: they are never anybody's text.
    """
    if not _NAME.match(tag):
        raise ValueError(f"{tag!r} is no tag")
    opening = [tag]
    for name, value in attributes.items():
        written = name.rstrip("_").replace("_", "-")
        if not _ATTRIBUTE.match(written) or written.lower().startswith("on") or written == "style":
            raise ValueError(f"{written!r} is no attribute that the page uses")
        if value is None or value is False:
            continue
        opening.append(written if value is True else f'{written}="{escaped(value)}"')
    start = f"<{' '.join(opening)}>"
    return Html(start if tag in _VOID else f"{start}{joined(*children)}</{tag}>")


def _flat(children: Iterable[Child]) -> Iterable[str]:
    for child in children:
        if child is None:
            continue
        if isinstance(child, Html):
            yield child
        elif isinstance(child, (str, int, float)):
            yield escaped(child)
        else:
            yield from _flat(child)
