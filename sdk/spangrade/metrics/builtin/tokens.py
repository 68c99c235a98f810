"""`tokens`: how many tokens the call's models read and wrote.

What it measures: the counts that the provider reported (``gen_ai.usage.*`` and OpenInference's), summed over the model calls
under the scored one, each counted once. Input includes what came from the provider's cache, output includes thoughts.

What it does not: guess. No tokenizer is run: where a count is unknown (a stream that was left early) it is skipped, never 0, and so
is the total when only one side is known. Embedding calls are not counted.

A measurement: neither pass nor fail. ``threshold=`` makes it pass what is at most that. Source: the provider's own counts.
"""

from typing import Any, Final

from spangrade.metrics.builtin.options import measurement, one_of
from spangrade.metrics.local import LocalMetric
from spangrade.model.sample import Sample
from spangrade.model.score import Score, Skip

#: Names of counts in ``Sample.context["usage"]``, by what `tokens` calls them.
KINDS: Final = {
    "input": "input_tokens",
    "output": "output_tokens",
    "cache_read": "cache_read_tokens",
    "cache_write": "cache_write_tokens",
    "reasoning": "reasoning_tokens",
}


def tokens(
    *, which: str = "total", threshold: float | None = None, name: str | None = None, target: str = "root"
) -> LocalMetric:
    """Tokens of the call's models: ``total`` (input and output), ``input``, ``output``, ``cache_read``, ``cache_write`` or
    ``reasoning``. The score is named ``tokens``, or ``tokens_input`` and so on."""
    name = name or ("tokens" if which == "total" else f"tokens_{which}")
    one_of(f"metric {name!r}", "which", which, ("total", *KINDS))
    keys = ("input_tokens", "output_tokens") if which == "total" else (KINDS[which],)

    def count(sample: Sample) -> Score:
        usage = sample.context.get("usage")
        counts = {key: token_count(usage, key) for key in keys}
        unknown = [key.replace("_", " ") for key, number in counts.items() if number is None]
        if unknown:
            raise Skip(f"unknown: {', '.join(unknown)}")
        known = [number for number in counts.values() if number is not None]
        why = f"{known[0]} in, {known[1]} out" if which == "total" else None
        return Score(sum(known), explanation=why)

    return measurement(count, name=name, threshold=threshold, target=target, config={"which": which})


def token_count(usage: Any, key: str) -> int | None:
    """A count of 0 or more, or None where it is unknown."""
    value = usage.get(key) if isinstance(usage, dict) else None
    return value if isinstance(value, int) and not isinstance(value, bool) and value >= 0 else None
