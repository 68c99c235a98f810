"""The judge over the labelled items: each as often as asked, and once more with its documents or examples turned round."""

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Final

from spangrade import semconv
from spangrade.errors import ConfigError
from spangrade.experiments.item import Item, plain_item
from spangrade.experiments.records import ItemResult
from spangrade.experiments.run import CONCURRENCY, evaluate
from spangrade.experiments.task import sample_of_item
from spangrade.judges.judge import LlmJudge
from spangrade.judges.prompt import Rubric, build_prompt
from spangrade.judges.scale import scale_named
from spangrade.model.outcome import Outcome

#: Characters to a token, in English and by the tokenizers of 2024 to 2026, roughly; and tokens of a reasoned verdict.
CHARACTERS_PER_TOKEN: Final = 4
REPLY_TOKENS: Final = 120


@dataclass(frozen=True, slots=True)
class Grade:
    """One grading that gave a score from 0 to 1."""

    item_id: str
    repeat: int
    score: float
    passed: bool


@dataclass(frozen=True, slots=True)
class Round:
    """What one round of gradings came to: scores, and how many failed by what kind; a failure is never a number.

    ``first``: the first message of each kind. ``models``: those that answered. Tokens: None where a reply did not tell.
    ``cached``: how many came from a cache.
    """

    grades: tuple[Grade, ...]
    errors: dict[str, int] = field(default_factory=dict)
    first: dict[str, str] = field(default_factory=dict)
    models: tuple[str, ...] = ()
    input_tokens: int | None = None
    output_tokens: int | None = None
    cached: int = 0


@dataclass(frozen=True, slots=True)
class Estimate:
    """What a calibration will ask for, before it is asked. Tokens are a guess: 4 characters each, 120 for a reply. ``usd``: what
    they cost, in US dollars; None where the model's price is not known."""

    calls: int
    input_tokens: int
    output_tokens: int
    usd: float | None = None

    def __str__(self) -> str:
        price = "the model's price is not known" if self.usd is None else f"about {self.usd:,.2f} US dollars"
        return (
            f"{self.calls:,} judge calls, about {self.input_tokens:,} tokens in and {self.output_tokens:,} out, {price} "
            "(at 4 characters a token; retries and repairs not counted)"
        )


def estimate(judge: LlmJudge, rounds: Iterable[tuple[Sequence[Item], int]]) -> Estimate:
    """For rounds of (items, repeats)."""
    rubric = Rubric(judge.criteria, scale_named(judge.scale, "judge"), judge.levels or {}, judge.fields, judge.examples)
    calls = characters = 0
    for items, repeats in rounds:
        for item in items:
            prompt = build_prompt(rubric, sample_of_item(plain_item(item)))
            calls += repeats
            characters += repeats * (len(prompt.system) + len(prompt.user))
    tokens, price = -(-characters // CHARACTERS_PER_TOKEN), judge.price
    # By the call: some models cost more a token where a call has very many.
    each = None if price is None or not calls else price.cost(tokens // calls, REPLY_TOKENS)
    return Estimate(calls, tokens, calls * REPLY_TOKENS, None if each is None else calls * each)


def graded(
    judge: LlmJudge,
    items: Sequence[Item],
    *,
    repeats: int = 1,
    concurrency: int = CONCURRENCY,
    progress: bool | None = None,
    name: str = "calibrate",
) -> Round:
    """Grade ``items`` with the machinery that grades any dataset: at most ``concurrency`` at once.

    Raises:
        ConfigError: the judge cannot be asked at all.
        EvaluationInterrupted: Ctrl-C.
    """
    results = evaluate(items, None, [judge], repeats=repeats, concurrency=concurrency, progress=progress, name=name)
    found = _round(judge, results.items)
    if not found.grades and set(found.errors) == {"configuration"}:
        raise ConfigError(found.first["configuration"])
    return found


def reads_order_of_documents(judge: LlmJudge, item: Item) -> bool:
    """Whether the judge is shown documents of this item that could stand in another order."""
    return "documents" in judge.fields and len(item["documents"]) > 1


def with_documents_reversed(item: Item) -> Item:
    """The same item with its documents from last to first: of two, the other order. Where not all of them fit into the prompt,
    the ones that do are then others too."""
    return Item({**item, "documents": type(item["documents"])(reversed(item["documents"]))})


def with_examples_reversed(judge: LlmJudge) -> LlmJudge:
    """The same judge, asked at the same endpoint, with its graded examples from last to first."""
    return judge._copy(examples=tuple(reversed(judge.examples)))  # a copy keeps client and time limit


def _round(judge: LlmJudge, runs: Sequence[ItemResult]) -> Round:
    grades = []
    errors: Counter[str] = Counter()
    first: dict[str, str] = {}
    models: dict[str, None] = {}
    tokens: dict[str, list[int | None]] = {semconv.JUDGE_INPUT_TOKENS: [], semconv.JUDGE_OUTPUT_TOKENS: []}
    cached = 0
    for run in runs:
        score = run.score(judge.name)
        if score is None or score.value is None:
            outcome = score.outcome if score is not None else Outcome.ERROR
            kind = (score.error_type if score is not None else None) or str(outcome)
            errors[kind] += 1
            first.setdefault(kind, (score.reason if score is not None else None) or kind)
        else:
            grades.append(Grade(run.item_id, run.repeat, score.value, bool(score.passed)))
        details = score.details if score is not None else {}
        cached += bool(details.get(semconv.JUDGE_CACHED))
        if isinstance(model := details.get(semconv.JUDGE_MODEL), str):
            models[model] = None
        for kind, counts in tokens.items():
            if model is not None:
                counts.append(details.get(kind))
    return Round(
        tuple(grades),
        dict(errors.most_common()),
        first,
        tuple(models),
        _sum(tokens[semconv.JUDGE_INPUT_TOKENS]),
        _sum(tokens[semconv.JUDGE_OUTPUT_TOKENS]),
        cached,
    )


def _sum(counts: Sequence[int | None]) -> int | None:
    known = [count for count in counts if count is not None]
    return sum(known) if known and len(known) == len(counts) else None
