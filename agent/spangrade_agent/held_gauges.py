"""What the agent holds, on ``/metrics``: samples for the page, what is on its way to the destination, and what samples are
made of."""

from collections.abc import Callable, Mapping, Sequence

from spangrade.samples.tally import COUNTED
from spangrade.scoring.pipeline import Pipeline
from spangrade_agent.forward import ForwardQueue
from spangrade_agent.health import Gauge, Labels
from spangrade_agent.store import SampleStore


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
