"""What the page knows of a graded call: immutable records, and the pure functions over them."""

import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from spangrade.model.evaluator import EvaluatorInfo
from spangrade.samples.explain import Finding

Key = tuple[int, int, str]  # trace id, span id, target

PENDING: Final = "pending"
# What records cost beside their texts: measured with tracemalloc, rounded up.
_RECORD_BYTES: Final = 640
_DOCUMENT_BYTES: Final = 128
_RESULT_BYTES: Final = 320
_DETAIL_BYTES: Final = 128


def sample_id(key: Key) -> str:
    """Trace id, span id and target, joined by hyphens: safe in a path."""
    return f"{key[0]:032x}-{key[1]:016x}-{key[2]}"


@dataclass(frozen=True, slots=True)
class StoredDocument:
    """One retrieved document; ``metadata`` is JSON text."""

    content: str | None
    id: str | None = None
    score: float | None = None
    metadata: str | None = None


@dataclass(frozen=True, slots=True)
class StoredResult:
    """One score, or how the pair ended without one. ``outcome`` is `PENDING` or an `Outcome`'s value; ``name`` is the
    score's (``metric.key`` where one evaluator gives several); ``structured`` is JSON text."""

    name: str
    evaluator: str
    version: str | None
    kind: str
    config_hash: str = ""
    outcome: str = PENDING
    reason: str = ""
    value: float | None = None
    label: str | None = None
    passed: bool | None = None
    explanation: str | None = None
    structured: str | None = None
    error_type: str | None = None
    probability: float | None = None
    selection_reason: str | None = None
    threshold: float | None = None
    lower_is_better: bool = False
    judge_model: str | None = None
    score_id: str | None = None
    duration_s: float | None = None
    details: Mapping[str, Any] = field(default_factory=dict)

    def is_like(self, label: str) -> bool:
        """Whether the result's label, verdict (``pass``, ``fail``) or outcome is ``label``."""
        verdict = None if self.passed is None else ("pass" if self.passed else "fail")
        return label in (self.label, verdict, self.outcome)


@dataclass(frozen=True, slots=True)
class StoredSample:
    """One graded call. ``input`` and ``output`` are text (JSON values indented: those are named in ``json_fields``), None where
    there was none or the configuration keeps none. ``searched``: a retrieval took place. ``documents_given``: how many there
    were. ``metadata``: the application's own labels, as JSON text. ``findings``: what of the call is missing, and why."""

    id: str
    trace_id: str
    span_id: str
    target: str
    service: str | None
    span_name: str
    kind: str
    model: str | None
    time_ns: int
    duration_s: float
    input: str | None
    output: str | None
    documents: tuple[StoredDocument, ...]
    documents_given: int
    searched: bool
    partial: bool
    results: tuple[StoredResult, ...] = ()
    json_fields: tuple[str, ...] = ()
    metadata: str | None = None
    findings: tuple[Finding, ...] = ()


def blank(info: EvaluatorInfo) -> StoredResult:
    """A result that is still to come."""
    return StoredResult(
        name=info.name,
        evaluator=info.name,
        version=info.version,
        kind=info.kind,
        config_hash=info.config_hash,
        threshold=info.threshold,
        lower_is_better=info.lower_is_better,
    )


def with_results(
    results: Sequence[StoredResult], info: EvaluatorInfo, new: tuple[StoredResult, ...]
) -> tuple[StoredResult, ...]:
    """``results`` with those of one evaluator replaced, at their place."""
    mine = [i for i, r in enumerate(results) if (r.evaluator, r.config_hash) == (info.name, info.config_hash)]
    at = mine[0] if mine else len(results)
    rest = [r for i, r in enumerate(results) if i not in mine]
    return (*rest[:at], *new, *rest[at:])


def merged(old: Sequence[StoredResult], new: Iterable[StoredResult]) -> tuple[StoredResult, ...]:
    """What is known already, and a blank for every evaluator that is new."""
    known = {(r.evaluator, r.config_hash) for r in old}
    return (*old, *(r for r in new if (r.evaluator, r.config_hash) not in known))


def matches(results: Sequence[StoredResult], evaluator: str | None, label: str | None) -> bool:
    """Whether ``evaluator`` took the sample, and (of all evaluators, or of that one) a result is like ``label``."""
    if evaluator is not None:
        results = [result for result in results if result.evaluator == evaluator]
        if not results:
            return False
    return label is None or any(result.is_like(label) for result in results)


def size_of_sample(sample: StoredSample) -> int:
    """Bytes of memory, about, without the results: the texts as Python has them, and what the records cost."""
    texts = [sample.id, sample.trace_id, sample.span_id, sample.service, sample.span_name, sample.model]
    texts += [sample.input, sample.output, sample.metadata]
    for document in sample.documents:
        texts += [document.content, document.id, document.metadata]
    return _RECORD_BYTES + _DOCUMENT_BYTES * len(sample.documents) + _sizes(texts)


def size_of_results(results: Sequence[StoredResult]) -> int:
    """The same of results. What they share with the evaluator's identity is counted with each of them."""
    total = 0
    for result in results:
        texts = (result.label, result.explanation, result.structured, result.score_id, result.error_type)
        total += _RESULT_BYTES + _sizes(texts) + _DETAIL_BYTES * len(result.details)
    return total


def _sizes(texts: Iterable[str | None]) -> int:
    return sum(sys.getsizeof(text) for text in texts if text is not None)
