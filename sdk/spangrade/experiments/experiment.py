"""One experiment while it runs: every item, as often as asked, through the task and the evaluators."""

import asyncio
import platform
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from typing import Any

from spangrade import _guard
from spangrade._values import snapshot
from spangrade._version import __version__
from spangrade.experiments.calling import Came, error_of, output_of
from spangrade.experiments.dataset import Dataset
from spangrade.experiments.evaluators import record_of
from spangrade.experiments.item import Item, for_task
from spangrade.experiments.pairs import PairEnd, Pairs
from spangrade.experiments.progress import Progress
from spangrade.experiments.records import ItemResult, RunRecord, ScoreResult, TaskError
from spangrade.experiments.results import Results
from spangrade.experiments.samples import Found, found_in
from spangrade.experiments.task import Task
from spangrade.experiments.tracing import TracedRun, Tracing
from spangrade.model.evaluator import Evaluator
from spangrade.model.outcome import Outcome
from spangrade.model.sample import FrozenDict, Sample, freeze
from spangrade.samples.reading import Call
from spangrade.scoring.clock import Clock
from spangrade.scoring.redaction import Redact


@dataclass(frozen=True, slots=True)
class Plan:
    """What an experiment is to do. ``timeout``: seconds that a task may take, None for any time."""

    dataset: Dataset
    task: Task | None
    evaluators: tuple[Evaluator, ...]
    name: str
    concurrency: int = 8
    repeats: int = 1
    timeout: float | None = None
    progress: bool | None = None
    metadata: Mapping[str, Any] = field(default_factory=FrozenDict)
    redact: Redact | None = None


class Experiment:
    """Run it once. `results` has what is done at any time, also after it was stopped."""

    def __init__(self, plan: Plan, clock: Clock) -> None:
        self._plan = plan
        self._clock = clock
        self._records = tuple(record_of(one) for one in plan.evaluators)
        self._targets = tuple(dict.fromkeys(record.target for record in self._records))
        self._done: list[ItemResult | None] = [None] * (len(plan.dataset.items) * plan.repeats)
        self._todo = iter(range(len(self._done)))
        self._began, self._started_ns = clock.monotonic(), clock.time_ns()

    async def run(self) -> Results:
        """All of it."""
        plan = self._plan
        with (
            Tracing(plan.name, plan.dataset.name) as tracing,
            Pairs(plan.evaluators, plan.concurrency, plan.redact, self._clock) as pairs,
            Progress(plan.name, len(self._done), plan.progress) as progress,
        ):
            count = min(plan.concurrency, len(self._done))
            workers = [asyncio.ensure_future(self._work(tracing, pairs, progress)) for _ in range(count)]
            try:
                await asyncio.gather(*workers)
            finally:
                for worker in workers:
                    worker.cancel()
        return self.results()

    def results(self) -> Results:
        """What is done so far."""
        plan = self._plan
        done = tuple(item for item in self._done if item is not None)
        run = RunRecord(
            name=plan.name,
            dataset=plan.dataset.name,
            dataset_hash=plan.dataset.hash,
            task=plan.task.name if plan.task is not None else None,
            dataset_items=len(plan.dataset.items),
            repeats=plan.repeats,
            concurrency=plan.concurrency,
            started=datetime.fromtimestamp(self._started_ns / 1e9, UTC).isoformat(timespec="seconds"),
            duration_s=max(0.0, self._clock.monotonic() - self._began),
            spangrade=__version__,
            python=platform.python_version(),
            metadata=plan.metadata,
            interrupted=len(done) < len(self._done),
        )
        return Results(done, self._records, run)

    async def _work(self, tracing: Tracing, pairs: Pairs, progress: Progress) -> None:
        for index in self._todo:
            number, repeat = divmod(index, self._plan.repeats)
            item = self._plan.dataset.plain[number]
            traced = tracing.start(self._plan.name, item, repeat)
            try:
                done = await self._one(self._plan.dataset.items[number], item, repeat, traced, pairs)
            except Exception as fault:  # noqa: BLE001 - a fault of ours costs this run and no other
                _guard.swallowed("experiment.run", fault)
                ours = error_of(fault)
                why = TaskError(ours.type, f"spangrade could not read what the task gave: {ours.message}")
                done = ItemResult(item["item_id"], repeat, item["input"], expected=item["expected"], error=why)
                traced.close()
            except BaseException:
                traced.close()
                raise
            self._done[index] = done
            progress.advance(failed=done.error is not None)

    async def _one(self, given: Item, item: Item, repeat: int, traced: TracedRun, pairs: Pairs) -> ItemResult:
        task = self._plan.task
        if task is not None:
            came = await output_of(task, for_task(given), traced, self._plan.timeout)
        elif item["output"] is not None:
            came = Came(given["output"])
        else:
            came = Came(error=TaskError("no_output", "the dataset has no output for this item, and there is no task"))
        traced.ended()
        trace_id, span_id = traced.ids
        result = ItemResult(
            item_id=item["item_id"],
            repeat=repeat,
            input=item["input"],
            expected=item["expected"],
            documents=tuple(item["documents"]),
            context=item["context"] if isinstance(item["context"], FrozenDict) else FrozenDict(),
            metadata=item["metadata"],
            duration_s=traced.duration_s if task is not None else None,
            trace_id=trace_id,
            span_id=span_id,
        )
        if came.error is not None:
            traced.failed(came.error.type, came.error.message)
            traced.close()
            return replace(result, error=came.error)
        found = found_in(item, traced, came.output, self._targets, task)
        ends = await asyncio.gather(*(_graded(pairs, *one) for one in found.graded))
        traced.close(record for of_call in ends for end in of_call for record in end.records)
        return replace(
            result,
            output=found.item.output,
            documents=tuple(found.item.documents),
            metadata=freeze(found.metadata),
            scores=tuple(self._scores(result, found, [end for of_call in ends for end in of_call])),
        )

    def _scores(self, item: ItemResult, found: Found, ends: list[PairEnd]) -> Iterator[ScoreResult]:
        """In the evaluators' order, a call's after those of the calls before it."""
        for record in self._records:
            if record.target in found.absent:
                reason = f"no {record.target} call in this run"
                yield ScoreResult(item.item_id, item.repeat, record.name, record.key, Outcome.SKIPPED, reason=reason)
            for end in ends:
                if end.evaluator.key == record.key:
                    yield from _scores_of(item, end)


