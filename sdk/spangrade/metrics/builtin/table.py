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
    "json_valid": BuiltIn(f"{_HERE}.rules:json_valid", "1 when the answer is one strict JSON value"),
    "length_words": BuiltIn(f"{_HERE}.rules:length_words", "how many words the answer has"),
    "no_refusal": BuiltIn(f"{_HERE}.rules:no_refusal", "1 when the answer does not read like a refusal (English)"),
    "overlap": BuiltIn(f"{_HERE}.overlap:overlap", "lexical support of the answer in the documents, 0 to 1"),
}
