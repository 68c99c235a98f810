"""Two of the metrics that the demo scores with: the forms that a metric of your own can take.

`agent.yaml` names them, beside one that comes with Spangrade and a judge.
"""

from __future__ import annotations

import re

import spangrade as sg

WORD_LIMIT = 30
REFUSALS = ("do not know", "don't know", "not sure", "cannot answer", "can't answer", "unable to", "not specified")


@sg.metric(threshold=1.0)
def concise(sample: sg.Sample) -> sg.Score:
    """1.0 up to the word limit, and less the further the answer goes past it. Gets the whole sample."""
    count = len(str(sample.output).split())
    return sg.Score(min(1.0, WORD_LIMIT / max(1, count)), explanation=f"{count} words; {WORD_LIMIT} are enough")


@sg.metric
def answers_directly(answer: str) -> sg.Score:
    """Whether it answers at all. Parameters named like fields of a sample are filled by their names."""
    if len(re.findall(r"[a-z]{2,}", answer.lower())) < 3:
        return sg.Score(0.0, explanation="there is no sentence in it")
    for phrase in REFUSALS:
        if phrase in answer.lower():
            return sg.Score(0.0, explanation=f'it says "{phrase}"')
    return sg.Score(1.0, explanation="a sentence, and no refusal")
