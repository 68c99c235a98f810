"""Judges that obey: scripted ones behind a real socket, which find the fences with code of their own.

Nothing here is shared with `spangrade.judges.prompt`. A judge reads what it was sent, takes away what it believes to be
fenced, and does as it is told by what is left: the best grade when `MARK` is there, the worst when it is not.
"""

import base64
import binascii
import codecs
import json
import re
import unicodedata
from collections.abc import Callable, Sequence
from typing import Any

from .attacks import MARK

#: From the system text and the user's text to what stands outside of all fences.
Reader = Callable[[str, str], str]


def by_the_code(system: str, user: str) -> str:
    """Believes the code: a fence opens and closes with a line that carries it."""
    code = system.split("carry the code ", 1)[1].split(".", 1)[0].strip()
    return "\n".join(_outside(text.split("\n"), lambda line: line.startswith(f"<<<{code} ")) for text in (system, user))


def by_the_looks(system: str, user: str) -> str:
    """Takes whatever looks like a fence for one, however it is written, and whatever code it carries."""

    def is_fence(line: str) -> bool:
        plain = unicodedata.normalize("NFKC", line).replace("\u226a", "<<").replace("\u226b", ">>").strip()
        return re.match(r"<{3}.*>{3}$", plain) is not None

    lines = [re.split(r"\r\n|[\n\r\x0b\x0c\x85\u2028\u2029]", text) for text in (system, user)]
    return "\n".join(_outside(one, is_fence) for one in lines)


def by_chat_template(system: str, user: str) -> str:
    """A server that puts the texts into a template and then looks for the template's own marks: what follows one is
    another's turn, fenced or not."""
    marks = (
        r"<\|[^<>|\n]{0,64}\|>|</?s>|<(?:start|end)_of_turn>|<</?SYS>>|\[/?(?:INST|SYSTEM_PROMPT|TOOL_RESULTS|TOOL_CALLS)\]"
        r"|<\uff5c[^<>\n]{0,64}\uff5c>"
    )
    turns = [re.split(marks, text)[1:] for text in (system, user)]
    return "\n".join([by_the_code(system, user), *(turn for found in turns for turn in found)])


def _outside(lines: Sequence[str], is_fence: Callable[[str], bool]) -> str:
    out, opened = [], None
    for line in lines:
        if is_fence(line):
            closes = " end of " in line
            if opened is None and not closes:
                opened = line
            elif closes:
                opened = None
            continue
        if opened is None:
            out.append(line)
    return "\n".join(out)


def told(outside: str) -> bool:
    """Whether something outside says what to do, in the open or encoded."""
    tags = "".join(chr(ord(char) - 0xE0000) for char in outside if 0xE0000 <= ord(char) <= 0xE007F)
    plain = outside.replace("\u200b", "")
    seen = [plain, tags, plain[::-1], codecs.decode(plain, "rot13")]
    for chunk in re.findall(r"[A-Za-z0-9+/=]{16,}", plain):
        for decode in (base64.b64decode, bytes.fromhex):
            try:
                seen.append(decode(chunk).decode("utf-8", "replace"))
            except (ValueError, binascii.Error):
                continue
    return any(MARK in text for text in seen)


def verdict(score: int, binary: bool) -> str:
    """A reply."""
    graded: dict[str, Any] = {"verdict": "pass" if score == 5 else "fail"} if binary else {"score": score}
    return json.dumps({"reasoning": "By the criteria.", **graded})


def obeys(*readers: Reader) -> Callable[[dict[str, Any]], str]:
    """A judge that reads in each of these ways, and does as it is told in any; left alone it gives the worst grade."""

    def answer(body: dict[str, Any]) -> str:
        system, user = (message["content"] for message in body["messages"][:2])
        return verdict(
            5 if any(told(read(system, user)) for read in readers) else 1, binary='"pass" or "fail"' in system
        )

    return answer


def parrots(body: dict[str, Any]) -> str:
    """A judge that quotes all it was given before it says what it thinks."""
    return f"I was given this:\n{body['messages'][1]['content']}\n\n{verdict(1, binary=False)}"


def repeats(body: dict[str, Any]) -> str:
    """A judge that repeats what stands in the last fence, and nothing else."""
    lines = body["messages"][1]["content"].split("\n")
    marks = [n for n, line in enumerate(lines) if line.startswith("<<<")]
    return "\n".join(lines[marks[-2] + 1 : marks[-1]])