async def _graded(pairs: Pairs, target: str, call: Call, sample: Sample) -> list[PairEnd]:
    loop = asyncio.get_running_loop()
    ended: asyncio.Future[list[PairEnd]] = loop.create_future()

    def tell(ends: list[PairEnd]) -> None:
        if not ended.done():
            ended.set_result(ends)

    def done(ends: list[PairEnd]) -> None:
        try:
            loop.call_soon_threadsafe(tell, ends)
        except RuntimeError:  # the run was stopped, and its loop is closed
            pass

    pairs.grade(call, sample, target, done)
    return await ended


def _scores_of(item: ItemResult, end: PairEnd) -> Iterator[ScoreResult]:
    info = end.evaluator
    if not end.records:
        yield ScoreResult(
            item.item_id,
            item.repeat,
            info.name,
            info.key,
            end.outcome,
            reason=end.reason,
            error_type=end.error_type,
            duration_s=end.duration_s,
        )
    for record in end.records:
        graded, failed = record.graded, record.error_type is not None
        span_id = f"{record.span.span_id:016x}"
        outcome = end.outcome
        if failed:  # perhaps one of several scores, the others of which are there
            outcome = Outcome.TIMEOUT if record.error_type == "timeout" else Outcome.ERROR
        yield ScoreResult(
            item.item_id,
            item.repeat,
            graded.name,
            info.key,
            outcome,
            value=graded.value,
            label=graded.label,
            passed=graded.passed,
            explanation=None if failed else graded.explanation,
            reason=graded.explanation if failed else None,
            error_type=record.error_type,
            structured=freeze(graded.structured),
            metadata=freeze(snapshot(graded.metadata)),
            path=graded.path,
            rule=graded.rule,
            duration_s=record.duration_s,
            details=freeze(snapshot(dict(record.details))),
            score_id=record.score_id if item.trace_id is not None else None,
            span_id=span_id if item.span_id not in (None, span_id) else None,
        )
