"""What the demo's child processes share: they announce themselves, and they never outlive their parent."""

from __future__ import annotations

import json
import os
import signal
import threading
import time
from collections.abc import Callable
from typing import IO


def claim_stdout() -> IO[str]:
    """Keep the real stdout for the ready line and send everything else that is printed to stderr.

    Native libraries write to file descriptor 1 when they like. The parent reads JSON from it, so it must stay clean.
    """
    announcements = os.fdopen(os.dup(1), "w", encoding="utf-8", closefd=True)
    os.dup2(2, 1)
    return announcements


def announce(stream: IO[str], **facts: object) -> None:
    """Write one JSON line for the parent."""
    stream.write(json.dumps(facts) + "\n")
    stream.flush()


def end_with_parent() -> None:
    """End this process on SIGTERM, on SIGINT, and when stdin closes.

    The parent holds the other end of stdin. However it goes, even by SIGKILL, the system closes that end and we leave
    too. The signals get their default action back because Python's own handlers wait for native code to return.
    """
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    # Not sys.exit: that would end only the thread. Nothing here needs cleaning up.
    _at_end_of_stdin(lambda: os._exit(0))


def terminate_with_parent(within: float) -> None:
    """When stdin closes, send this process a SIGTERM, for a program that has things to do at its end.

    It has `within` seconds for them: nobody is left who would insist.
    """

    def leave() -> None:
        os.kill(os.getpid(), signal.SIGTERM)
        time.sleep(within)
        os._exit(1)

    _at_end_of_stdin(leave)


def _at_end_of_stdin(leave: Callable[[], None]) -> None:
    def watch() -> None:
        # The bare descriptor: a thread that sits in sys.stdin's buffer would upset the interpreter on its way out.
        while os.read(0, 1024):
            pass
        leave()

    threading.Thread(target=watch, name="parent-watch", daemon=True).start()
