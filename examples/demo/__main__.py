"""The demo. From the repository's root: `python -m examples.demo`, or with `--once` to end by itself.

It starts a local model and an OTLP receiver, each a process of its own; asks a small RAG application ten questions; and
shows the scores that arrived at the receiver on the application's spans.
"""

from __future__ import annotations

import logging
import os
import signal
import sys


def _interrupt(*_: object) -> None:
    """The first signal unwinds everything; the next ones must not disturb that."""
    ignore_signals()
    logging.disable()  # an exporter's complaint that the receiver is gone would only confuse
    raise KeyboardInterrupt


# Before anything slow is imported, so that Ctrl-C is a clean end from the first moment on. Closing the terminal too.
SIGNALS = [getattr(signal, name) for name in ("SIGINT", "SIGTERM", "SIGHUP") if hasattr(signal, name)]
for _number in SIGNALS:
    signal.signal(_number, _interrupt)


def ignore_signals() -> None:
    for number in SIGNALS:
        signal.signal(number, signal.SIG_IGN)


def main() -> int:
    try:
        from examples.demo.show import run

        code = run(sys.argv[1:])
        ignore_signals()  # all is done and stopped; only the interpreter's own end is left
        return code
    except KeyboardInterrupt:
        # Children are stopped by now (the `with` blocks in run did that). What is left are exit hooks that would try to
        # send the last spans to a receiver that is gone, and wait for it.
        print("\nStopped; nothing is left running.", flush=True)
        os._exit(130)


if __name__ == "__main__":
    sys.exit(main())
