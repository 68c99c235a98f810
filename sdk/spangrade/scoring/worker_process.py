"""One worker process as its host sees it: started, asked, ended. What it does itself is in `process_worker`."""

import os
import subprocess
import sys
from pathlib import Path
from typing import Any, Final

from spangrade.errors import EvaluatorError
from spangrade.scoring.process_worker import READY, receive, send

_REAP_S: Final = 1.0
_MAX_NOISE: Final = 1 << 20  # printed before a worker is ready
_BOOT: Final = "import sys; sys.path[:] = {path!r}; from spangrade.scoring.process_worker import main; main()"
#: In a worker nothing is traced, exported or scored, whatever the modules do that it imports.
_SILENT: Final = {"SPANGRADE_DISABLED": "true", "OTEL_SDK_DISABLED": "true"}


def interpreter() -> str | None:
    """The interpreter that runs this program; None where the program is not run by one (a frozen application)."""
    if getattr(sys, "frozen", False):
        return None
    version = f"python{sys.version_info.major}.{sys.version_info.minor}"
    beside = [str(Path(sys.prefix, folder, name)) for folder, name in (("bin", version), ("Scripts", "python.exe"))]
    for found in (sys.executable, *beside):  # the first is the server where Python is embedded in one (uWSGI)
        if found and Path(found).name.lower().startswith(("python", "pypy")) and Path(found).exists():
            return found
    return None


class WorkerProcess:
    """A process that has begun to start. ``path``: its ``sys.path``.

    ``known``: the evaluators that it has, and what they are called there. ``deadline``: by the pool's clock, when it is to
    be ended. ``why``: it was ended by us.

    Raises:
        EvaluatorError: kind ``worker_failed``; it cannot be started.
    """

    def __init__(self, path: list[str]) -> None:
        python = interpreter()
        if python is None:
            raise EvaluatorError("worker_failed", "no Python interpreter is known that could be started")
        try:
            self.process = subprocess.Popen(  # noqa: S603 - our own interpreter, on our own module
                [python, "-c", _BOOT.format(path=path), str(os.getpid())],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                bufsize=0,  # what is buffered at a fork would be written by parent and child
                env={**os.environ, **_SILENT},
            )
        except (OSError, ValueError) as fault:
            message = f"a worker process could not start: {type(fault).__name__}: {fault}"
            raise EvaluatorError("worker_failed", message) from fault
        self.known: dict[bytes, int] = {}
        self.deadline = float("inf")
        self.why = ""

    @property
    def lives(self) -> bool:
        """Whether it has not ended."""
        return self.process.poll() is None

    def wait_until_ready(self) -> None:
        """Read past what others print while it starts. Raises OSError, EOFError or ValueError when it has ended."""
        seen = b""
        assert self.process.stdout is not None
        while READY not in seen:
            part = self.process.stdout.read(1 << 12)  # after it nothing comes until it is asked something
            if not part or len(seen) > _MAX_NOISE:
                raise EOFError
            seen += part

    def ask(self, *message: Any) -> tuple[Any, ...]:
        """Send a message and wait for the answer. Raises as `wait_until_ready` does."""
        send(self.process.stdin, message)  # type: ignore[arg-type]
        answer: tuple[Any, ...] = receive(self.process.stdout)  # type: ignore[arg-type]
        return answer

    def end(self, why: str) -> None:
        """Kill it. Who waits for its answer hears of it at once."""
        self.why = self.why or why
        try:
            self.process.kill()
        except OSError:
            pass

    def reap(self) -> None:
        """Forget a process that has been ended, or is about to end."""
        try:
            self.process.wait(_REAP_S)
        except subprocess.TimeoutExpired:
            pass
        self.close()

    def how_it_ended(self) -> str:
        """In words; empty while that is not known."""
        code = self.process.returncode
        return "" if code is None else f"by signal {-code}" if code < 0 else f"with exit code {code}"

    def close(self) -> None:
        """Close our ends of the pipes."""
        for pipe in (self.process.stdin, self.process.stdout):
            if pipe is not None:
                try:
                    pipe.close()
                except OSError:
                    pass

    def disown(self) -> None:
        """In a forked child: it is the parent's. (Python would wait for it, and complain, while it has no exit code.)"""
        self.process.returncode = 0
        self.close()
