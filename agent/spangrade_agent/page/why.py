"""Why a result is no score, in the words of ``spangrade explain``."""

from collections.abc import Sequence

from spangrade.model.outcome import Outcome
from spangrade.samples.explain import Finding
from spangrade.scoring.reasons import words
from spangrade_agent.page.records import PENDING, StoredResult, StoredSample


def why(result: StoredResult, sample: StoredSample, findings: Sequence[Finding] | None = None) -> Finding | None:
    """Why a result is no score, and what would change that; None for a score and for one that is still to come."""
    if result.outcome in (Outcome.SCORED, PENDING):
        return None
    known = sample.findings if findings is None else findings
    return words(result.outcome, result.reason, known, searched=sample.searched, probability=result.probability)
