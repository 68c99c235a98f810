"""`latency`, `time_to_first_chunk`: how long the caller waited, in seconds.

What they measure: from the start of the scored call to its end, and to the first piece of a streamed answer. Both are read
from the span: its start and end time, and the attribute ``gen_ai.response.time_to_first_chunk`` (ours and the GenAI
instrumentations') or OpenInference's event of the first token. So the value is the same in the application and in the agent.

What they do not: the network between the user and the application, nor the time that Spangrade holds a span. The first chunk of a
model call inside the scored function is not taken for that of the function, which may well have waited for the whole; use
``target="llm"`` to measure the model calls themselves.

Measurements: neither pass nor fail. ``threshold=`` (seconds) makes them pass what is at most that. Skipped where a time is missing
or makes no sense (a clock that ran backwards). Source: OpenTelemetry GenAI conventions, gen_ai.client.operation.duration and
gen_ai.response.time_to_first_chunk.
"""

from typing import Any

from spangrade.metrics.builtin.options import measurement
from spangrade.metrics.local import LocalMetric
from spangrade.model.sample import Sample
from spangrade.model.score import Score, Skip


def latency(*, threshold: float | None = None, name: str = "latency", target: str = "root") -> LocalMetric:
    """Seconds from the start of the call to its end; with ``threshold`` it passes at most so many."""

    def seconds(sample: Sample) -> Score:
        return Score(_seconds(sample.context.get("duration_s"), "the call has no usable start and end time"))

    return measurement(seconds, name=name, threshold=threshold, target=target)


def time_to_first_chunk(
    *, threshold: float | None = None, name: str = "time_to_first_chunk", target: str = "root"
) -> LocalMetric:
    """Seconds from the start of the call to the first piece of its streamed answer; with ``threshold`` it passes at most so many."""

    def seconds(sample: Sample) -> Score:
        return Score(
            _seconds(
                sample.context.get("time_to_first_chunk_s"),
                "not streamed, or the span does not say when the first chunk came",
            )
        )

    return measurement(seconds, name=name, threshold=threshold, target=target)


def _seconds(value: Any, otherwise: str) -> float:
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not value >= 0:
        raise Skip(otherwise)
    return float(value)
