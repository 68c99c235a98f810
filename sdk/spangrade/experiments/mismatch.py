"""Whether two scores of one name are by the same evaluator, so that their difference means anything."""

from collections import Counter

from spangrade import semconv
from spangrade.experiments.pairing import SideScores
from spangrade.experiments.records import EvaluatorRecord


def mismatch(name: str, a: SideScores, key_a: str, b: SideScores, key_b: str) -> str | None:
    """Why the two sides' scores cannot be subtracted, naming both configurations; None when they can.

    They cannot when version, configuration, kind, target or direction differ, or when other judge models answered.
    """
    mine, yours = a.record(key_a, name), b.record(key_b, name)
    if _identity(mine) != _identity(yours):
        return f"a has {_described(mine, yours)}, b has {_described(yours, mine)}"
    answered_a, answered_b = _models(name, a, key_a), _models(name, b, key_b)
    if answered_a and answered_b and set(answered_a) != set(answered_b):
        return f"answered by {_counted(answered_a)} in a, by {_counted(answered_b)} in b"
    return None


def cautions(a: EvaluatorRecord, b: EvaluatorRecord) -> list[str]:
    """What differs without being part of the identity."""
    said = []
    if a.source_hash and b.source_hash and a.source_hash != b.source_hash:
        said.append(
            f"the code of {a.name} is not the same in a and b, while its version and config are: "
            "what differs may be the metric (raise its version= when its code changes)"
        )
    if a.threshold != b.threshold:
        said.append(
            f"the threshold is {_threshold(a)} in a and {_threshold(b)} in b: pass rates are by different marks"
        )
    return said


def _identity(record: EvaluatorRecord) -> tuple[object, ...]:
    return record.version, record.config_hash, record.kind, record.target, record.lower_is_better


def _described(record: EvaluatorRecord, other: EvaluatorRecord) -> str:
    said = record.name
    if record.version != other.version or record.version is not None:
        said += f" version {record.version}" if record.version is not None else " without a version"
    said += f" (config {record.config_hash or 'none'}"
    if record.kind != other.kind:
        said += f", kind {record.kind}"
    if record.target != other.target:
        said += f", target {record.target}"
    if record.lower_is_better != other.lower_is_better:
        said += f", {'lower' if record.lower_is_better else 'higher'} is better"
    if record.judge_model and record.judge_model != other.judge_model:
        said += f", judge model {record.judge_model}"
    return said + ")"


def _models(name: str, side: SideScores, key: str) -> Counter[str]:
    found = (score.details.get(semconv.JUDGE_MODEL) for score in side.given(name, key))
    return Counter(str(model) for model in found if model)


def _counted(models: Counter[str]) -> str:
    if len(models) == 1:
        return next(iter(models))
    return " and ".join(f"{model} ({count})" for model, count in sorted(models.items()))


def _threshold(record: EvaluatorRecord) -> str:
    return "none" if record.threshold is None else f"{record.threshold:g}"
