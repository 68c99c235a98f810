"""What is counted of assembling: what went without, what came too late, what was lost at a bound."""

from collections import Counter
from dataclasses import dataclass, field
from typing import Final


@dataclass(slots=True)
class Tally:
    """Written by the thread that assembles; others may read (``dict(counter)`` is one step).

    Attributes:
        partial: samples of requests that were decided as they were, by reason: ``no_root`` (their time was up), ``quiet``,
            ``max_age``, ``max_traces``, ``max_bytes``, ``max_spans``, ``flush``, or ``late`` (something under the same root had
            been decided before).
        conversations: those that were graded as they were, by reason: ``max_sessions``, ``max_session_bytes``, ``max_age``,
            ``shutdown``, or ``parts`` (a turn was partial, or had gone).
        late: what came after the decision, by what it was: ``call``, ``turn``.
        logs: log records with content, by what became of them: ``joined`` to their span, or lost to ``max_age``, ``max_bytes``,
            ``max_spans``, ``max_of_a_span``, ``overload``.
    """

    partial: Counter[str] = field(default_factory=Counter)
    conversations: Counter[str] = field(default_factory=Counter)
    late: Counter[str] = field(default_factory=Counter)
    logs: Counter[str] = field(default_factory=Counter)


#: The counters, by what they are called elsewhere: the field, its label, and what it counts.
COUNTED: Final = {
    "partial": ("partial", "reason", "Samples that were decided before all of their request had come"),
    "sessions.partial": (
        "conversations",
        "reason",
        "Conversations that were graded before their idle time, or in part",
    ),
    "late": ("late", "what", "Calls and turns that came after what they belong to had been decided"),
    "log_records": ("logs", "result", "Log records with content: joined to their span, or lost at a bound"),
}


@dataclass(frozen=True, slots=True)
class Waiting:
    """What is held now: traces and the bytes of their parts, spans whose log records came first and the bytes of these,
    conversations and the bytes of what was said in them."""

    traces: int
    trace_bytes: int
    logs: int
    log_bytes: int
    sessions: int
    session_bytes: int
