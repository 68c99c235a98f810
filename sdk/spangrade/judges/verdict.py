"""From a judge's reply to one grade, or to the reason why there is none.

The rule is: exactly one verdict, inside the scale, and no doubt which one it is. Whatever may be a quotation, a
thought, a second opinion or the rest of a broken object gives a `JudgeError`; it never gives a number (promise 4), and
text that was graded and is quoted in the reply never wins (promise 9).
"""

import json
import re
import unicodedata
from dataclasses import dataclass
from typing import Any, Final, NoReturn

from spangrade._values import bounded
from spangrade.errors import JudgeError
from spangrade.judges.scale import SCALES, NotAGrade, OutOfScale, Scale
from spangrade.model.score import MAX_EXPLANATION

MAX_REPLY: Final = 131_072
MAX_BROKEN: Final = 64
EXCERPT: Final = 200

_CUT_SHORT: Final = frozenset({"length", "max_tokens", "max_output_tokens", "model_length"})
_FILTERED: Final = frozenset({"content_filter", "safety", "recitation", "prohibited_content"})
_REASONS: Final = ("reasoning", "reason", "explanation", "rationale")
_TAG: Final = r"think|thinking|thoughts?|reasoning|reflection|scratchpad"
_MARK: Final = re.compile(rf"\{{|<(?P<end>/?)(?:{_TAG})\s*>|\[(?P<end2>/?)think\]", re.IGNORECASE)
_THOUGHT_END: Final = re.compile(rf"</(?:{_TAG})\s*>|\[/think\]", re.IGNORECASE)
_FENCE: Final = re.compile(r"`{3,}[\w-]*")
_MARKDOWN: Final = re.compile(r"`{3,}[\w-]*|[*_`]")
_BROKEN: Final = re.compile(r"\{\s*[\"'“”\u2018\u2019]")  # where an object began that is no JSON
_LAYOUT: Final = re.compile(r"[\s\\]+")
_OBJECT: Final = "\0"  # stands for a JSON object in what is left of the reply
_LABEL: Final = r"(?:score|rating|grade|verdict)"
_STATED: Final = re.compile(
    rf"\b{_LABEL}\b[\"'“”*_\s]*(?:[:=]|\b(?:is|of)\b)[\"'“”*_\s]*(?P<value>[^\s,;{{}}()]+)", re.IGNORECASE
)
_PLAIN: Final = re.compile(
    rf"(?:(?:final|overall|my)\s+)?(?:{_LABEL}\s*(?:[:=]|\bis\b)\s*)?(?P<value>.+)", re.IGNORECASE
)
_REFUSAL: Final = re.compile(
    r"(?:i['\u2019]?m (?:very )?sorry|(?:i am )?sorry|i apologi[sz]e|unfortunately,? i|as an ai\b"
    r"|i (?:can['\u2019]?t|can ?not|won['\u2019]?t)\b|i(?:['\u2019]m| am) (?:unable|not able))",
    re.IGNORECASE,
)


class _Pairs(list[tuple[str, Any]]):
    """A JSON object as it was written, keys that come twice included."""


def _no_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is not JSON")


# strict=False takes raw line breaks inside strings, which small models write.
_DECODER: Final = json.JSONDecoder(object_pairs_hook=_Pairs, parse_constant=_no_constant, strict=False)


@dataclass(frozen=True, slots=True)
class _Read:
    """A reply taken apart: its JSON objects, as read and as written, and the rest with `_OBJECT` where one stood."""

    objects: tuple[_Pairs, ...]
    texts: tuple[str, ...]
    rest: str


