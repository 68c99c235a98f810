"""What the demo's two child processes share: they announce themselves, and they never outlive their parent."""

from __future__ import annotations

import json
import os
import signal
import threading
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
    threading.Thread(target=_wait_for_end_of_stdin, name="parent-watch", daemon=True).start()


def _wait_for_end_of_stdin() -> None:
    # The bare descriptor: a thread that sits in sys.stdin's buffer would upset the interpreter on its way out.
    while os.read(0, 1024):
        pass
    # Not sys.exit: that would end only this thread. Nothing here needs cleaning up.
    os._exit(0)
