"""C006, C008: a client that hangs up in the middle of a streamed answer, by ASGI itself."""

import asyncio
import subprocess
import sys
import threading
from collections.abc import AsyncIterator, Iterator
from typing import Any

import pytest
from fastapi import FastAPI
from fastapi.responses import StreamingResponse
from tests.cases.conftest import Product, endless, output, scope_of

import spangrade as sg
from spangrade import semconv as s


@sg.trace
async def never_ends(gate: asyncio.Event) -> AsyncIterator[str]:
    yield "first"
    await gate.wait()
    yield "never"


def test_a_client_that_hangs_up_ends_the_call_once_with_what_it_got(
    product: Product, caplog: pytest.LogCaptureFixture
) -> None:
    app = FastAPI()

    @app.get("/")
    async def route() -> StreamingResponse:
        return StreamingResponse(never_ends(asyncio.Event()))

    async def main() -> None:
        first = asyncio.Event()

        async def send(message: Any) -> None:
            if message.get("body"):
                first.set()

        async def receive() -> Any:
            await first.wait()
            return {"type": "http.disconnect"}

        await app(scope_of("/"), receive, send)

    asyncio.run(main())
    span = product.only("never_ends")
    assert output(span) == "first"
    assert span.status.status_code.name == "UNSET"
    assert span.attributes[s.ENDED] in ("cancelled", "closed")
    assert [record for record in caplog.records if record.levelname == "ERROR"] == []
    assert [sample.output for sample in product.samples] == ["first"]


def test_a_plain_stream_whose_client_hangs_up_ends_when_it_is_let_go(product: Product) -> None:
    """Starlette steps it in a thread and never closes it: what ends it is that nobody holds it any more."""
    app, gate = FastAPI(), threading.Event()

    @sg.trace
    def slow() -> Iterator[str]:
        yield "first"
        gate.wait(10)
        yield "second"

    @app.get("/")
    async def route() -> StreamingResponse:
        return StreamingResponse(slow())

    async def main() -> None:
        async def send(message: Any) -> None:
            if message.get("body"):
                gate.set()
                raise OSError("client has gone")

        try:
            await app(scope_of("/"), endless, send)
        except Exception as fault:
            assert "client" in repr(fault) or "Client" in repr(fault)  # noqa: PT017

    asyncio.run(main())
    span = product.only("slow")
    assert output(span) == "first"
    assert span.status.status_code.name == "UNSET"


HELD = """
import asyncio, sys
import spangrade as sg
from spangrade.testing import CollectingExporter

class Printing(CollectingExporter):
    def export(self, spans):
        for span in spans:
            print(span.name, dict(span.attributes)["output.value"], flush=True)
        return super().export(spans)

sg.configure(exporter=Printing(), metrics=["length_words"])

@sg.trace
def stream():
    yield "one"
    yield "two"

@sg.trace
async def astream():
    yield "one"
    yield "two"

if sys.argv[1] == "stream":
    held = stream()
    next(held)
else:
    held = astream()
    asyncio.new_event_loop().run_until_complete(anext(held))
"""


@pytest.mark.parametrize("name", ["stream", "astream"])
def test_c002_a_stream_that_is_half_read_when_the_process_ends_is_a_call_with_what_it_gave(name: str) -> None:
    done = subprocess.run([sys.executable, "-c", HELD, name], capture_output=True, text=True, timeout=60, check=False)
    assert (done.returncode, done.stdout) == (0, f"{name} one\n")
