"""The recent samples behind the page: in memory, bounded in count, bytes and age, the oldest out first.

What is kept is immutable: a result that comes later replaces the record, so a reader never sees half a change.
"""

import threading
from collections import Counter, OrderedDict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial as partial_of
from typing import Final, get_args

from spangrade._guard import guard
from spangrade._values import bounded
from spangrade.errors import ConfigError
from spangrade.model.evaluator import EvaluatorInfo
from spangrade.model.outcome import Outcome, ScoreRecord
from spangrade.model.sample import Sample
from spangrade.samples.explain import SpanNote, note_of
from spangrade.samples.reading import Call
from spangrade.scoring.clock import Clock, SystemClock
from spangrade.scoring.wants import SESSION
from spangrade_agent.page.intake import Intake
from spangrade_agent.page.records import (
    Key,
    StoredResult,
    StoredSample,
    blank,
    matches,
    merged,
    sample_id,
    size_of_results,
    size_of_sample,
    with_results,
)
from spangrade_agent.page.spans import SpanNotes
from spangrade_agent.page.texts import MAX_METADATA, MAX_TEXT, Content, Texts, scored, short, weight

__all__ = ["Content", "Key", "SampleStore", "StoreStats", "StoredResult", "StoredSample", "sample_id"]

DAY_S: Final = 86_400.0
MAX_WAITING: Final = 16 * 1024 * 1024  # characters
NOTES_PER_SAMPLE: Final = 4  # calls that a sample is made of, on average; without text, so they are small


@dataclass(frozen=True, slots=True)
class StoreStats:
    """What the store holds, and what it let go or never took, by reason: ``count``, ``bytes``, ``age``, and ``busy``:
    so much waited to be redacted that this sample was not taken (``busy_results``: this pair's end)."""

    samples: int
    bytes: int
    left: Mapping[str, int]


@dataclass(slots=True)
class _Entry:
    sample: StoredSample  # as it came; its results are beside it, since they change
    arrived: float
    own_size: int
    results: tuple[StoredResult, ...]
    size: int

    def whole(self) -> StoredSample:
        return replace(self.sample, results=self.results)


