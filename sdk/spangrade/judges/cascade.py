"""`Cascade`: a cheap judge first, a strong one where the cheap one is in doubt, and a person where both are."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Final

from spangrade import semconv
from spangrade.errors import ConfigError, JudgeError
from spangrade.judges import checks
from spangrade.judges.judge import LlmJudge
from spangrade.judges.prices import cost_of
from spangrade.judges.providers import Endpoint
from spangrade.model.evaluator import EvaluatorInfo, Target, Verdict, check_name, hash_config
from spangrade.model.gate import Gate
from spangrade.model.sample import FrozenDict, Sample
from spangrade.model.score import FAIL, PASS, Graded, Skip

REASONS: Final = ("disagreement", "low_confidence", "error")
NEEDS_REVIEW: Final = "needs_review"
DEFAULT_MARGIN: Final = 0.25
_SUMMED: Final = (
    semconv.JUDGE_INPUT_TOKENS,
    semconv.JUDGE_OUTPUT_TOKENS,
    semconv.JUDGE_REPAIRS,
)

Stage = LlmJudge | Sequence[LlmJudge]


@dataclass(frozen=True, slots=True)
class _Opinion:
    """What a stage says: ``score`` is None where it failed, with ``fault``; ``doubt`` is why it is not believed."""

    score: float | None = None
    passed: bool | None = None
    explanation: str | None = None
    doubt: str | None = None
    fault: JudgeError | None = None


class Cascade:
    """Judges one after the other, the cheapest first. Immutable; an `Evaluator` of kind ``llm``, placed like a judge.

    A stage is a judge, or several that are asked about the same sample. Its verdict stands unless there is a reason to
    escalate: *error* (no verdict), *low_confidence* (the score is nearer to the threshold than ``margin``), or
    *disagreement* (judges of one stage differ on pass or fail). What the last stage leaves in doubt is a person's: the
    label ``needs_review``, with neither value nor pass or fail. When no stage gave any verdict the pair is an error.

    Args:
        judges: at least two stages.
        escalate: the reasons that count, of disagreement, low_confidence, error.
        name: the score's name; by default the last judge's.
        threshold: the pass mark; by default the last judge's.
        margin: 0 to 1. With 0.25 and a threshold of 0.5 a 3 of 5 is in doubt, and a 2 or a 4 is not.
        abstain: False lets the last stage's verdict stand whatever the doubt.

    Raises:
        ConfigError: an argument that cannot work, with what would be right.
    """

    def __init__(
        self,
        judges: Sequence[Stage],
        escalate: Iterable[str] = REASONS,
        *,
        name: str | None = None,
        threshold: float | None = None,
        margin: float = DEFAULT_MARGIN,
        abstain: bool = True,
    ) -> None:
        stages = tuple((stage,) if isinstance(stage, LlmJudge) else tuple(stage) for stage in judges)
        if len(stages) < 2 or not all(stages) or not all(isinstance(j, LlmJudge) for stage in stages for j in stage):
            raise ConfigError("Cascade takes two stages or more, each an LlmJudge or several: Cascade([cheap, strong])")
        last = stages[-1][0]
        self.stages: tuple[tuple[LlmJudge, ...], ...] = stages
        self.name = check_name(name or last.name, "cascade")
        what = f"cascade {self.name!r}"
        self.escalate = tuple(dict.fromkeys([escalate] if isinstance(escalate, str) else escalate))
        for reason in self.escalate:
            if reason not in REASONS:
                raise ConfigError(f"{what}: escalate {reason!r} is not one of {', '.join(REASONS)}")
        self.threshold = checks.number(last.threshold if threshold is None else threshold, 0, 1, f"{what}: threshold")
        self.margin = checks.number(margin, 0, 1, f"{what}: margin")
        self.abstain = checks.flag(abstain, f"{what}: abstain")
        if len({judge.target for stage in stages for judge in stage}) > 1:
            raise ConfigError(f"{what}: its judges have different targets; give them one")

    def __repr__(self) -> str:
        names = [" + ".join(judge.name for judge in stage) for stage in self.stages]
        return f"Cascade({' > '.join(names)})"

    @property
    def info(self) -> EvaluatorInfo:
        """Who grades; the hash is that of all its judges' configurations and of what it escalates on."""
        requires = dict.fromkeys(field for judge in self.models() for field in judge.info.requires)
        return EvaluatorInfo(
            name=self.name,
            kind="llm",
            config_hash=hash_config(self.config()),
            requires=tuple(requires),
            threshold=self.threshold,
            target=str(self.stages[0][0].target),
        )

    @property
    def timeout(self) -> float:
        """Seconds for one sample: those of all stages, since each may be asked."""
        return sum(judge.timeout for judge in self.models())

    @property
    def is_async(self) -> bool:
        """False: `evaluate` blocks, on a thread of ours."""
        return False

    def config(self) -> dict[str, Any]:
        """What identifies the cascade. The threshold is in it, unlike a judge's: it decides who is asked."""
        return {
            "name": self.name,
            "stages": [[judge.config() for judge in stage] for stage in self.stages],
            "escalate": [reason for reason in REASONS if reason in self.escalate],
            "threshold": self.threshold,
            "margin": self.margin,
            "abstain": self.abstain,
        }

    def with_target(self, target: Target) -> "Cascade":
        """A copy that grades another target."""
        return self._mapped(lambda judge: judge.with_target(target))

    def without_cache(self) -> "Cascade":
        """A copy whose judges ask, whatever was said before."""
        return self._mapped(LlmJudge.without_cache)

    def with_pinned_model(self) -> "Cascade":
        """A copy whose judges' models no longer follow the environment; see `LlmJudge.with_pinned_model`."""
        return self._mapped(LlmJudge.with_pinned_model)

    def at(self, endpoints: Iterable[Endpoint]) -> "Cascade":
        """A copy whose judges ask these endpoints; see `LlmJudge.at`."""
        known = list(endpoints)
        return self._mapped(lambda judge: judge.at(known))

    @property
    def gate(self) -> Gate | None:
        """What limits the calls of its first stage: the others' judges wait for a place when they are asked."""
        return self.stages[0][0].gate

    @property
    def beyond_gate(self) -> bool:
        """Whether it may give a verdict while its first endpoint is left alone: by a judge of another, or from a cache."""
        return any(judge.beyond_gate or judge.gate is not self.gate for judge in self.models())

    @property
    def gates(self) -> list[Gate]:
        """Those of all endpoints that are asked."""
        return [gate for judge in self.models() for gate in judge.gates]

    def most(self, sample: Sample) -> float | None:
        """US dollars that grading ``sample`` can cost at most, all stages asked; None when a price is unknown."""
        costs = [judge.most(sample) for judge in self.models()]
        return None if None in costs else sum(cost for cost in costs if cost is not None)

    def evaluate(self, sample: Sample) -> Verdict:
        """Grade one sample; blocks.

        Raises:
            Skip: a required field is empty.
            JudgeError: that of the last stage, where none gave a verdict, or where *error* is no reason to escalate.
        """
        missing = sample.missing(self.info.requires)  # before anybody is asked, and paid
        if missing:
            raise Skip(f"nothing in {', '.join(missing)}")
        ends: list[Verdict | JudgeError] = []
        opinions: list[_Opinion] = []
        escalated: list[str] = []
        for stage in self.stages:
            opinion = self._ask(stage, sample, ends)
            opinions.append(opinion)
            if opinion.doubt is None or opinion.doubt not in self.escalate:
                break
            escalated.append(opinion.doubt)
        last = opinions[-1]
        known: dict[str, Any] = {**_sum(ends), semconv.JUDGE_STAGE: len(opinions)}
        if escalated:
            known[semconv.JUDGE_ESCALATED] = tuple(escalated)
        in_doubt = len(escalated) == len(self.stages)
        if last.score is None and (not in_doubt or not self.abstain or all(o.score is None for o in opinions)):
            assert last.fault is not None
            raise JudgeError(last.fault.kind, str(last.fault), known)
        if in_doubt and self.abstain:
            return Verdict((Graded(self.name, label=NEEDS_REVIEW, explanation=_told(opinions)),), FrozenDict(known))
        label = PASS if last.passed else FAIL
        return Verdict((Graded(self.name, last.score, label, last.passed, last.explanation),), FrozenDict(known))

    def _ask(self, stage: Sequence[LlmJudge], sample: Sample, ends: list[Verdict | JudgeError]) -> _Opinion:
        found: list[Graded] = []
        for judge in stage:
            try:
                verdict = judge.evaluate(sample)
            except JudgeError as fault:
                ends.append(fault)
                return _Opinion(doubt="error", fault=fault, explanation=f"{fault.kind}: {fault}")
            ends.append(verdict)
            found.append(verdict.scores[0])
        values = [graded.value for graded in found if graded.value is not None]
        score = sum(values) / len(values)
        agreed = len({value >= self.threshold for value in values}) == 1
        doubt = None
        if not agreed:
            doubt = "disagreement"
        elif abs(score - self.threshold) < self.margin and any(judge.scale != "binary" for judge in stage):
            doubt = "low_confidence"
        return _Opinion(score, score >= self.threshold, found[0].explanation, doubt)

    def models(self) -> list[LlmJudge]:
        """The judges that ask a model, stage by stage."""
        return [judge for stage in self.stages for judge in stage]

    def _mapped(self, change: Callable[[LlmJudge], LlmJudge]) -> "Cascade":
        return Cascade(
            [[change(judge) for judge in stage] for stage in self.stages],
            self.escalate,
            name=self.name,
            threshold=self.threshold,
            margin=self.margin,
            abstain=self.abstain,
        )


