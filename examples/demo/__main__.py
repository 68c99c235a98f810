"""The demo. From the repository's root: `python -m examples.demo`, or with `--once` to end by itself.

It starts a local model, the agent and an OTLP receiver, each a process of its own; asks a small RAG application ten
questions; and shows the scores that the agent put on the application's spans on their way to the receiver.
"""

from __future__ import annotations

import os
import signal
import sys
from typing import TYPE_CHECKING, NoReturn

if TYPE_CHECKING:
    from queue import SimpleQueue

INTERRUPTED = 130

# Before anything slow is imported, so that Ctrl-C is a clean end from the first moment on. Closing the terminal too.
SIGNALS = [getattr(signal, name) for name in ("SIGINT", "SIGTERM", "SIGHUP") if hasattr(signal, name)]
for _number in SIGNALS:
    signal.signal(_number, lambda *_: os._exit(INTERRUPTED))  # nothing is running yet


def main() -> int:
    """Run the demo on a thread of its own, and end when it does or when a signal comes, whichever is first.

    The usual KeyboardInterrupt would be raised in the middle of whatever the demo is doing: in an import, in a callback,
    between the start of a process and the note of it. Here a signal disturbs nothing; it only wakes this thread.
    """
    import queue
    import threading

    endings: SimpleQueue[int | None] = queue.SimpleQueue()  # unlike an Event, it may be used in a signal's handler
    for number in SIGNALS:
        signal.signal(number, lambda *_: endings.put(None))
    threading.Thread(target=_run, args=(endings,), name="demo", daemon=True).start()
    code = endings.get()
    for number in SIGNALS:
        signal.signal(number, signal.SIG_IGN)  # one was enough
    if code is None:
        _stop()
    return code


def _run(endings: SimpleQueue[int | None]) -> None:
    code = 1
    try:
        from examples.demo.show import run

        code = run(sys.argv[1:])
    except SystemExit as leaving:  # --help, or an argument that is none
        code = leaving.code if isinstance(leaving.code, int) else 1
    except BaseException:  # noqa: BLE001 - this is the thread's outermost frame
        import traceback

        traceback.print_exc()
    finally:
        endings.put(code)


def _stop() -> NoReturn:
    """Stop all children and leave, without a word from whatever now fails because they are gone."""
    terminal = os.dup(1)
    nowhere = os.open(os.devnull, os.O_WRONLY)
    for spoken in (1, 2):
        os.dup2(nowhere, spoken)

    from examples.demo.child_process import stop_all

    left = stop_all()
    text = f"\nStill running: {left}.\n" if left else "\nStopped; nothing is left running.\n"
    if os.isatty(terminal):
        text = "\r\x1b[2K\x1b[?25h" + text  # the line that moved is cleared, and the cursor is seen again
    try:
        os.write(terminal, text.encode())
    except OSError:
        pass  # the terminal was closed
    # Not sys.exit: exit hooks would try to send the last spans to a process that is gone, and wait for it.
    os._exit(INTERRUPTED)


if __name__ == "__main__":
    sys.exit(main())