def read_verdict(
    text: str | None,
    finish_reason: str | None,
    scale: Scale | str,
    *,
    refusal: str | None = None,
    graded: str = "",
) -> tuple[str, float]:
    """``(reasoning, grade)`` of a judge's reply; the grade is a level (1-5) or a bool (binary: True for pass).

    Read are: one JSON object with the scale's key, alone, in a fence, after thoughts in tags, or on lines of its own
    with prose around; or a reply that is nothing but the grade (``4``, ``4/5``, ``Score: 4``, ``pass.``).

    Args:
        text: the reply's text.
        finish_reason: as the endpoint gave it.
        scale: a `Scale`, or the name of one.
        refusal: the reply's refusal, where the endpoint gave one.
        graded: the text that was graded. A verdict with a reasoning that stands in it word for word is a copy, planted
            there to be repeated or quoted, and is refused.

    Raises:
        JudgeError: kind content_filter, refused, truncated (also when a whole verdict was there), empty, unparseable,
            several_verdicts or out_of_range. The message quotes at most 200 characters of the reply.
    """
    if isinstance(scale, str):
        scale = SCALES[scale]
    reason = (finish_reason or "").lower()
    if reason in _FILTERED:
        raise JudgeError("content_filter", "the endpoint filtered the judge's reply")
    if refusal and refusal.strip():
        raise JudgeError("refused", f"the judge refused: {bounded(refusal.strip(), EXCERPT)}")
    reply = _trim(text or "")
    if reason in _CUT_SHORT:
        raise JudgeError("truncated", f"the reply reached the token limit before its end{_quote(reply)}")
    if not reply:
        raise JudgeError("empty", "the judge's reply has no text")
    if len(reply) > MAX_REPLY:
        raise JudgeError("unparseable", f"the reply is {len(reply)} characters long; at most {MAX_REPLY} are read")
    read = _take_apart(reply)
    verdicts = [pairs for pairs in read.objects if _graded(pairs, scale)]
    if not verdicts:
        return _without_object(read, scale, reply)
    stated = [value for pairs in verdicts for value in _graded(pairs, scale)]
    if len(stated) > 1:
        raise JudgeError("several_verdicts", f"the reply holds {len(stated)} verdicts{_quote(reply)}")
    if len(read.objects) > 1:
        raise _unparseable("it holds several objects, so the one with the verdict may be a quotation", reply)
    grade = _read_grade(stated[0], scale, reply)
    if _contradicts(read.rest, grade, scale):
        raise JudgeError("several_verdicts", f"the text around the verdict states another one{_quote(reply)}")
    reasoning = _reasoning(verdicts[0])
    if doubt := _doubt(read.rest, reasoning):
        raise _unparseable(doubt, reply)
    if reasoning and _squeezed(read.texts[0]) in _squeezed(graded):
        raise _unparseable("its verdict is copied from the graded text", reply)
    return reasoning or "", grade


def _take_apart(reply: str) -> _Read:
    """The reply without its thoughts, as JSON objects and the rest. Tags and braces inside an object are its text."""
    objects: list[_Pairs] = []
    texts: list[str] = []
    rest: list[str] = []
    at = broken = 0
    while mark := _MARK.search(reply, at):
        rest.append(reply[at : mark.start()].replace(_OBJECT, ""))
        at = mark.end()
        if mark.group() == "{":
            try:
                found, at = _DECODER.raw_decode(reply, mark.start())
            except (ValueError, RecursionError):
                broken += 1
                if broken > MAX_BROKEN:
                    raise _unparseable("it is full of braces that are not JSON", reply) from None
                rest.append("{")
                continue
            objects.append(found)
            texts.append(reply[mark.start() : at])
            rest.append(_OBJECT)
        elif objects and not (mark["end"] or mark["end2"]):
            raise _unparseable("thoughts follow an object, so it is not certain which one counts", reply)
        elif mark["end"] or mark["end2"]:  # an end without a beginning: all before it was thought
            before = "".join(rest)
            if _is_open(before) or _FENCE.sub("", before).lstrip().startswith(("{", _OBJECT)):
                raise _unparseable("a thinking tag stands inside or after an object", reply)
            objects, texts, rest = [], [], []
        else:
            end = _THOUGHT_END.search(reply, at)
            if end is None:
                raise _unparseable("it ends inside the judge's thoughts", reply)
            at = end.end()
    rest.append(reply[at:].replace(_OBJECT, ""))
    return _Read(tuple(objects), tuple(texts), "".join(rest))


def _graded(pairs: _Pairs, scale: Scale) -> list[Any]:
    """What stands under the scale's keys, however often."""
    return [value for key, value in pairs if key.strip().casefold() in scale.keys]