def _sum(ends: Sequence[Verdict | JudgeError]) -> dict[str, Any]:
    """The details of the last judge that answered, with the tokens and costs of all; absent when one of them did not say."""
    said = [end.details for end in ends if end.details]
    known: dict[str, Any] = dict(said[-1]) if said else {}
    for name in _SUMMED:
        values = [one[name] for one in said if name in one]
        known.pop(name, None)
        if values and (len(values) == len(said) or name == semconv.JUDGE_REPAIRS):
            known[name] = sum(values)
    for name in (semconv.JUDGE_COST, semconv.JUDGE_COST_AT_MOST):
        known.pop(name, None)
    costs = [cost_of(end) for end in ends]
    if None not in costs:
        exact = not any(semconv.JUDGE_COST_AT_MOST in end.details for end in ends)
        name = semconv.JUDGE_COST if exact else semconv.JUDGE_COST_AT_MOST
        known[name] = sum(cost for cost in costs if cost is not None)
    if not all(end.details.get(semconv.JUDGE_CACHED) for end in ends):
        known.pop(semconv.JUDGE_CACHED, None)
    return known


def _told(opinions: Sequence[_Opinion]) -> str:
    lines = []
    for n, opinion in enumerate(opinions, 1):
        said = "no verdict" if opinion.score is None else f"{opinion.score:g}"
        lines.append(f"stage {n}: {said} ({opinion.doubt}); {opinion.explanation or 'no reason given'}")
    return "\n".join(lines)
