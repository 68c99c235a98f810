"""What text the store may keep: redacted, cut, valid.

Redaction comes before the cut: a cut through a secret would leave a half that no pattern knows. Of a very long text only
what can be shown is redacted, so one text costs at most about its limit and 2 * `MARGIN` characters of the hook's time.
"""

import json
import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, Literal

from spangrade._values import bounded, snapshot, valid
from spangrade.delivery.content import FAILED, ContentPolicy
from spangrade.model.document import read_number
from spangrade.model.evaluator import EvaluatorInfo
from spangrade.model.outcome import Outcome, ScoreRecord
from spangrade.model.sample import Sample
from spangrade.model.score import MAX_EXPLANATION, MAX_LABEL
from spangrade.semconv import EVALUATOR_PATH, JUDGE_MODEL
from spangrade_agent.page.records import StoredDocument, StoredResult

Content = Literal["redacted", "keep", "none"]

MAX_TEXT: Final = 65_536  # characters of an input or output
MAX_DOCUMENT: Final = 8_192
MAX_DOCUMENTS: Final = 50
MAX_STRUCTURED: Final = 4_096
MAX_METADATA: Final = 8_192
MARGIN: Final = 8_192  # a secret longer than this, right where a very long text is cut, could keep its other half


def weight(sample: Sample) -> int:
    """About how many characters wait with a sample. Not worth a walk: a value that is no text counts as a long one."""
    values = [sample.input, sample.output, *(document.get("content") for document in sample.documents)]
    return sum(len(v) if isinstance(v, str) else MAX_TEXT for v in values if v is not None) + 1_024


class Texts:
    """What a value becomes on its way in: redacted, cut, valid text, or nothing."""

    __slots__ = ("_dropped", "_policy")

    def __init__(self, content: Content, redact: Callable[[str], str] | None) -> None:
        self._policy = ContentPolicy(redact if content != "keep" else None)
        self._dropped = content == "none"

    def of(self, value: Any, limit: int) -> str | None:
        """Text, a JSON value as indented JSON; None for None, and where no content is kept."""
        if value is None or self._dropped:
            return None
        if isinstance(value, str):
            return self._text(value, limit)
        plain = self._walk(snapshot(value), limit)
        return bounded(json.dumps(plain, ensure_ascii=False, indent=2), limit)

    def name(self, text: str) -> str:
        """A short text that is no content, such as a span's name. Redacted all the same: it may hold an address."""
        return self._text(text, MAX_LABEL)

    def documents(self, given: Sequence[Mapping[str, Any]]) -> tuple[StoredDocument, ...]:
        """A Sample's documents, the first `MAX_DOCUMENTS` of them; none where no content is kept."""
        return () if self._dropped else tuple(self._document(document) for document in given[:MAX_DOCUMENTS])

    def _document(self, given: Mapping[str, Any]) -> StoredDocument:
        name, score = given.get("id"), given.get("score")
        return StoredDocument(
            content=self.of(given.get("content"), MAX_DOCUMENT),
            id=None if name is None else self.name(str(name)),
            score=read_number(score),
            metadata=self.of(given.get("metadata") or None, MAX_STRUCTURED),
        )

    def _text(self, text: str, limit: int) -> str:
        if self._policy.redact is None:
            return bounded(text, limit)
        if len(text) <= limit + 2 * MARGIN:
            return bounded(self._policy.text(text), limit)
        # Only what can be shown is redacted, with a margin that is thrown away: what the first cut left half of a
        # secret is in the margin.
        half = limit // 2
        head, tail = self._policy.text(text[: half + MARGIN]), self._policy.text(text[-half - MARGIN :])
        if FAILED in (head, tail):
            return FAILED
        head, tail = head[:-MARGIN][:half], tail[MARGIN:][-half:]
        return valid(f"{head}…[{len(text) - len(head) - len(tail)} characters cut]…{tail}")

    def _walk(self, value: Any, limit: int) -> Any:
        if isinstance(value, str):
            return self._text(value, limit)
        if isinstance(value, dict):  # keys too: an address may be one
            return {self._text(key, limit): self._walk(item, limit) for key, item in value.items()}
        if isinstance(value, list):
            return [self._walk(item, limit) for item in value]
        return value


def short(value: Any) -> str | None:
    """A name, at most 256 characters; None for what is no text, or empty."""
    return bounded(value, MAX_LABEL) if isinstance(value, str) and value else None


def scored(info: EvaluatorInfo, outcome: Outcome, reason: str, record: ScoreRecord, texts: Texts) -> StoredResult:
    """One score, or one error, as it is kept. An error has neither value nor label (promise 4)."""
    graded, failed = record.graded, record.error_type is not None
    rule = graded.rule or info  # a leaf's own, or the evaluator's
    return StoredResult(
        name=bounded(graded.name, MAX_LABEL),
        evaluator=info.name,
        version=info.version,
        kind=info.kind,
        config_hash=info.config_hash,
        # Of several scores one may have failed: its line says so, whatever became of the pair.
        outcome=Outcome.ERROR.value if failed and outcome is Outcome.SCORED else outcome.value,
        reason=bounded(reason, MAX_LABEL),
        value=None if failed else graded.value,
        label=None if failed or graded.label is None else texts.name(graded.label),
        passed=None if failed else graded.passed,
        explanation=texts.of(graded.explanation, MAX_EXPLANATION),
        structured=None if failed else texts.of(graded.structured, MAX_STRUCTURED),
        error_type=short(record.error_type),
        probability=record.probability,
        selection_reason=record.selection_reason,
        threshold=rule.threshold,
        lower_is_better=rule.lower_is_better,
        judge_model=short(record.details.get(JUDGE_MODEL)),
        score_id=record.score_id,
        duration_s=record.duration_s,
        details=_details(record, texts),
    )


def _details(record: ScoreRecord, texts: Texts) -> dict[str, str | int | float]:
    """Prompt hash, tokens, cost and what else an evaluator says of how a score came about."""
    found: dict[str, str | int | float] = {}
    if record.graded.path is not None:
        found[EVALUATOR_PATH] = bounded(record.graded.path, MAX_LABEL)
    for name, value in record.details.items():
        if isinstance(value, str) and name != JUDGE_MODEL:
            found[name] = texts.name(value)
        elif isinstance(value, (int, float)) and math.isfinite(value):
            found[name] = value
    return found
