"""From a pair's end to what is sent of it."""

from spangrade.model.evaluator import EvaluatorInfo
from spangrade.model.outcome import ScoreRecord
from spangrade.model.score import Graded
from spangrade.scoring.ended import Ended
from spangrade.scoring.job import Job
from spangrade.scoring.selection import Selection


def records_of(job: Job, info: EvaluatorInfo, selection: Selection, ended: Ended, now_ns: int) -> list[ScoreRecord]:
    """The pair's scores, then those that failed, as errors; or its one error. Nothing for an end that is only counted
    (skipped, not sampled, dropped)."""
    details = ended.details
    if ended.verdict is not None:
        found: list[tuple[Graded, str | None]] = [(graded, None) for graded in ended.verdict.scores]
        found += [
            (Graded(f.name, explanation=f.message, path=f.path, rule=f.rule), f.kind) for f in ended.verdict.failures
        ]
        details = ended.verdict.details
    elif ended.error_type is not None:
        found = [(Graded(info.name, explanation=ended.message), ended.error_type)]
    else:
        return []
    ref = job.span_ref
    return [
        ScoreRecord(
            ref,
            info,
            one,
            now_ns,
            selection.probability,
            selection.reason,
            job.partial,
            ended.duration_s,
            error_type,
            details,
        )
        for one, error_type in found
    ]
