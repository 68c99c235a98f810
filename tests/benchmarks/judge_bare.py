"""What the machine allows at this moment: as many calls at once as the judges have, by a process that does nothing else."""

import asyncio
import subprocess
import sys
import time
from urllib.parse import urlsplit

_REQUEST = b"POST /v1/chat/completions HTTP/1.1\r\nHost: judge\r\nContent-Length: 2\r\n\r\n{}"


def bare(origin: str, calls: int, seconds: float) -> float:
    """Calls a second that ``calls`` connections get out of the endpoint."""
    command = [sys.executable, "-m", "tests.benchmarks.judge_bare", origin, str(calls), str(seconds)]
    return float(subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True).stdout)


async def _rate(origin: str, calls: int, seconds: float) -> float:
    """After a first round, which all begin together."""
    parts = urlsplit(origin)
    done = 0
    began = asyncio.Event()

    async def caller(offset: float) -> None:
        nonlocal done
        reader, writer = await asyncio.open_connection(parts.hostname, parts.port)
        await asyncio.sleep(offset)
        while True:
            writer.write(_REQUEST)
            head = await reader.readuntil(b"\r\n\r\n")
            await reader.readexactly(int(head.lower().partition(b"content-length:")[2].split(b"\r\n")[0]))
            done += began.is_set()

    tasks = [asyncio.create_task(caller(2.0 * n / calls)) for n in range(calls)]
    await asyncio.sleep(6)
    began.set()
    started = time.monotonic()
    await asyncio.sleep(seconds)
    rate = done / (time.monotonic() - started)
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
    return rate


if __name__ == "__main__":
    print(asyncio.run(_rate(sys.argv[1], int(sys.argv[2]), float(sys.argv[3]))))
