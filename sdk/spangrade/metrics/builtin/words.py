"""Words and sentences, the way the lexical metrics count them. No model, no network; the time taken grows with the text.

A script without spaces between words (Chinese, Japanese, Thai, Lao, Khmer, Burmese) gives pairs of neighbouring
characters in place of words, as search engines index it.
"""

import re
import unicodedata
from collections.abc import Iterator
from typing import Final

# Marks that belong to the letter before them and that Python's \w leaves out: accents, vowel signs, tone marks.
MARKS: Final = (
    "\u0300-\u036f\u0483-\u0487\u0591-\u05c7\u0610-\u061a\u064b-\u065f\u0670\u06d6-\u06ed\u0711\u0730-\u074a\u07a6-\u07b0"
    "\u0900-\u0963\u0966-\u0dff\u0e31\u0e34-\u0e3a\u0e47-\u0e4e\u0eb1\u0eb4-\u0ebc\u0ec8-\u0ece\u0f18-\u0f3f\u0f71-\u0f84"
    "\u102b-\u103e\u1056-\u109d\u17b4-\u17d3\u1dc0-\u1dff\u20d0-\u20f0\u3099\u309a\ufe20-\ufe2f\u200c\u200d"
)
# A number keeps its points (1.5, 1,000, 09:30, 2024-01-31) and leaves its unit (5kg); a word keeps its apostrophe (don't).
_NUMBER: Final = r"\d+(?:[.,:/\-]\d+)*"
_WORD: Final = re.compile(rf"{_NUMBER}|\w[\w{MARKS}]*(?:'\w[\w{MARKS}]*)*")
_ASCII_WORD: Final = re.compile(rf"{_NUMBER}|[a-z0-9]+(?:'[a-z0-9]+)*")
_THOUSANDS: Final = re.compile(r"\d{1,3}(?:,\d{3})+(?:\.\d+)?")
_CJK: Final = "\u3005-\u3007\u3041-\u3096\u30a1-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0003ffff"
_SPACELESS_CHARS: Final = rf"{_CJK}\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff"
SPACELESS: Final = re.compile(rf"[{_SPACELESS_CHARS}][{_SPACELESS_CHARS}{MARKS}]*")
_CHARACTER: Final = re.compile(rf"[{_CJK}]")
_COUNTED: Final = re.compile(rf"\w[\w{MARKS}]*(?:['’.,:/-]\w[\w{MARKS}]*)*")

# Words that say nothing of the subject: they are in every answer and every document (English; other languages lose a
# little sharpness, no more).
STOPWORDS: Final = frozenset(
    """
    a about after all also an and any are as at be been before between but by can could did do does down for from had
    has have he her his how i if in into is it its may more most my no not of on only or our out over please she should
    so some such than that the their them then there these they this to under up was we were what when where which who
    will with would yes you your
    """.split()  # noqa: SIM905 - a list of words reads better as words
)


def words(text: str) -> list[str]:
    """Words and numbers in order, folded so that ``Straße`` meets ``STRASSE`` and ``１`` meets ``1``; stop words included."""
    if text.isascii():
        found = _ASCII_WORD.findall(text.lower())
    else:
        folded = unicodedata.normalize("NFKC", text).casefold().replace("’", "'").replace("_", " ")
        found = _WORD.findall(folded)
        if SPACELESS.search(folded):
            found = [piece for word in found for piece in _pieces(word)]
    if "," in text:
        found = [word.replace(",", "") if "," in word and _THOUSANDS.fullmatch(word) else word for word in found]
    return found


def _pieces(word: str) -> Iterator[str]:
    """A run of a script without spaces as its overlapping pairs of characters; the rest of the word as it is."""
    at = 0
    for run in SPACELESS.finditer(word):
        if run.start() > at:
            yield word[at : run.start()]
        characters = run.group()
        if len(characters) == 1:
            yield characters
        else:
            yield from (characters[i : i + 2] for i in range(len(characters) - 1))
        at = run.end()
    if at < len(word):
        yield word[at:]


