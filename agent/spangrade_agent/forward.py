"""A bounded queue of encoded OTLP requests in front of an upstream: joined, sent in order, retried, and all counted."""

import random
import threading
from collections import deque
from collections.abc import Callable
from dataclasses import replace
from typing import Any, Final

from spangrade import _guard
from spangrade._log import log, once
from spangrade.scoring.clock import Clock, SystemClock
from spangrade_agent.backoff import Backoff
from spangrade_agent.bodies import PARTIAL, SHUTDOWN, SPOOLED, UNREADABLE, Body, Counts, Keep, OnResult
from spangrade_agent.wire import Answer, Kind, Signal, Upstream

_REJECTED_SAID_S: Final = 60.0

Wait = Callable[[threading.Condition, float], object]


class ForwardQueue:
    """One upstream's queue of one signal, emptied by a daemon thread that starts with the first `put`.

    What waits together is sent as one request: OTLP requests are one repeated field, so bodies joined are a valid body.
    A batch that is refused as too large or bad is halved until the bodies that are to blame are alone. Safe from any
    thread; nothing here raises.

    Args:
        upstream: not closed by this queue.
        signal: of every body.
        max_bytes: of the bodies that are waiting or on their way; of those in memory where a ``keep`` has them all.
        max_batch_bytes: of one request, unless a single body is larger.
        linger_s: how long what waits, when it is no full batch, waits for company; 0 sends it at once.
        on_result: called with the tokens of bodies that have ended, whether they were taken, and why not; from the queue's
            thread, or from that of `close`.
        keep: where bodies that are put with a key are durable; told to forget them when they have ended, but at `close`.
        name: of the upstream, for log lines.
        wait: how the thread waits on its condition; for tests.
    """

    def __init__(
        self,
        upstream: Upstream,
        signal: Signal,
        clock: Clock | None = None,
        max_bytes: int = 64 * 1024 * 1024,
        max_batch_bytes: int = 1024 * 1024,
        on_result: OnResult | None = None,
        *,
        keep: Keep | None = None,
        linger_s: float = 0.2,
        backoff: Backoff | None = None,
        name: str = "upstream",
        wait: Wait = threading.Condition.wait,
        chance: Callable[[], float] = random.random,
    ) -> None:
        self._upstream = upstream
        self._signal: Signal = signal
        self._clock = clock or SystemClock()
        self._max_bytes = max_bytes
        self._max_batch_bytes = max_batch_bytes
        self._on_result = on_result
        self._keep = keep
        self._in_memory = 0  # bytes of `_open` that are not only where they are kept
        self._linger_s = linger_s
        self._backoff = backoff or Backoff()
        self._name = name
        self._wait = wait
        self._chance = chance
        lock = threading.Lock()
        self._work = threading.Condition(lock)  # the thread waits on it
        self._settled = threading.Condition(lock)  # flush and close wait on it
        self._waiting: deque[Body] = deque()
        self._open: dict[int, Body] = {}  # by id: all that was put and has not ended, waiting or on its way
        self._bytes = 0  # of `_open`
        self._put = 0  # bodies put, and ended; they end in the order of `put`
        self._ended = 0
        self._hurry_to = 0  # as many bodies are to end without waiting for company: a flush waits for them
        self._kicks = 0  # raised by flush and close: who waits to try again looks up
        self._close_by: float | None = None
        self._thread: threading.Thread | None = None
        self._counts = Counts()
        self._rejected_said = float("-inf")

    # --- callers' side -------------------------------------------------------------------------------------------------

    def put(
        self, body: bytes, items: int = 1, token: Any = None, *, force: bool = False, key: int | None = None
    ) -> bool:
        """Queue an encoded request of ``items`` spans or records. False: closed, or no room for it (the caller's sender is
        to keep it). ``force``: take it past the bound, for what has been acknowledged already. ``key``: under which it is
        kept; past the bound it is there only."""
        with self._work:
            full = self._in_memory + len(body) > self._max_bytes
            force = force or key is not None
            if self._close_by is not None or (full and not force) or not self._started():
                self._counts.refused += items
                return False
            queued = Body(None if full and key is not None else body, len(body), items, token, key)
            self._in_memory += 0 if queued.data is None else queued.size
            self._waiting.append(queued)
            self._open[id(queued)] = queued
            self._bytes += len(body)
            self._counts.queued += items
            self._put += 1
            if len(self._waiting) == 1 or self._bytes >= self._max_batch_bytes:
                self._work.notify()
        return True

    def full(self) -> bool:
        """True when the bound is reached; also when closed."""
        if self._close_by is not None:
            return True
        return self._keep is None and self._bytes >= self._max_bytes

    @property
    def pending_bytes(self) -> int:
        """Bytes waiting or on their way."""
        return self._bytes

    def counts(self) -> Counts:
        """A copy of the counters."""
        with self._work:
            return replace(self._counts, dropped=dict(self._counts.dropped))

    def flush(self, timeout_s: float) -> bool:
        """Wait until all that was put before has ended. What lingers, or waits to be tried again (unless the upstream has
        named the time), is tried at once. True: all of it ended in time."""
        with self._work:
            mark = self._hurry_to = self._put
            self._kick()
            return self._settled.wait_for(lambda: self._ended >= mark, timeout_s)

    def close(self, timeout_s: float) -> bool:
        """Take nothing more, send what there is within ``timeout_s``, then drop and count the rest. True: nothing was left.
        Again: nothing happens."""
        with self._work:
            if self._close_by is None:
                self._close_by = self._clock.monotonic() + max(0.0, timeout_s)
            self._kick()
            self._settled.wait_for(lambda: self._ended >= self._put, max(0.0, timeout_s))
            self._waiting.clear()
            left = list(self._open.values())
        return not self._give_up(left, SHUTDOWN)

    def _kick(self) -> None:
        self._kicks += 1
        self._work.notify_all()

    def _started(self) -> bool:
        if self._thread is None:
            thread = threading.Thread(target=self._run, name=f"spangrade-forward-{self._signal}", daemon=True)
            try:
                thread.start()
            except RuntimeError:  # the interpreter is closing
                return False
            self._thread = thread
        return True

    # --- the thread's side ---------------------------------------------------------------------------------------------

    def _run(self) -> None:
        while (batch := self._next()) is not None:
            try:
                self._deliver(batch)
            except Exception as fault:  # noqa: BLE001 - the thread has to live
                _guard.swallowed("forward", fault)
                self._give_up(batch, "internal")

    def _next(self) -> list[Body] | None:
        """The next bodies to send as one; None: closed and empty."""
        with self._work:
            while True:
                while not self._waiting:
                    if self._close_by is not None:
                        return None
                    self._work.wait()
                self._linger()
                if self._waiting:  # `close` may have taken them meanwhile
                    break
            batch = [self._waiting.popleft()]
            size = batch[0].size
            while self._waiting and size + self._waiting[0].size <= self._max_batch_bytes:
                batch.append(self._waiting.popleft())
                size += batch[-1].size
            return batch

    def _linger(self) -> None:
        until = self._clock.monotonic() + self._linger_s
        while self._bytes < self._max_batch_bytes and self._ended >= self._hurry_to and self._close_by is None:
            left = until - self._clock.monotonic()
            if left <= 0:
                return
            self._wait(self._work, left)

    def _deliver(self, batch: list[Body]) -> None:
        """Send ``batch`` until all of it has ended."""
        with self._work:  # `close` may have given up some, or all
            batch = [body for body in batch if id(body) in self._open]
        if not batch:
            return
        if any(body.data is None for body in batch):
            batch = self._loaded(batch)
            if not batch:
                return
        answer = self._send(batch)
        if answer is None:
            self._give_up(batch, SHUTDOWN)
        elif answer.kind is Kind.OK:
            self._end(batch, None, answer)
        elif answer.kind in (Kind.TOO_LARGE, Kind.BAD) and len(batch) > 1:
            # That they travelled together was our choice: one sender's bad request must not cost the others theirs.
            middle = len(batch) // 2
            self._deliver(batch[:middle])
            self._deliver(batch[middle:])
        else:
            self._end(batch, answer.kind.value, answer)

    def _send(self, batch: list[Body]) -> Answer | None:
        """The upstream's first answer that is not "again". None: closed before there was one."""
        data = b"".join(body.data for body in batch if body.data is not None)
        tries = 0
        while True:
            kicks = self._kicks  # before the try: a flush in the middle of it asks for one more
            try:
                answer = self._upstream.send(self._signal, data)
            except Exception as fault:  # noqa: BLE001 - not to the contract; the data is kept
                _guard.swallowed("forward.send", fault)
                answer = Answer(Kind.RETRY, "the upstream raised")
            if answer.kind is not Kind.RETRY:
                return answer
            tries += 1
            once(
                f"forward:retry:{self._name}:{self._signal}",
                "the upstream does not take data now; it is kept and sent again",
                upstream=self._name,
                signal=self._signal,
                answer=answer.message,
            )
            if not self._back_off(tries, answer.retry_after_s, kicks):
                return None
            with self._work:
                self._counts.retried += sum(body.items for body in batch)

    def _loaded(self, batch: list[Body]) -> list[Body]:
        """The same with what is only where it is kept; what cannot be read there is dropped, and counted."""
        found: list[Body] = []
        for body in batch:
            data = body.data
            if data is None and body.key is not None and self._keep is not None:
                data = self._keep.load(body.key)
            if data is None:
                self._end([body], UNREADABLE)
                continue
            if body.data is None:
                with self._work:
                    if self._open.pop(id(body), None) is None:
                        continue  # `close` was first
                    body = replace(body, data=data)  # noqa: PLW2901 - the same one, with its content
                    self._open[id(body)] = body
                    self._in_memory += body.size
            found.append(body)
        return found

    def _back_off(self, tries: int, told: float | None, kicks: int) -> bool:
        """Wait before another try. False: there is to be none, since the queue is closed and its time over."""
        with self._work:
            if self._close_by is not None:  # little time is left, and nothing to be gained by politeness
                tries, told = 1, None
            until = self._clock.monotonic() + self._backoff.delay(tries, told, self._chance())
            while True:
                now = self._clock.monotonic()
                if self._close_by is not None and now >= self._close_by:
                    return False
                must_wait = bool(told) and self._close_by is None
                if now >= until or (self._kicks != kicks and not must_wait):
                    return True
                end = until if self._close_by is None else min(until, self._close_by)
                self._wait(self._work, end - now)

    def _give_up(self, bodies: list[Body], reason: str) -> int:
        """Neither taken nor refused: what is kept waits for the next start, the rest is dropped. How many of that."""
        self._end([body for body in bodies if body.key is not None], SPOOLED)
        return self._end([body for body in bodies if body.key is None], reason)

    def _end(self, bodies: list[Body], reason: str | None, answer: Answer | None = None) -> int:
        """``bodies`` have ended: taken (``reason`` None) or dropped. How many had not ended before (by `close`)."""
        with self._work:
            bodies = [body for body in bodies if self._open.pop(id(body), None) is not None]
            self._bytes -= sum(body.size for body in bodies)
            self._in_memory -= sum(body.size for body in bodies if body.data is not None)
            items = sum(body.items for body in bodies)
            rejected = min(items, answer.rejected) if answer is not None and reason is None else 0
            if reason is None:
                self._counts.sent += items - rejected
                self._counts.rejected += rejected
            elif items:
                self._counts.dropped[reason] = self._counts.dropped.get(reason, 0) + items
        if (
            self._keep is not None
            and reason != SPOOLED
            and (kept := [(body.key, body.size) for body in bodies if body.key is not None])
        ):
            with _guard.guard("forward.release"):
                self._keep.release(kept)
        if bodies and reason != SPOOLED:
            self._log(reason, answer.message if answer is not None else "", rejected)
        if bodies:
            tokens = [body.token for body in bodies if body.token is not None]
            if tokens and self._on_result is not None:
                with _guard.guard("forward.on_result"):
                    self._on_result(tokens, reason is None, PARTIAL if rejected else reason or "")
        with self._work:  # only now: who has flushed expects the tokens settled
            self._ended += len(bodies)
            self._settled.notify_all()
        return len(bodies)

    def _log(self, reason: str | None, message: str, rejected: int) -> None:
        names = {"upstream": self._name, "signal": self._signal, "answer": message}
        if reason is not None:
            key = f"forward:{reason}:{self._name}:{self._signal}"
            once(key, "data was dropped; see the counters for how much", reason=reason, **names)
        now = self._clock.monotonic()
        if rejected and now - self._rejected_said >= _REJECTED_SAID_S:
            self._rejected_said = now
            log.warning("the upstream took requests but refused items in them", rejected=self._counts.rejected, **names)
