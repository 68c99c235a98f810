"""Built-in metrics that are a rule or a count. Each looks at the answer only."""

import json
import re
from typing import Final

from spangrade.metrics.builtin.text import as_text, words
from spangrade.metrics.local import metric
from spangrade.model.sample import Sample
from spangrade.model.score import Score

_FENCE: Final = re.compile(r"^\s*```(?:json)?\s*\n(.*?)\n\s*```\s*$", re.DOTALL | re.IGNORECASE)


@metric(name="json_valid", version=1, requires=("output",))
def json_valid(sample: Sample) -> Score:
    """1 when the answer is one strict JSON value, else 0. A whole answer in a Markdown fence counts, and is said to be.

    It does not look at what the JSON says; NaN and Infinity are not JSON (RFC 8259).
    """
    if not isinstance(sample.output, str):
        return Score(1, explanation="a structured value")

    def refuse(constant: str) -> None:
        raise ValueError(f"{constant} is not JSON")

    fenced = _FENCE.match(sample.output)
    try:
        json.loads(fenced.group(1) if fenced else sample.output, parse_constant=refuse)
    except (ValueError, RecursionError) as fault:
        return Score(0, explanation=str(fault) if isinstance(fault, ValueError) else "nested too deep to parse")
    return Score(1, explanation="valid JSON in a Markdown fence" if fenced else "valid JSON")


@metric(name="length_words", version=1, verdict=False, requires=("output",))
def length_words(sample: Sample) -> Score:
    """How many words the answer has. A measurement: neither pass nor fail."""
    return Score(len(words(as_text(sample.output))))


_REFUSALS: Final = re.compile(
    r"\b(?:i(?:'m| am) (?:sorry|afraid|unable|not able)|i (?:can(?:no|')t|cannot|am unable to|won't|do(?: not|n't) (?:have|know))"
    r"|as an ai\b|(?:can(?:no|')t|unable to) (?:help|assist|answer|provide)"
    r"|(?:no|not (?:any|enough)) information (?:about|on|in|is|to))",
    re.IGNORECASE,
)


@metric(name="no_refusal", version=1, requires=("output",))
def no_refusal(sample: Sample) -> Score:
    """1 when the answer does not read like a refusal, else 0. English phrases near the answer's start.

    A refusal that the model's own API marked counts too. It cannot tell a right refusal from a wrong one, and misses
    refusals in other words or languages.
    """
    if sample.context.get("refusal"):
        return Score(0, explanation="the model marked its answer as a refusal")
    found = _REFUSALS.search(as_text(sample.output)[:400].replace("’", "'"))
    return Score(0, explanation=f"reads like a refusal: “{found.group()}”") if found else Score(1)
