"""What the tests of joined logs and conversations grade with; the agent finds it by import path."""

import spangrade as sg

SEEN: list[sg.Sample] = []


@sg.metric(target="session")
def turns(sample: sg.Sample) -> float:
    """How many turns a conversation has."""
    SEEN.append(sample)
    return float(len(sample.context["turns"]))


@sg.metric(requires=("output",))
def answered(sample: sg.Sample) -> bool:
    """Whether the answer is a greeting."""
    SEEN.append(sample)
    return "Hello" in sample.output
