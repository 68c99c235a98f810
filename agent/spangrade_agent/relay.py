"""OTLP requests in, spans on: calls wait for their scores, everything else goes on at once.

The sender is told the truth: what goes on at once is sent upstream before the request is acknowledged, and the
upstream's answer is the sender's. Calls are taken over only after that; from then on they are the agent's to deliver.
A request that a sender repeats, since the acknowledgement was lost, does not score or send a call again; its other spans
are sent again (the agent remembers calls only).

Log records are joined to the calls that they belong to (a request that comes again says nothing new), and go on.
"""

import threading
from dataclasses import dataclass, replace
from typing import Final

from spangrade import _guard
from spangrade._log import log, once
from spangrade.delivery.sink import SpanSink
from spangrade.samples.logs import holds_content
from spangrade.scoring.pipeline import Pipeline
from spangrade.scoring.seam import Offer
from spangrade_agent import codec
from spangrade_agent.carriers import AgentCarriers
from spangrade_agent.codec_neutral import events_of
from spangrade_agent.sorting import Mode, Sorter, serialized, serialized_logs
from spangrade_agent.spool.records import SpoolFault, SpoolFull
from spangrade_agent.spool.spooled import Kept, Spooled
from spangrade_agent.wire import Answer, Encoding, Kind, Signal, Upstream

FULL_RETRY_S: Final = 1.0


@dataclass(slots=True)
class Counts:
    """What came in and what became of it. Read by the admin listener; a lost increment would be a small lie, so the
    relay's lock is held where they change."""

    received: int = 0
    passed_on: int = 0
    held: int = 0
    rejected: int = 0
    duplicates: int = 0
    unscored: int = 0  # passed on without scores, since the spool could not be written
    restored: int = 0  # calls that waited when the last process ended