def count_words(text: str) -> int:
    """How many words a reader would count: ``state-of-the-art`` is one, each Chinese or Japanese character is one."""
    if text.isascii():
        return len(_COUNTED.findall(text))
    rest, characters = _CHARACTER.subn(" ", text)
    return characters + len(_COUNTED.findall(rest))


def content_words(text: str) -> list[str]:
    """`words` without the stop words, plural and possessive endings cut off."""
    # Most words do not end so: the call is what would take the time.
    return [stem(word) if word[-1] == "s" else word for word in words(text) if word not in STOPWORDS]


def stem(word: str) -> str:
    """A very light stem: ``refunds`` and ``refund's`` meet ``refund``; nothing cleverer, so nothing is conflated."""
    if word[-1:] != "s":
        return word
    if word.endswith("'s"):
        return word[:-2]
    if len(word) > 4 and word.endswith("ies"):
        return word[:-3] + "y"
    if len(word) > 3 and not word.endswith("ss"):
        return word[:-1]
    return word


# --- sentences -----------------------------------------------------------------------------------------------------------

_END: Final = re.compile(r"""(?<![.!?])[.!?]++["'”’»)\]*_]*+\s++|[。！？｡।॥؟۔።။។]++["'”’」』）)\]]*+\s*+|…\s++|\n++""")
_BULLET: Final = re.compile(r"^\s*(?:[-*+•‣–>#]+|\(?\d{1,3}[.)]|\(?[a-zA-Z]\))\s+")
_ABBREVIATIONS: Final = frozenset(
    """
    al approx bzw ca cf co corp dept dr e.g etc ges gr hr i.e inc jr lt ltd mr mrs ms prof resp s.a sog sr st str tel u.a u.s
    vgl vs z.b z.bsp jan feb mar apr jun jul aug sep sept oct nov dec
    """.split()  # noqa: SIM905 - likewise
)
_BEFORE_NUMBERS: Final = frozenset(
    ("abs", "art", "ch", "eq", "fig", "max", "min", "no", "nr", "num", "op", "p", "pp", "sec", "sect", "vol")
)
_LETTERS: Final = re.compile(r"[^\W_]")
_LAST: Final = re.compile(r"[^\s(\[\"'“„«]+$")


def sentences(text: str) -> Iterator[str]:
    """Sentences with at least one word in them, bullets and numbering cut off.

    ``Dr. Smith``, ``e.g. this``, ``J. Doe`` and ``1.5`` do not end one; a line break does.
    """
    for start, end in sentence_spans(text):
        part = unbulleted(text[start:end])
        if _LETTERS.search(part):
            yield part


def unbulleted(text: str) -> str:
    """Text without a bullet or numbering at its beginning."""
    return _BULLET.sub("", text, count=1).strip()


def sentence_spans(text: str) -> Iterator[tuple[int, int]]:
    """``(start, end)`` of the sentences as they stand, which together are the whole text."""
    start = 0
    for end in _END.finditer(text):
        if "\n" not in end.group() and text[end.start()] == "." and not _ends(text, start, end):
            continue
        yield start, end.end()
        start = end.end()
    if start < len(text):
        yield start, len(text)


def _ends(text: str, start: int, end: re.Match[str]) -> bool:
    """Whether a full stop before white space ends the sentence."""
    following = text[end.end() : end.end() + 1]
    if following.islower():
        return False
    last = _LAST.search(text, max(start, end.start() - 12), end.start())
    word = last.group() if last else ""
    if len(word) == 1 and word.isalpha() and word.isupper():
        return False  # an initial
    if word.isdigit() and not text[start : end.start() - len(word)].strip():
        return False  # numbering at a line's beginning
    word = word.lower()
    if word in _BEFORE_NUMBERS:
        return not following.isdigit()
    return word not in _ABBREVIATIONS or (word == "etc" and following.isupper())
