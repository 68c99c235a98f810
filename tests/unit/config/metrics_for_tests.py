"""A metric that a configuration file names by import path."""

import spangrade as sg


@sg.metric
def shouting(output: str) -> sg.Score:
    """1 for upper case."""
    return sg.Score(output.isupper(), explanation="looked at the letters")
