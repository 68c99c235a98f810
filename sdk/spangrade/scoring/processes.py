"""Worker processes for metrics that keep the processor busy (``process=True``): such a one would hold up every thread of
the application by turns.

Each worker is a new interpreter, not a fork (the application has threads) and not one of `multiprocessing`'s, which would
run the application's script again: it imports the metric's module and nothing else of it, with Spangrade and the
OpenTelemetry SDK switched off. It is started when it is first needed, grades one sample at a time, and is killed when a
metric runs out of time: a process, unlike a thread, can be ended. One that ends by itself costs the pair that it was on,
and the next pair starts another. `concurrent.futures` would lose all its workers with that one, could not kill it, and
would wait for it at exit.

Who waits for a worker is a thread of a lane, which reads a pipe; `check` ends what is late, and so ends the waiting. Where
gevent is, its `subprocess` waits without holding up the application's greenlets.
"""

import pickle
import sys
import threading
from dataclasses import dataclass
from typing import Any, Final

from spangrade.errors import ConfigError, EvaluatorError
from spangrade.metrics.importable import dumped
from spangrade.model.sample import Sample
from spangrade.model.score import Skip
from spangrade.scoring.clock import Clock
from spangrade.scoring.worker_process import WorkerProcess, interpreter

START_S: Final = 60.0  # for an interpreter to start, and for a metric's module (a model) to be imported


def check_can_run(evaluator: Any) -> None:
    """Raises `ConfigError` when ``evaluator`` cannot run in a worker process; the message says what to do."""
    Remote.of(evaluator)
    if interpreter() is None:
        raise ConfigError(
            f"metric {evaluator.info.name!r}: process=True needs a Python interpreter to start; this program is none "
            f"({sys.executable or 'sys.executable is empty'}), and there is none in {sys.prefix}"
        )


@dataclass(frozen=True, slots=True)
class Remote:
    """An evaluator as a worker gets it. ``timeout``: seconds for one sample."""

    name: str
    pickled: bytes
    timeout: float

    @classmethod
    def of(cls, evaluator: Any) -> "Remote":
        """Raises `ConfigError` when it cannot be imported elsewhere."""
        name = evaluator.info.name
        return cls(name, dumped(evaluator, f"metric {name!r}"), evaluator.timeout)


