"""What the agent holds, on ``/metrics``: samples for the page, what is on its way to the destination, and what samples are
made of."""

from collections.abc import Callable, Mapping, Sequence

from spangrade.delivery.hold import Hold
from spangrade.samples.tally import COUNTED
from spangrade.scoring.pipeline import Pipeline
from spangrade_agent.forward import ForwardQueue
from spangrade_agent.health import Gauge, Labels
from spangrade_agent.relay import Relay
from spangrade_agent.spool.records import TABLES
from spangrade_agent.spool.spooled import Spooled
from spangrade_agent.store import SampleStore


def span_gauges(relay: Relay, hold: Hold) -> Sequence[Gauge]:
    """What came in and what became of it, and the calls that wait."""
    counts, refused = relay.counts, relay.refused

    def came(name: str, said: str, read: Callable[[], float]) -> Gauge:
        return Gauge(f"spangrade_spans_{name}_total", said, "counter", read)

    def by_answer() -> Mapping[Labels, float]:
        return {(("signal", signal), ("answer", kind.value)): n for (signal, kind), n in list(refused.items())}

    unscored = "Spans passed on without scores, since the spool could not be written"
    return [
        came("received", "Spans received", lambda: counts.received),
        came("passed_on", "Spans sent on at once", lambda: counts.passed_on),
        came("held", "Calls that waited for scores", lambda: counts.held),
        came("rejected", "Spans that could not be read", lambda: counts.rejected),
        came("duplicate", "Calls that came again", lambda: counts.duplicates),
        came("unscored", unscored, lambda: counts.unscored),
        came("restored", "Calls taken up from the spool", lambda: counts.restored),
        Gauge("spangrade_hold_spans", "Calls waiting now", "gauge", lambda: len(hold)),
        Gauge("spangrade_hold_bytes", "Content of calls waiting now", "gauge", lambda: hold.bytes),
        Gauge(
            "spangrade_hold_expired_total", "Calls that left before all their scores", "counter", lambda: hold.expired
        ),
        Gauge("spangrade_hold_evicted_total", "Calls that left at the hold's bound", "counter", lambda: hold.evicted),
        Gauge("spangrade_requests_refused_total", "Requests the destination refused", "counter", by_answer),
    ]


def store_gauges(store: SampleStore | None) -> Sequence[Gauge]:
    """Samples kept, their memory, and those let go by reason; none without a store."""
    if store is None:
        return []

    def left() -> Mapping[Labels, float]:
        return {(("reason", reason),): count for reason, count in store.stats().left.items()}

    return [
        Gauge("spangrade_store_samples", "Samples kept for the page", "gauge", lambda: store.stats().samples),
        Gauge("spangrade_store_bytes", "Memory of the samples kept", "gauge", lambda: store.stats().bytes),
        Gauge("spangrade_store_left_total", "Samples let go, by reason", "counter", left),
    ]


def spool_gauges(spooled: Spooled | None) -> Sequence[Gauge]:
    """What is durable and has not arrived yet; none without a spool."""
    if spooled is None:
        return []
    spool = spooled.spool

    def sizes() -> Mapping[Labels, float]:
        return {(("what", table),): spool.size_of(table) for table in TABLES}

    return [
        Gauge("spangrade_spool_bytes", "Bytes in the spool: out (on its way), held (waits for scores)", "gauge", sizes),
        Gauge("spangrade_spool_max_bytes", "Bytes that it may hold", "gauge", lambda: spool.max_bytes),
        Gauge(
            "spangrade_spool_broken", "1 while it cannot be written", "gauge", lambda: float(spool.broken is not None)
        ),
    ]


def queue_gauges(queues: Mapping[str, ForwardQueue]) -> Sequence[Gauge]:
    """The queues to the destination, by signal: ``queued = pending + sent + rejected + dropped``."""

    def each(read: Callable[[ForwardQueue], float]) -> Callable[[], Mapping[Labels, float]]:
        return lambda: {(("signal", name),): read(queue) for name, queue in queues.items()}

    def dropped() -> Mapping[Labels, float]:
        return {
            (("signal", name), ("reason", reason)): count
            for name, queue in queues.items()
            for reason, count in queue.counts().dropped.items()
        }

    return [
        Gauge("spangrade_queue_bytes", "Bytes on their way", "gauge", each(lambda q: q.pending_bytes)),
        Gauge("spangrade_queue_items_total", "Items put", "counter", each(lambda q: q.counts().queued)),
        Gauge("spangrade_queue_sent_total", "Items that arrived", "counter", each(lambda q: q.counts().sent)),
        Gauge("spangrade_queue_dropped_total", "Items given up", "counter", dropped),
    ]


def assembly_gauges(pipeline: Pipeline) -> Sequence[Gauge]:
    """Traces, log records and conversations that are not complete, and what became of those that never were."""

    def counted(counter: str, label: str) -> Callable[[], Mapping[Labels, float]]:
        return lambda: {((label, value),): n for value, n in dict(getattr(pipeline.ledger.tally, counter)).items()}

    waiting = {
        "traces": ("Traces that are remembered", lambda: pipeline.waiting().traces),
        "bytes": ("Memory of spans that others may need", lambda: pipeline.waiting().trace_bytes),
        "log_spans": ("Spans whose log records came first", lambda: pipeline.waiting().logs),
        "log_bytes": ("Memory of their log records", lambda: pipeline.waiting().log_bytes),
        "sessions": ("Conversations that go on", lambda: pipeline.waiting().sessions),
        "session_bytes": ("Memory of what was said in them", lambda: pipeline.waiting().session_bytes),
    }
    return [
        *(Gauge(f"spangrade_assembly_{name}", said, "gauge", read) for name, (said, read) in waiting.items()),
        *(
            Gauge(f"spangrade_assembly_{name.replace('.', '_')}_total", said, "counter", counted(counter, label))
            for name, (counter, label, said) in COUNTED.items()
        ),
    ]
