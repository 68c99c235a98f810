"""`evaluate` and `aevaluate`: a task over a dataset, graded by the evaluators that grade production."""

import asyncio
import os
import threading
import warnings
from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

from spangrade.errors import ConfigError

if TYPE_CHECKING:
    from spangrade.experiments.experiment import Experiment, Plan
    from spangrade.experiments.results import Results

CONCURRENCY: Final = 8
_LOOK_S: Final = 0.1


class EvaluationInterrupted(KeyboardInterrupt):
    """The run was stopped by Ctrl-C; ``results`` has what was done until then."""

    def __init__(self, results: "Results") -> None:
        super().__init__(f"stopped after {len(results.items)} runs; they are in .results")
        self.results = results


class SourceChanged(UserWarning):
    """A metric's code changed while its version did not: its scores are not comparable, although they look so."""


def evaluate(
    dataset: Any,
    task: Any = None,
    evaluators: Any = (),
    *,
    concurrency: int = CONCURRENCY,
    repeats: int = 1,
    baseline: "Results | str | os.PathLike[str] | None" = None,
    name: str | None = None,
    progress: bool | None = None,
    metadata: Mapping[str, Any] | None = None,
    timeout: float | None = None,
    evaluator_timeout: float | None = None,
) -> "Results":
    """Run a task over a dataset and grade what it gives, with the same evaluators that grade production.

    Works inside a running event loop too (in a notebook), where it blocks; `aevaluate` does not.

    Args:
        dataset: a path (JSON Lines, CSV), or an iterable of dicts, `Sample` objects or texts: a list, a generator, a Hugging
            Face dataset, a pandas DataFrame. Columns are read by their usual names (``input`` or ``question``, ``expected``
            or ``reference`` or ``ground_truth``, ``documents`` or ``contexts``, ``output`` or ``answer``, ``context``,
            ``metadata``, ``id``); all others go into ``metadata``. Without an id, an item's is a hash of its content, the
            same in every run.
        task: a function that gives the output for an item; sync, async, or a generator whose chunks are joined. Parameters
            named like an item's fields or columns are filled by name; a single parameter of another name gets the input;
            one named ``item`` the whole item, a read-only mapping. None: the outputs are in the dataset.
        evaluators: metrics (functions, names, ``"module:name"``) and judges; a judge need not be live.
        concurrency: runs that are under way at once.
        repeats: how often each item is run.
        baseline: results, or the path of saved ones, to compare with; the outcome is ``results.comparison``.
        name: of the experiment; default the task's name, else the dataset's.
        progress: a progress bar on standard error. None: where that is a terminal and tqdm is installed (extra
            ``experiments``); True: always; False: never.
        metadata: anything to keep with the results, such as a commit or a model's name.
        timeout: seconds that the task may take for one item; default any time. A plain function that takes longer is left
            behind on its thread.
        evaluator_timeout: seconds for each evaluator on one sample, in place of its own (5 for metrics, 60 for judges).

    Every run is traced like a live call, with its scores as events, through the provider that `configure` set up or the
    application has; documents which the task retrieves reach the Sample. Without one nothing is exported. These spans are
    not scored again as traffic.

    A task that fails gives an item with an ``error``, and none of its evaluators runs. An evaluator ends as scored, skipped,
    error or timeout for each run; a failure is never a number. An evaluator with another target than root grades every
    call of that kind that the task made.

    Raises:
        ConfigError: something that cannot work, before anything is run.
        EvaluationInterrupted: Ctrl-C; a `KeyboardInterrupt` with the ``results`` so far.
    """
    plan, before = _plan(
        dataset, task, evaluators, concurrency, repeats, baseline, name, progress, metadata, timeout, evaluator_timeout
    )
    return _with_baseline(_run(plan), before)


async def aevaluate(
    dataset: Any,
    task: Any = None,
    evaluators: Any = (),
    *,
    concurrency: int = CONCURRENCY,
    repeats: int = 1,
    baseline: "Results | str | os.PathLike[str] | None" = None,
    name: str | None = None,
    progress: bool | None = None,
    metadata: Mapping[str, Any] | None = None,
    timeout: float | None = None,  # noqa: ASYNC109 - of each task, and not of this
    evaluator_timeout: float | None = None,
) -> "Results":
    """`evaluate` on the running event loop: an async task runs on it, a plain one on threads. The same arguments."""
    plan, before = _plan(
        dataset, task, evaluators, concurrency, repeats, baseline, name, progress, metadata, timeout, evaluator_timeout
    )
    return _with_baseline(await _experiment(plan).run(), before)


