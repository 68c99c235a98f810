"""What a worker process does: it grades the samples that it is sent, one after the other, and says what came of each.

Started by `spangrade.scoring.processes`. Nothing in it is traced, scored or printed, and it ends with the process that
started it. Messages are pickles with their length before them, both ways:

| in | out |
|---|---|
| ``("load", key, evaluator)`` | ``("loaded",)`` or ``("raised", kind, message)`` |
| ``("run", key, sample)`` | ``("verdict", Verdict)``, ``("skip", why)`` or ``("raised", kind, message)`` |
"""

import asyncio
import contextlib
import inspect
import os
import pickle
import signal
import struct
import sys
import threading
import time
from collections.abc import Awaitable
from dataclasses import replace
from io import RawIOBase
from typing import Any, Final

from spangrade import _suppress
from spangrade._values import snapshot
from spangrade.model.evaluator import Verdict
from spangrade.model.score import Skip

READY: Final = b"\x00spangrade worker is ready\x00"  # what comes before it on the pipe is somebody else's printing
_LENGTH: Final = struct.Struct(">Q")
_LOOK_S: Final = 1.0
_NICE: Final = 5  # where processors are short the application comes first
_MAX_MESSAGE: Final = 1_000


def send(pipe: RawIOBase, message: Any) -> None:
    """Write one message. Raises OSError when nobody reads any more."""
    body = pickle.dumps(message, protocol=pickle.HIGHEST_PROTOCOL)
    left = memoryview(_LENGTH.pack(len(body)) + body)
    while left:
        left = left[pipe.write(left) or 0 :]


def receive(pipe: RawIOBase) -> Any:
    """Read one message. Raises EOFError when there will be none."""
    (length,) = _LENGTH.unpack(_exactly(pipe, _LENGTH.size))
    return pickle.loads(_exactly(pipe, length))  # noqa: S301 - of a process of our own, over a pipe of our own


def _exactly(pipe: RawIOBase, length: int) -> bytes:
    found = bytearray()
    while len(found) < length:
        part = pipe.read(min(length - len(found), 1 << 20))
        if not part:
            raise EOFError
        found += part
    return bytes(found)


def main() -> None:
    """Run until there is nothing more to do, or nobody to do it for."""
    host = int(sys.argv[1])
    # What a metric prints, or reads from its standard input, must not get between our messages.
    inbox, outbox = (os.fdopen(os.dup(number), mode, buffering=0) for number, mode in ((0, "rb"), (1, "wb")))
    nowhere = os.open(os.devnull, os.O_RDWR)
    for number in (0, 1, 2):
        os.dup2(nowhere, number)
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # a Ctrl-C in the terminal is for the application
    if os.name == "posix":
        with contextlib.suppress(OSError):
            os.nice(_NICE)
        threading.Thread(target=_end_with, args=(host,), daemon=True).start()
    outbox.write(READY)
    try:
        with _suppress.evaluator_scope(), asyncio.Runner() as runner:
            _serve(inbox, outbox, runner)
    except (EOFError, OSError):
        pass
    os._exit(0)  # whatever threads a metric has started


def _end_with(host: int) -> None:
    """The pipe tells too when the host has ended, but not while a metric is at work, nor where a process that the host has
    forked still holds the pipe's other end."""
    while os.getppid() == host:
        time.sleep(_LOOK_S)
    os._exit(0)


def _serve(inbox: Any, outbox: Any, runner: asyncio.Runner) -> None:
    evaluators: dict[int, Any] = {}
    while True:
        what, key, pickled = receive(inbox)
        try:
            if what == "load":
                evaluators[key] = pickle.loads(pickled)  # noqa: S301
                answer: tuple[Any, ...] = ("loaded",)
            else:
                answer = ("verdict", _graded(evaluators[key], pickle.loads(pickled), runner))  # noqa: S301
        except Skip as skip:
            answer = ("skip", _text(skip))
        except BaseException as fault:  # noqa: BLE001 - sys.exit() in a metric is that metric's error
            answer = ("raised", type(fault).__name__, _text(fault))
        try:
            send(outbox, answer)
        except (pickle.PicklingError, TypeError, AttributeError) as fault:
            send(outbox, ("raised", type(fault).__name__, f"its verdict cannot be sent: {_text(fault)}"))


def _graded(evaluator: Any, sample: Any, runner: asyncio.Runner) -> Verdict:
    result = evaluator.evaluate(sample)
    if inspect.isawaitable(result):
        result = runner.run(_awaited(result))
    if isinstance(result, Verdict):  # what the application's classes are stays here: the host gets plain values
        scores = tuple(replace(g, metadata=snapshot(g.metadata)) if g.metadata else g for g in result.scores)
        result = replace(result, scores=scores, details=snapshot(result.details) if result.details else result.details)
    return result  # type: ignore[no-any-return]  # anything else is the pipeline's to refuse


async def _awaited(awaitable: Awaitable[Any]) -> Any:
    return await awaitable


def _text(fault: BaseException) -> str:
    try:
        return str(fault)[:_MAX_MESSAGE]
    except Exception:  # noqa: BLE001 - str() of a user's exception is user code
        return "(its message could not be read)"
