"""Threads of ours start with nothing of the application's around them."""

import contextvars
from collections.abc import Callable
from typing import TypeVar

Made = TypeVar("Made")


def unbound(work: Callable[[], Made]) -> Made:
    """Run ``work``, which starts threads, in an empty context.

    Other SDKs (Sentry's by default, OpenTelemetry's instrumentation of threads, Python itself where threads inherit the
    context) give a new thread the request that is going on where it starts. Ours would then belong to that request for
    life: what judges and exporters send would be traced as its work.
    """
    return contextvars.Context().run(work)