def _plan(
    dataset: Any,
    task: Any,
    evaluators: Any,
    concurrency: int,
    repeats: int,
    baseline: Any,
    name: str | None,
    progress: bool | None,
    metadata: Mapping[str, Any] | None,
    timeout: float | None,
    evaluator_timeout: float | None,
) -> "tuple[Plan, Results | None]":
    from spangrade._switches import scoring_stopped
    from spangrade._values import bounded, snapshot
    from spangrade.experiments.dataset import read_dataset
    from spangrade.experiments.evaluators import evaluators_of
    from spangrade.experiments.experiment import Plan
    from spangrade.experiments.task import Task
    from spangrade.model.sample import freeze
    from spangrade.otel.engine import current_engine

    _check_count("concurrency", concurrency)
    _check_count("repeats", repeats)
    _check_seconds("timeout", timeout)
    _check_seconds("evaluator_timeout", evaluator_timeout)
    if name is not None and not (isinstance(name, str) and name.strip()):
        raise ConfigError(f"evaluate: name {name!r} is no text")
    if metadata is not None and not isinstance(metadata, Mapping):
        raise ConfigError(f"evaluate: metadata {metadata!r} is no mapping, such as {{'commit': 'abc'}}")
    before = _baseline(baseline)
    found = evaluators_of(evaluators, evaluator_timeout)
    if found and scoring_stopped():
        raise ConfigError(
            "evaluate: scoring is switched off by SPANGRADE_SCORING or SPANGRADE_DISABLED, so nothing would be scored; "
            "unset it for this run"
        )
    items = read_dataset(dataset)
    if task is None and all(item["output"] is None for item in items.items):
        raise ConfigError(f"evaluate: no task, and no item of {items.name} has an output; give a task, or outputs")
    bound = None if task is None else Task(task, items.items)
    engine = current_engine()
    plan = Plan(
        dataset=items,
        task=bound,
        evaluators=tuple(found),
        name=bounded(name or (bound.name if bound is not None else items.name), 1_024),
        concurrency=concurrency,
        repeats=repeats,
        timeout=timeout,
        progress=progress,
        metadata=freeze(snapshot(dict(metadata or {}))),
        redact=engine.policy.redact if engine is not None else None,
    )
    return plan, before


def _experiment(plan: "Plan") -> "Experiment":
    from spangrade.experiments.experiment import Experiment
    from spangrade.scoring.clock import SystemClock

    return Experiment(plan, SystemClock())


def _run(plan: "Plan") -> "Results":
    experiment = _experiment(plan)
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        try:
            return asyncio.run(experiment.run())
        except KeyboardInterrupt:
            raise EvaluationInterrupted(experiment.results()) from None
    return _beside(experiment)


def _beside(experiment: "Experiment") -> "Results":
    """In a thread with an event loop of its own, since this thread's is running."""
    from contextvars import copy_context

    ended: list[Results | BaseException] = []
    started = threading.Event()
    stop: list[Any] = []

    async def main() -> None:
        loop, task = asyncio.get_running_loop(), asyncio.current_task()
        assert task is not None
        stop.append(lambda: loop.call_soon_threadsafe(task.cancel))
        started.set()
        ended.append(await experiment.run())

    def work() -> None:
        try:
            asyncio.run(main())
        except BaseException as fault:  # noqa: BLE001 - raised again by who waits
            ended.append(fault)
        finally:
            started.set()

    thread = threading.Thread(target=copy_context().run, args=(work,), name="spangrade-evaluate", daemon=True)
    thread.start()
    try:
        _join(thread)
    except KeyboardInterrupt:
        started.wait()
        for cancel in stop:
            cancel()
        thread.join()
        raise EvaluationInterrupted(experiment.results()) from None
    found = ended[0]
    if isinstance(found, BaseException):
        raise found
    return found


def _join(thread: threading.Thread) -> None:
    """Wait for it, or for Ctrl-C: `asyncio.run` makes of the first one a cancellation of the task that waits here, which it
    cannot see while it blocks its loop."""
    waiting = asyncio.current_task()
    while thread.is_alive():
        thread.join(_LOOK_S)
        if waiting is not None and waiting.cancelling():
            raise KeyboardInterrupt


def _check_count(what: str, given: Any) -> None:
    if isinstance(given, bool) or not isinstance(given, int) or given < 1:
        raise ConfigError(f"evaluate: {what} {given!r} is not a whole number, 1 or more")


def _check_seconds(what: str, given: Any) -> None:
    if given is not None and (isinstance(given, bool) or not isinstance(given, (int, float)) or not given > 0):
        raise ConfigError(f"evaluate: {what} {given!r} is not a number of seconds above 0; None means any time")


def _baseline(given: Any) -> "Results | None":
    from spangrade.experiments.results import Results

    if given is None or isinstance(given, Results):
        return given
    if isinstance(given, (str, os.PathLike)):
        return Results.load(given)
    raise ConfigError(f"evaluate: baseline {type(given).__name__} is neither results nor the path of saved ones")


def _with_baseline(results: "Results", before: "Results | None") -> "Results":
    if before is None:
        return results
    from spangrade.experiments.compare import compare
    from spangrade.experiments.evaluators import changed_source

    if changed := changed_source(results.evaluators, before.evaluators):
        warnings.warn(
            f"the code of {', '.join(changed)} changed since the baseline while its version did not: give @metric a new "
            "version=, so that the two are not compared as if they were one metric",
            SourceChanged,
            stacklevel=3,
        )
    return replace(results, comparison=compare(before, results))
