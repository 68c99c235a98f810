"""The exports of a process, flushed and ended: of each provider that a `configure` was about, within its share of the time."""

import time
from collections.abc import Callable, Iterator, Sequence

from spangrade.otel.engine import bounded
from spangrade.otel.flushing import flush_provider
from spangrade.otel.providers import Runtime


def failures(runtimes: Sequence[Runtime]) -> int:
    """Batches that did not arrive, so far."""
    return sum(exporter.failures for runtime in runtimes for exporter in runtime.settling)


def flush_exports(runtimes: Sequence[Runtime], timeout: float) -> bool:
    """Flush each provider with what stands behind our processor in it; False when one could not within the time."""
    return all([_flush(runtime, end) for runtime, end in _shares(runtimes, time.monotonic() + timeout)])  # noqa: C419 - each


def end_exports(runtimes: Sequence[Runtime], end: float) -> None:
    """Export what is left and end what is ours, by the monotonic time ``end`` or a little later."""
    for runtime, until in _shares(runtimes, end):
        _end(runtime, until)


def _shares(runtimes: Sequence[Runtime], end: float) -> Iterator[tuple[Runtime, float]]:
    for n, runtime in enumerate(runtimes):
        now = time.monotonic()
        yield runtime, now + max(0.0, end - now) / (len(runtimes) - n)


def _flush(runtime: Runtime, end: float) -> bool:
    def left() -> float:
        return max(0.0, end - time.monotonic())

    ours = runtime.processor
    if (
        ours is not None and ours.next is not None
    ):  # first: our processor would wait again, for what could not be waited for before
        bounded(lambda: ours.flush_behind(int(left() * 1000)), left())
    return bounded(lambda: flush_provider(runtime.provider, left()), left())


def _end(runtime: Runtime, end: float) -> None:
    """Of somebody else's provider only what is ours is ended: else that would do it at its exit, and keeps to no limit."""
    ending: Callable[[], object] | None = runtime.provider.shutdown if runtime.own_provider else None
    if ending is None:
        left = max(0.2, end - time.monotonic() - 0.5)
        bounded(lambda: flush_provider(runtime.provider, left), left)
        if runtime.processor is None or not runtime.exporters:
            return
        ending = runtime.processor.shutdown
    for thread in runtime.retiring:
        thread.join(max(0.1, (end - time.monotonic()) / 2))
    done = bounded(ending, max(0.3, end - time.monotonic() - 0.2))
    if not done:  # an exporter that retries into the void listens to its own shutdown
        for exporter in runtime.settling:
            bounded(exporter.shutdown, 0.2)