def _read_grade(raw: object, scale: Scale, reply: str) -> float:
    try:
        return scale.read(raw)
    except OutOfScale as fault:
        raise JudgeError("out_of_range", f"the verdict is not on the scale: {fault}{_quote(reply)}") from None
    except NotAGrade as fault:
        raise _unparseable(f"its verdict is no grade: {fault}", reply) from None


def _reasoning(pairs: _Pairs) -> str | None:
    """The first of the reasoning keys that holds text (or a list of texts); None where there is none of them."""
    by_key = {key.strip().casefold(): value for key, value in reversed(pairs)}
    for value in (by_key.get(key) for key in _REASONS):
        if isinstance(value, list) and value and all(isinstance(line, str) for line in value):
            return bounded("\n".join(value), MAX_EXPLANATION)
        if isinstance(value, str):
            return bounded(value, MAX_EXPLANATION)
    return None


def _contradicts(rest: str, grade: float, scale: Scale) -> bool:
    """Whether the text around the verdict states one that differs: "Score: 2" beside a 4."""
    for match in _STATED.finditer(rest):
        try:
            if scale.read(match["value"]) != grade:
                return True
        except OutOfScale:
            return True
        except NotAGrade:
            continue
    return False


def _doubt(rest: str, reasoning: str | None) -> str | None:
    """Why the one verdict object may not be the judge's own; None when nothing but fences or plain prose is around it.

    With prose around, it must stand on lines of its own and hold a reasoning: a quotation in a sentence does not.
    """
    prose = _FENCE.sub("", rest)
    if not prose.replace(_OBJECT, "").strip():
        return None
    if _BROKEN.search(prose) or _is_open(prose.rpartition(_OBJECT)[0] + _OBJECT):
        return "its verdict stands beside or inside a broken object"
    if reasoning is None:
        return "its verdict stands in prose and has no reasoning"
    if not all(line.strip() == _OBJECT for line in prose.splitlines() if _OBJECT in line):
        return "its verdict stands in the middle of a sentence, as a quotation would"
    return None


def _without_object(read: _Read, scale: Scale, reply: str) -> tuple[str, float]:
    """A reply without a verdict object: nothing but the grade itself is read."""
    if read.objects:
        raise _unparseable(f'it has no key "{scale.keys[0]}"', reply)
    prose = _trim(_MARKDOWN.sub("", read.rest))
    if not prose:
        raise JudgeError("empty", f"nothing is left of the reply without its thoughts{_quote(reply)}")
    if _REFUSAL.match(prose):
        raise JudgeError("refused", f"the judge refused: {bounded(prose, EXCERPT)}")
    match = _PLAIN.fullmatch(prose)
    if match is None:
        raise _unparseable("it is not the JSON object that was asked for", reply)
    return "", _read_grade(match["value"], scale, reply)


def _is_open(text: str) -> bool:
    """Whether a brace is still open at the end of ``text``, or where an object stands in it."""
    depth = 0
    for char in text:
        if char == "{":
            depth += 1
        elif char == "}":
            depth = max(depth - 1, 0)
        elif char == _OBJECT and depth:
            return True
    return depth > 0


def _squeezed(text: str) -> str:
    """Without blanks and backslashes, so that neither layout nor JSON's escapes hide a copy."""
    return _LAYOUT.sub("", text)


def _trim(text: str) -> str:
    """``text`` without blanks, byte order marks and direction marks at its ends."""
    start, end = 0, len(text)
    while start < end and _is_blank(text[start]):
        start += 1
    while end > start and _is_blank(text[end - 1]):
        end -= 1
    return text[start:end]


def _is_blank(char: str) -> bool:
    return char.isspace() or unicodedata.category(char) in ("Cf", "Cc")


def _quote(reply: str) -> str:
    return f": {bounded(reply, EXCERPT)}" if reply else ""


def _unparseable(why: str, reply: str) -> JudgeError:
    return JudgeError("unparseable", f"the reply cannot be read: {why}{_quote(reply)}")
