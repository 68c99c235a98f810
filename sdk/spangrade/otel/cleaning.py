"""The redact hook is the application's code and may be slow: it runs once for each span, and never where a call waits.

Behind exporters of ours that is their thread (`Cleaned`, which several destinations share). Before somebody else's
processor nothing is of ours, so spans wait there in a queue of their own (`CleaningQueue`), as in front of an exporter.
"""

import threading
import weakref
from collections.abc import Callable, Sequence
from typing import Final

from opentelemetry.sdk.trace import ReadableSpan

from spangrade._log import once
from spangrade.delivery.batching import Batcher, Limits
from spangrade.delivery.content import ContentPolicy
from spangrade.delivery.hold import MAX_SPANS
from spangrade.delivery.span_copy import ScoredSpan
from spangrade.otel.adapter import content_size
from spangrade.otel.engine import last_engine
from spangrade.scoring.shield import shield

CLOSE_S: Final = 1.0  # for what waits when the provider is shut down; a hook that hangs has had its time


class _Once:
    """One span's copy, made by whoever asks first; others wait for that."""

    __slots__ = ("_copy", "_lock", "_policy")

    def __init__(self) -> None:
        self._lock = threading.RLock()
        self._policy: ContentPolicy | None = None
        self._copy: ReadableSpan | None = None

    def of(self, span: ReadableSpan, policy: ContentPolicy) -> ReadableSpan:
        with self._lock:
            if self._copy is not None and self._policy is policy:
                return self._copy
            copy = policy.span(span)
            if copy is not span:  # which would keep itself alive
                self._copy, self._policy = copy, policy
            return copy


class Cleaned:
    """What a policy makes of each span, for all of its destinations."""

    def __init__(self) -> None:
        # No lock of its own, which a forked child could inherit: to take an entry, or to make it, is one step.
        self._each: weakref.WeakKeyDictionary[ReadableSpan, _Once] = weakref.WeakKeyDictionary()

    def __call__(self, span: ReadableSpan, policy: ContentPolicy) -> ReadableSpan:
        """As `ContentPolicy.span`."""
        if policy.redact is None:  # the rest is soon done
            return policy.span(span)
        return self._each.setdefault(span, _Once()).of(span, policy)


class CleaningQueue:
    """Hands spans to ``hand_on`` as the policy lets them leave, on a thread of ours, in their order. What is lost at its
    bounds, or what ``hand_on`` refuses, is said once, and the scores on it count as undelivered."""

    def __init__(self, hand_on: Callable[[ReadableSpan], None]) -> None:
        self._hand_on = hand_on
        limits = Limits(queue=2_048 + MAX_SPANS, batch=64, delay_s=0.0)
        self._waiting: Batcher[ReadableSpan] = Batcher("redact", self._clean, self._lost, limits, content_size)

    def put(self, span: ReadableSpan) -> None:
        """Queue one; never blocks."""
        self._waiting.put(span)

    def flush(self, timeout_s: float) -> bool:
        """Hand on what was put before; False when that takes longer."""
        return self._waiting.flush(timeout_s)

    def close(self) -> None:
        """Hand on what is queued, within `CLOSE_S`, and take no more."""
        self._waiting.close(CLOSE_S)

    def _clean(self, spans: Sequence[ReadableSpan]) -> None:
        for span in spans:
            engine, failure = last_engine(), "forward_failed"
            with shield("processor.next"):
                self._hand_on(engine.policy.span(span) if engine is not None else span)
                failure = ""
            _settle(span, failure or None)

    def _lost(self, span: ReadableSpan, reason: str) -> None:
        once(
            f"redact:{reason}",
            "spans are dropped before they were redacted: the redact hook is too slow",
            reason=reason,
        )
        _settle(span, reason)


def _settle(span: ReadableSpan, failure: str | None) -> None:
    engine = last_engine()
    if engine is not None and isinstance(span, ScoredSpan):
        engine.sink.exported(span.pairs, failure)