class Relay:
    """Implements `Ingest`. ``upstream`` None: nothing is sent on (scores are on the page only)."""

    def __init__(
        self,
        pipeline: Pipeline,
        sink: SpanSink,
        carriers: AgentCarriers,
        upstream: Upstream | None,
        mode: Mode,
        spooled: Spooled | None = None,
    ) -> None:
        self._pipeline = pipeline
        self._sink = sink
        self._carriers = carriers
        self._upstream = upstream
        self._mode = mode
        self._spooled = spooled
        self._lock = threading.Lock()
        self._sorter = Sorter(pipeline, carriers, mode, sends=upstream is not None)
        self.counts = Counts()
        self.refused: dict[tuple[Signal, Kind], int] = {}  # requests that the destination did not take, by its answer

    def ingest(self, signal: Signal, body: bytes, encoding: Encoding) -> Answer:
        """Take one request; see `Ingest`."""
        try:
            if signal == "traces":
                return self._traces(body, encoding)
            if signal == "logs":
                return self._logs(body, encoding)
            rejected, message = 0, ""
            if encoding == "json":
                body, rejected, message = codec.decode_other_counted(signal, body, encoding)
        except codec.BadRequest as fault:
            return Answer(Kind.BAD, str(fault))
        return _with(self._send(signal, body), rejected, message)

    def _logs(self, body: bytes, encoding: Encoding) -> Answer:
        """Log records go on as they came, as far as their content may; what was said in them is joined to its span as well,
        also where the destination takes no logs."""
        request, rejected, message = codec.decode_logs(body, encoding)
        if self._pipeline.placed:
            with _guard.guard("relay.logs"):
                for trace_id, span_id, event in events_of(request):
                    if holds_content(event):
                        self._pipeline.offer_log(trace_id, span_id, event)
        changed = encoding == "json" or bool(rejected or message)
        if self._mode == "relay" and self._upstream is not None:
            for group in request.resource_logs:
                for scope in group.scope_logs:
                    changed = self._carriers.clean_logs(scope) or changed
        return _with(self._send("logs", serialized_logs(request) if changed else body), rejected, message)

    def _send(self, signal: Signal, body: bytes) -> Answer:
        # A tap is given a copy: the original goes its own way, so nothing of it is sent on.
        if self._upstream is None or self._mode == "tap" or not body:
            return Answer()
        answer = self._upstream.send(signal, body)
        if answer.kind is not Kind.OK:
            with self._lock:
                self.refused[signal, answer.kind] = self.refused.get((signal, answer.kind), 0) + 1
            once(
                f"relay:{signal}:{answer.kind}",
                "the destination does not take requests; their senders are told so, and this is said once",
                signal=signal,
                answer=answer.kind.value,
                message=answer.message[:200],
            )
        return answer

    def _traces(self, body: bytes, encoding: Encoding) -> Answer:
        if self._carriers.full():
            return Answer(Kind.RETRY, "the agent's queue is full", retry_after_s=FULL_RETRY_S)
        request, rejected, message = codec.decode_traces(body, encoding)
        total = sum(len(scope.spans) for resource in request.resource_spans for scope in resource.scope_spans)
        plan = self._sorter.sort(request)
        untouched = encoding == "protobuf" and not plan.changed and not rejected and not message
        rest = body if untouched else serialized(request)
        if self._spooled is None:
            answer = self._send("traces", rest)
        else:
            try:
                self._carriers.accept(rest, plan.holds)
                answer = Answer()
            except SpoolFull as fault:
                answer = Answer(Kind.RETRY, str(fault), retry_after_s=FULL_RETRY_S)
            except SpoolFault:
                self._sorter.forget(plan.holds)
                return self._unscored(body, encoding)
        if answer.kind is not Kind.OK:
            self._sorter.forget(plan.holds)
            return answer
        for held in plan.holds:
            if not held.gone:
                self._sink.hold.put(held)
        for offer in plan.offers:
            self._offer(offer)
        with self._lock:
            self.counts.received += total + rejected
            self.counts.held += len(plan.holds)
            self.counts.duplicates += plan.duplicates
            self.counts.passed_on += total - len(plan.holds) - plan.duplicates
            self.counts.rejected += rejected
        return _with(answer, rejected, message)

    def _unscored(self, body: bytes, encoding: Encoding) -> Answer:
        """The disk fails: spans go on at once, as they came, and the destination's answer is the sender's. Scores wait for a
        disk, since a call that waits for them would be lost with the process."""
        request, rejected, message = codec.decode_traces(body, encoding)
        total = 0
        for resource in request.resource_spans:
            for scope in resource.scope_spans:
                total += len(scope.spans)
                for span in scope.spans:
                    self._carriers.clean(span)
        answer = self._send("traces", serialized(request))
        if answer.kind is Kind.OK:
            with self._lock:
                self.counts.received += total + rejected
                self.counts.passed_on += total
                self.counts.unscored += total
                self.counts.rejected += rejected
        return _with(answer, rejected, message)

    def restore(self) -> None:
        """Begin where the last process ended: what was on its way is sent again, byte for byte, and calls that waited are
        scored, but by judges that have scored them; as partial, since what belonged with them may have gone."""
        if self._spooled is None:
            return
        again = self._carriers.resume()
        for kept, data in self._spooled.waiting():
            with _guard.guard("relay.restore"):
                self._restore(kept, data)
        if again or self.counts.restored:
            log.info("the spool is taken up", requests=again, calls=self.counts.restored)

    def _restore(self, kept: Kept, data: bytes) -> None:
        request, _, _ = codec.decode_traces(data, "protobuf")
        plan = self._sorter.sort(request)
        if plan.duplicates and self._spooled is not None:
            self._spooled.forget(kept)
            return
        if not plan.holds:
            self._carriers.give_up(serialized(request), kept)
            return
        [held] = plan.holds
        held.partial, held.span = True, replace(held.span, kept=kept)
        self.counts.restored += 1
        self._sink.hold.put(held)
        for offer in plan.offers:
            self._offer(offer)

    def _offer(self, offer: Offer) -> None:
        taken = False
        with _guard.guard("relay.offer"):
            taken = self._pipeline.offer(offer)
        if not taken and offer.ticket is not None:
            self._sink.settle(offer.ticket)


def _with(answer: Answer, rejected: int, message: str) -> Answer:
    """The destination's answer, and what could not be read."""
    if answer.kind is Kind.OK and (rejected or message):
        return Answer(Kind.OK, message or answer.message, rejected + answer.rejected)
    return answer