class Processes:
    """At most ``count`` worker processes. Thread-safe."""

    def __init__(self, count: int, clock: Clock) -> None:
        self._count = count
        self._clock = clock
        self._path = list(map(str, sys.path))  # by which the metrics were found; who added to it may undo that
        self._cond = threading.Condition()
        self._all: list[WorkerProcess] = []
        self._idle: list[WorkerProcess] = []
        self._starting = 0
        self._closed = False

    def evaluate(self, remote: Remote, sample: Sample) -> Any:
        """What the evaluator says of ``sample`` in a worker. Waits for that, and before it for a free worker.

        Raises:
            Skip: the evaluator did.
            EvaluatorError: kind ``timeout``; ``worker_died``; ``worker_failed`` (it did not start); ``not_picklable``
                (the sample holds what cannot be sent); or the name of what the evaluator raised.
        """
        try:
            pickled = pickle.dumps(sample, protocol=pickle.HIGHEST_PROTOCOL)
        except Exception as fault:
            message = f"the sample cannot be sent to a worker process: {type(fault).__name__}: {fault}"
            raise EvaluatorError("not_picklable", message) from fault
        worker = self._take()
        well = False
        try:
            answer = self._graded(worker, remote, pickled)
            well = True
        except (OSError, EOFError, ValueError, pickle.UnpicklingError) as fault:
            raise self._what_happened(worker, remote) from fault
        finally:
            self._give_back(worker, well=well)
        return _read(answer)

    def _graded(self, worker: WorkerProcess, remote: Remote, pickled: bytes) -> tuple[Any, ...]:
        key = worker.known.get(remote.pickled)
        if key is None:
            key = len(worker.known)
            self._until(worker, START_S)
            answer = worker.ask("load", key, remote.pickled)
            if answer[0] != "loaded":
                return answer
            worker.known[remote.pickled] = key
        self._until(worker, remote.timeout)
        return worker.ask("run", key, pickled)

    def _until(self, worker: WorkerProcess, seconds: float) -> None:
        worker.deadline = self._clock.monotonic() + seconds

    def _what_happened(self, worker: WorkerProcess, remote: Remote) -> EvaluatorError:
        ready = remote.pickled in worker.known
        if worker.why == "timeout" and ready:
            message = f"gave no result within {remote.timeout:g} s; its worker process was ended"
            return EvaluatorError("timeout", message)
        if worker.why == "timeout":
            return EvaluatorError("worker_failed", f"its worker process did not import it within {START_S:g} s")
        worker.end("died")
        worker.reap()
        when = "before it answered" if ready else "at the import"
        return EvaluatorError("worker_died", f"its worker process ended {worker.how_it_ended()} {when}")

    # --- workers -------------------------------------------------------------------------------------------------------

    def _take(self) -> WorkerProcess:
        """A worker that is free, or a new one."""
        with self._cond:
            while True:
                if self._closed:
                    raise EvaluatorError("shutdown", "scoring has ended")
                while self._idle:
                    worker = self._idle.pop()
                    if worker.lives:
                        return worker
                    self._forget(worker)
                if len(self._all) + self._starting < self._count:
                    self._starting += 1
                    break
                self._cond.wait()
        return self._new()

    def _new(self) -> WorkerProcess:
        try:
            worker = WorkerProcess(list(dict.fromkeys((*map(str, sys.path), *self._path))))
        except BaseException:
            with self._cond:
                self._starting -= 1
                self._cond.notify()
            raise
        with self._cond:
            self._starting -= 1
            self._all.append(worker)
            if self._closed:
                worker.end("shutdown")
        try:
            self._until(worker, START_S)
            worker.wait_until_ready()
        except (OSError, EOFError, ValueError) as fault:
            self._give_back(worker, well=False)
            message = f"a worker process could not start: it ended {worker.how_it_ended()}"
            raise EvaluatorError("worker_failed", message) from fault
        return worker

    def _give_back(self, worker: WorkerProcess, *, well: bool) -> None:
        with self._cond:
            worker.deadline = float("inf")
            well = well and not worker.why and not self._closed
            if well:
                self._idle.append(worker)
                self._cond.notify()
        if not well:
            worker.end("died")
            worker.reap()
            with self._cond:
                self._forget(worker)

    def _forget(self, worker: WorkerProcess) -> None:
        # With `_cond` held.
        worker.close()
        if worker in self._all:
            self._all.remove(worker)
        self._cond.notify()

    # --- time and end --------------------------------------------------------------------------------------------------

    def check(self, now: float) -> float | None:
        """End the workers whose time is over; returns when the next one's is."""
        with self._cond:
            for worker in self._all:
                if now >= worker.deadline:
                    worker.deadline = float("inf")
                    worker.end("timeout")
            return min((w.deadline for w in self._all if w.deadline < float("inf")), default=None)

    def close(self) -> None:
        """End all workers, whatever they do. Nobody waits for them."""
        with self._cond:
            self._closed = True
            workers, self._all, self._idle = self._all, [], []
            self._cond.notify_all()
        for worker in workers:
            worker.end("shutdown")
        for worker in workers:
            worker.reap()

    def after_fork(self) -> None:
        """In a forked child: the workers are the parent's. Let go of their pipes, so that they see their host's end."""
        for worker in self._all:  # no lock: its owner may be the parent's
            worker.disown()


def _read(answer: tuple[Any, ...]) -> Any:
    if answer[0] == "verdict":
        return answer[1]
    if answer[0] == "skip":
        raise Skip(answer[1])
    raise EvaluatorError(answer[1], answer[2])