class SampleStore:
    """Implements the pipeline's watcher. Thread-safe; `began` and `ended` neither block nor raise: the work, and with it
    the redact hook, is done on a thread of the store's own, a moment later.

    Args:
        max_samples: at least 1.
        max_bytes: of memory, texts and records together, about as Python uses it; an eighth of it more for what the calls were
            taken for.
        max_age_s: a sample is not shown, and let go at the next call of any method, this long after it arrived.
        content: ``redacted`` (text as ``redact`` gives it back), ``keep`` (as it is), ``none`` (no text: neither input,
            output and documents nor explanations, which quote them).
        redact: the application's hook or the configured patterns; when it raises the text is withheld.

    Raises:
        ConfigError: a bound that is not above 0, or another word for ``content``.
    """

    def __init__(
        self,
        max_samples: int = 10_000,
        max_bytes: int = 64 * 1024 * 1024,
        max_age_s: float = DAY_S,
        content: Content = "redacted",
        redact: Callable[[str], str] | None = None,
        clock: Clock | None = None,
    ) -> None:
        for name, bound in (("max_samples", max_samples), ("max_bytes", max_bytes), ("max_age", max_age_s)):
            if isinstance(bound, bool) or not bound > 0:
                raise ConfigError(f"store.{name} {bound!r} is not above 0; write `store: off` to keep no samples")
        if content not in get_args(Content):
            raise ConfigError(f"store.content {content!r} is not one of {', '.join(get_args(Content))}")
        #: What really happens to text: ``keep`` also where redaction is asked for and nothing is there to do it.
        self.keeps: Content = "keep" if content == "redacted" and redact is None else content
        self.max_samples, self.max_bytes, self.max_age_s = max_samples, max_bytes, max_age_s
        self._texts = Texts(content, redact)
        self._clock = clock or SystemClock()
        self._intake = Intake(MAX_WAITING, "store")
        self._lock = threading.Lock()
        self._notes = SpanNotes(max_samples * NOTES_PER_SAMPLE, max_bytes // 8)
        self._coming: Counter[str] = Counter()  # samples that wait for the store's thread
        self._entries: OrderedDict[str, _Entry] = OrderedDict()
        self._bytes = 0
        self._left: Counter[str] = Counter()

    # --- what the pipeline calls ---------------------------------------------------------------------------------------

    def took(self, call: Call) -> None:
        """A span is a call: what it was taken for is kept, without its text."""
        with guard("store.took"):
            note = note_of(call.span, call)
            self._intake.put(partial_of(self._took, self._clock.monotonic(), note), 1_024)

    def began(
        self, key: Key, call: Call, sample: Sample, evaluators: Sequence[EvaluatorInfo], partial: bool = False
    ) -> None:
        """A sample is about to be graded by ``evaluators``. Called before any `ended` of the same ``key``.

        The same key again (a span that was sent twice) takes the new text and keeps its place and its results.
        """
        with guard("store.began"):
            name, arrived = sample_id(key), self._clock.monotonic()
            with self._lock:
                self._coming[name] += 1
            work = partial_of(self._began, name, arrived, key, call, sample, tuple(evaluators), partial)
            if not self._intake.put(work, weight(sample)):
                with self._lock:
                    self._came(name)
                    self._left["busy"] += 1

    def ended(
        self,
        key: Key,
        evaluator: EvaluatorInfo,
        outcome: Outcome,
        reason: str,
        records: Sequence[ScoreRecord],
        probability: float,
    ) -> None:
        """One pair ended. A sample that the bounds have let go, or that never began, is not brought back."""
        with guard("store.ended"):
            name = sample_id(key)
            with self._lock:
                known = name in self._entries or name in self._coming
            if not known:
                return
            work = partial_of(self._ended, name, evaluator, outcome, reason, tuple(records), probability)
            cost = 1_024 + sum(len(record.graded.explanation or "") for record in records)
            if not self._intake.put(work, cost, spare=MAX_WAITING):
                with self._lock:
                    self._left["busy_results"] += 1

    # --- what the page asks --------------------------------------------------------------------------------------------

    def recent(
        self, limit: int = 100, before: str | None = None, evaluator: str | None = None, label: str | None = None
    ) -> list[StoredSample]:
        """The newest samples first, by arrival.

        Args:
            limit: at most so many.
            before: a sample's id; only older ones. When it has been let go so have all older ones: an empty list.
            evaluator: only samples that this evaluator took; of these results alone ``label`` speaks.
            label: only samples with a result whose label, verdict or outcome it is (``fail``, ``error``, ...).
        """
        with self._lock:
            self._let_go()
            newest = [(entry.sample, entry.results) for entry in reversed(self._entries.values())]
        found: list[StoredSample] = []
        passed_cursor = before is None
        for sample, results in newest:
            if len(found) >= limit:
                break
            if passed_cursor and matches(results, evaluator, label):
                found.append(replace(sample, results=results))
            passed_cursor = passed_cursor or sample.id == before
        return found

    def get(self, sample_id: str) -> StoredSample | None:
        """The sample, or None when it never was here or has been let go."""
        with self._lock:
            self._let_go()
            entry = self._entries.get(sample_id)
            return None if entry is None else entry.whole()

    def of_trace(self, trace_id: str) -> list[StoredSample]:
        """Every sample of a trace (32 hex digits) that is still here, by arrival."""
        with self._lock:
            self._let_go()
            return [entry.whole() for name, entry in self._entries.items() if name.startswith(f"{trace_id}-")]

    def notes_of(self, trace_id: str) -> list[SpanNote]:
        """What is known of the calls of a trace (32 hex digits), by arrival."""
        return self._notes.of(trace_id, self._clock.monotonic() - self.max_age_s)

    def expire(self) -> None:
        """Let go of what is too old. Bounds hold without it; it gives memory back where nothing comes in any more."""
        with self._lock:
            self._let_go()

    def stats(self) -> StoreStats:
        """For the admin listener and the page."""
        with self._lock:
            self._let_go()
            return StoreStats(len(self._entries), self._bytes, dict(self._left))

    def flush(self, timeout: float) -> bool:
        """Wait until what began or ended before can be read; False when ``timeout`` seconds were not enough."""
        return self._intake.flush(timeout)

    def close(self, timeout: float) -> bool:
        """Take nothing more; what is kept can still be read. False when the store's thread is still at work."""
        return self._intake.close(timeout)

    # --- on the store's thread -----------------------------------------------------------------------------------------

    def _took(self, arrived: float, note: SpanNote) -> None:
        self._notes.put(replace(note, name=self._texts.name(note.name)), arrived)

    def _began(
        self,
        name: str,
        arrived: float,
        key: Key,
        call: Call,
        sample: Sample,
        evaluators: Iterable[EvaluatorInfo],
        partial: bool,
    ) -> None:
        try:
            stored = self._stored(name, key, call, sample, partial)
            blanks = tuple(blank(info) for info in evaluators)
            own_size = size_of_sample(stored)
            with self._lock:
                before = self._entries.get(name)
                results = blanks if before is None else merged(before.results, blanks)
                arrived = arrived if before is None else before.arrived
                self._put(_Entry(stored, arrived, own_size, results, own_size + size_of_results(results)))
        finally:
            with self._lock:
                self._came(name)

    def _ended(
        self,
        name: str,
        evaluator: EvaluatorInfo,
        outcome: Outcome,
        reason: str,
        records: Sequence[ScoreRecord],
        probability: float,
    ) -> None:
        new = self._results(evaluator, outcome, reason, records, probability)
        with self._lock:
            entry = self._entries.get(name)
            if entry is not None:
                results = with_results(entry.results, evaluator, new)
                size = entry.own_size + size_of_results(results)
                self._put(_Entry(entry.sample, entry.arrived, entry.own_size, results, size))

    def _came(self, name: str) -> None:
        self._coming[name] -= 1
        if self._coming[name] <= 0:
            del self._coming[name]

    def _put(self, entry: _Entry) -> None:
        before = self._entries.get(entry.sample.id)
        self._bytes += entry.size - (before.size if before is not None else 0)
        self._entries[entry.sample.id] = entry
        self._let_go()

    def _let_go(self) -> None:
        """Oldest out until every bound holds; the lock is held. Arrivals are in order, so the first is the oldest."""
        oldest_allowed = self._clock.monotonic() - self.max_age_s
        while self._entries:
            first = next(iter(self._entries.values()))
            if first.arrived <= oldest_allowed:
                reason = "age"
            elif len(self._entries) > self.max_samples:
                reason = "count"
            elif self._bytes > self.max_bytes:
                reason = "bytes"
            else:
                return
            self._entries.popitem(last=False)
            self._bytes -= first.size
            self._left[reason] += 1

    def _stored(self, name: str, key: Key, call: Call, sample: Sample, partial: bool) -> StoredSample:
        span, texts = call.span, self._texts
        service = span.resource.get("service.name") or sample.metadata.get("service.name")
        return StoredSample(
            id=name,
            trace_id=f"{key[0]:032x}",
            span_id=f"{key[1]:016x}",
            target=key[2],
            service=short(service),
            span_name=texts.name(span.name),
            kind=call.kind,
            model=short(call.reading.model or sample.context.get("model")),
            time_ns=span.end_ns or self._clock.time_ns(),
            duration_s=max(0, span.end_ns - span.start_ns) / 1e9,
            input=texts.of(sample.input, MAX_TEXT),
            output=texts.of(sample.output, MAX_TEXT),
            documents=texts.documents(sample.documents),
            documents_given=len(sample.documents),
            searched=bool(sample.documents) or sample.context.get("searched") is True,
            partial=partial,
            json_fields=tuple(
                field
                for field in ("input", "output")
                if (value := getattr(sample, field)) is not None and not isinstance(value, str)
            ),
            metadata=texts.of(dict(sample.metadata) or None, MAX_METADATA),
            # The call that carries a conversation's score comes without its content.
            findings=() if key[2] == SESSION else note_of(span, call).findings,
        )

    def _results(
        self, info: EvaluatorInfo, outcome: Outcome, reason: str, records: Sequence[ScoreRecord], probability: float
    ) -> tuple[StoredResult, ...]:
        if records:
            return tuple(scored(info, outcome, reason, record, self._texts) for record in records)
        return (replace(blank(info), outcome=outcome.value, reason=bounded(reason, 256), probability=probability),)
