"""The built-in metrics, by name: where each is and what it says of a sample, in a line. Nothing is imported for it.

A new built-in is one line here. What stands at ``path`` is one of:

- a metric (`LocalMetric`, a functional metric): used as it is; ``threshold`` and the like of a configuration file change a copy;
- a `BaseMetric` class: made with the file's ``config``, checked against its ``config_schema``;
- with ``factory=True``, a function whose keyword parameters are the ``config`` and that returns the metric. It is called
  without arguments where no ``config`` is given, so parameters without a default must be given.
"""

from dataclasses import dataclass
from typing import Final


@dataclass(frozen=True, slots=True)
class BuiltIn:
    """One line of the table.

    Attributes:
        path: ``"module:attribute"``.
        summary: what it says of a sample, without a full stop.
        extra: the extra of this distribution that it needs (``pip install "spangrade[local]"``), or empty.
        factory: the attribute is a function that makes the metric; see the module's docstring.
    """

    path: str
    summary: str
    extra: str = ""
    factory: bool = False


_HERE: Final = "spangrade.metrics.builtin"

BUILTIN: Final[dict[str, BuiltIn]] = {
    "citations": BuiltIn(
        f"{_HERE}.citations:citations",
        "citations that point to documents, sentences with one, and whether the document says it",
        factory=True,
    ),
    "cost": BuiltIn(f"{_HERE}.cost:cost", "US dollars of the call's model calls, by list prices", "cost", factory=True),
    "answer_relevance": BuiltIn(
        f"{_HERE}.relevance:answer_relevance",
        "nearness in subject of the answer to the question; a measurement",
        "local",
    ),
    "context_relevance": BuiltIn(
        f"{_HERE}.relevance:context_relevance",
        "nearness in subject of the documents to the question; a measurement",
        "local",
    ),
    "groundedness": BuiltIn(
        f"{_HERE}.groundedness:groundedness", "probability that the documents bear the answer out", "local"
    ),
    "json_schema": BuiltIn(
        f"{_HERE}.json_schema:json_schema",
        "1 when the answer is JSON that is valid against a schema",
        "schema",
        factory=True,
    ),
    "json_valid": BuiltIn(f"{_HERE}.json_valid:json_valid", "1 when the answer is one strict JSON value"),
    "keywords": BuiltIn(
        f"{_HERE}.keywords:keywords", "1 when the answer has the words it must, and no others", factory=True
    ),
    "language_match": BuiltIn(
        f"{_HERE}.language_match:language_match",
        "share of the answer in the question's language",
        "local",
        factory=True,
    ),
    "latency": BuiltIn(f"{_HERE}.latency:latency", "seconds from the start of the call to its end", factory=True),
    "length_chars": BuiltIn(f"{_HERE}.length:length_chars", "how many characters the answer has", factory=True),
    "length_words": BuiltIn(f"{_HERE}.length:length_words", "how many words the answer has", factory=True),
    "no_refusal": BuiltIn(
        f"{_HERE}.refusal:no_refusal", "1 when the answer does not read like a refusal, in 15 languages"
    ),
    "pii": BuiltIn(f"{_HERE}.pii:pii", "how many personal data and secrets the answer has", factory=True),
    "refusal": BuiltIn(f"{_HERE}.refusal:refusal", "1 when the answer reads like a refusal; a measurement"),
    "regex": BuiltIn(f"{_HERE}.regex:regex", "1 when the answer matches a pattern, or must not", "rules", factory=True),
    "time_to_first_chunk": BuiltIn(
        f"{_HERE}.latency:time_to_first_chunk", "seconds to the first piece of a streamed answer", factory=True
    ),
    "tool_calls_valid": BuiltIn(
        f"{_HERE}.tool_calls_valid:tool_calls_valid",
        "share of tool calls that the declared tools allow",
        "schema",
        factory=True,
    ),
    "tokens": BuiltIn(f"{_HERE}.tokens:tokens", "tokens that the call's models read and wrote", factory=True),
    "overlap": BuiltIn(f"{_HERE}.overlap:overlap", "lexical support of the answer in the documents, 0 to 1"),
}
