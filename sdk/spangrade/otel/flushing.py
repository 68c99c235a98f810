"""A flush of a provider, so that each of its processors is asked and the answer is true.

The provider's own stops at the first processor that answers with nothing, as the SDK's base class did in version 1.40, or
that raises; what stands behind that one is then not exported.
"""

import time
from typing import Any

from spangrade._log import once
from spangrade.otel.sdk_private import processors_of


def flush_provider(provider: Any, timeout_s: float) -> bool:
    """Flush every processor of ``provider``, one after the other, each within what is left of ``timeout_s`` seconds.

    True when none said that it failed, or raised. Never raises. Where the processors cannot be told, the provider is
    asked.
    """
    end = time.monotonic() + timeout_s
    done = True
    for one in processors_of(provider) or (provider,):
        left = max(0.0, end - time.monotonic())
        try:
            done = one.force_flush(int(left * 1000)) is not False and done
        except Exception as fault:  # noqa: BLE001 - somebody else's; the others are flushed all the same
            kind = type(one).__name__
            once(
                f"flush:{kind}",
                "a span processor raised when it was flushed",
                processor=kind,
                error=type(fault).__name__,
            )
            done = False
    return done
