"""What each built-in metric without a model takes for one typical call: ``python -m tests.benchmarks.metrics_speed``.

The sample: a question, an answer of 3 KB with citations, 20 documents of 1 KB, one tool call, usage. CPU time of the thread, medians; the ratio is to the
smallest of them all (`length_chars`), since machines differ.
"""

import statistics
import time
from typing import Any

from spangrade.metrics.builtin.json_schema import json_schema
from spangrade.metrics.builtin.keywords import keywords
from spangrade.metrics.builtin.regex import regex
from spangrade.metrics.builtin.table import BUILTIN
from spangrade.metrics.catalog import resolve
from spangrade.model.sample import Sample
from spangrade.model.score import Skip

ROUNDS = 30
WITH_MODEL = frozenset({"groundedness", "answer_relevance", "context_relevance"})

SENTENCES = [
    "A refund takes five working days after the parcel has arrived at our warehouse in Leeds",
    "Gift cards and opened software cannot be refunded, except where the law asks for it",
    "For orders above 1,000.50 USD the bank may need up to 10 days more, as it says itself",
]
ANSWER = " ".join(f"{SENTENCES[i % 3]} [{i % 20 + 1}]." for i in range(33))
DOCUMENTS = [
    {"id": f"d{i}", "content": f"{SENTENCES[i % 3]}. Chapter {i} of the handbook says more about it. " * 7}
    for i in range(20)
]
TOOL = {
    "name": "find_order",
    "input_schema": {"type": "object", "properties": {"number": {"type": "integer"}}, "required": ["number"]},
}
JSON_ANSWER = '{"refundable": true, "days": 5, "reasons": ["within 14 days", "unopened"]}'
SCHEMA = {
    "type": "object",
    "properties": {
        "refundable": {"type": "boolean"},
        "days": {"type": "integer"},
        "reasons": {"type": "array", "items": {"type": "string"}},
    },
    "required": ["refundable", "days"],
}


def samples() -> tuple[Sample, Sample]:
    """The typical call, and one that answers with JSON."""
    context: dict[str, Any] = {
        "usage": {"input_tokens": 5_200, "output_tokens": 700},
        "model": "gpt-4o",
        "provider": "openai",
        "duration_s": 2.1,
        "time_to_first_chunk_s": 0.4,
        "tools": [TOOL],
        "tool_calls": [{"id": "c1", "name": "find_order", "arguments": {"number": 17}}],
    }
    question = "How long does a refund take for an opened parcel, and who pays for sending it back?"
    prose = Sample(input=question, output=ANSWER, documents=DOCUMENTS, context=context)
    return prose, Sample(input=question, output=JSON_ANSWER)


def timed(metric: Any, sample: Sample) -> float | None:
    """Median microseconds of one evaluation; None where it skips."""
    took = []
    for _ in range(ROUNDS + 1):
        started = time.thread_time_ns()
        try:
            metric.evaluate(sample)
        except Skip:
            return None
        took.append(time.thread_time_ns() - started)
    return statistics.median(took[1:]) / 1_000  # the first one loads what it needs


def main() -> None:
    prose, structured = samples()
    configured: dict[str, Any] = {
        "json_schema": json_schema(SCHEMA),
        "regex": regex(r"\b\d+ (?:working )?days\b"),
        "keywords": keywords(["refund"], none_of=["guaranteed", "lawsuit"]),
    }
    found: dict[str, float | None] = {}
    for name in BUILTIN:
        if name not in WITH_MODEL:
            sample = structured if name.startswith("json") else prose
            found[name] = timed(resolve(configured.get(name, name)), sample)
    least = min(value for value in found.values() if value)
    print(f"an answer of {len(ANSWER)} characters, {len(DOCUMENTS)} documents of {len(DOCUMENTS[0]['content'])}\n")
    print("| metric | µs | x the cheapest |\n|---|---|---|")
    for name, value in sorted(found.items(), key=lambda item: item[1] or 0.0):
        print(f"| {name} | skipped | |" if value is None else f"| {name} | {value:.0f} | {value / least:.0f} |")


if __name__ == "__main__":
    main()
