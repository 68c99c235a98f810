"""`json_valid`: whether the answer is JSON.

What it measures: 1 when the answer is exactly one JSON value by RFC 8259, else 0, with the place of the first fault. A whole
answer in one Markdown fence counts, and is said to be one; NaN, Infinity, comments, trailing commas and text around the value
do not. A key that stands twice in one object is allowed by the RFC (its meaning is not), so it is said and counts.

What it does not: what the JSON says. A lone number or ``null`` is JSON; for a shape use `json_schema`. An output that was
traced as a structured value is JSON by nature.

Source: RFC 8259. No threshold: 0 fails, 1 passes.
"""

from spangrade.metrics.builtin.jsontext import read_json
from spangrade.metrics.local import metric
from spangrade.model.sample import Sample
from spangrade.model.score import Score


@metric(name="json_valid", version=1, requires=("output",))
def json_valid(sample: Sample) -> Score:
    """1 when the answer is one strict JSON value, else 0. See the module's docstring."""
    try:
        read = read_json(sample.output)
    except ValueError as fault:
        return Score(0, explanation=str(fault))
    if not isinstance(sample.output, str):
        return Score(1, explanation="a structured value")
    why = "valid JSON in a Markdown fence" if read.fenced else "valid JSON"
    if read.repeated is not None:
        why += f"; the key {read.repeated[:80]!r} is given twice"
    return Score(1, explanation=why)
