"""`length_words`, `length_chars`: how long the answer is.

What they measure: words as a reader counts them (``state-of-the-art`` is one, each Chinese or Japanese character is one, a
script without spaces such as Thai counts a run as one), or characters (code points, white space included). Of a structured
answer its texts and numbers are counted, its keys are not.

What they do not: quality. Length is the first thing to look at beside any other score, since much of what looks like quality
turns out to be length.

A measurement: neither pass nor fail. ``threshold=`` makes it pass what is at most that long. Source: none; it is a count.
"""

from spangrade.metrics.builtin.options import measurement
from spangrade.metrics.builtin.text import as_text
from spangrade.metrics.builtin.words import count_words
from spangrade.metrics.local import LocalMetric
from spangrade.model.sample import Sample
from spangrade.model.score import Score


def length_words(*, threshold: float | None = None, name: str = "length_words", target: str = "root") -> LocalMetric:
    """How many words the answer has; with ``threshold`` it passes at most so many."""

    def length(sample: Sample) -> Score:
        return Score(count_words(as_text(sample.output)))

    return measurement(length, name=name, threshold=threshold, target=target, requires=("output",))


def length_chars(*, threshold: float | None = None, name: str = "length_chars", target: str = "root") -> LocalMetric:
    """How many characters the answer has; with ``threshold`` it passes at most so many."""

    def length(sample: Sample) -> Score:
        return Score(len(as_text(sample.output)))

    return measurement(length, name=name, threshold=threshold, target=target, requires=("output",))
