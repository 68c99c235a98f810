"""C006: routes that answer with a StreamingResponse, under FastAPI as it is.

A stream's call lasts to its last chunk, what the stream calls nests under it, and the metric runs once, after that.
"""

import asyncio
import time
from collections.abc import AsyncIterator, Callable, Iterator
from typing import Any

import httpx
import pytest
from fastapi import Depends, FastAPI
from fastapi.responses import StreamingResponse
from opentelemetry import trace as trace_api
from starlette.middleware.base import BaseHTTPMiddleware
from starlette.types import ASGIApp, Receive, Scope, Send
from tests.cases.conftest import Product, endless, output, scope_of

import spangrade as sg


@sg.trace
def lookup(n: int) -> str:
    return f"{n} "


class Last:
    """When the last chunk was made."""

    ns = 0


@sg.trace
async def astream(n: int) -> AsyncIterator[str]:
    for i in range(n):
        await asyncio.sleep(0)
        yield lookup(i)
    Last.ns = time.time_ns()


@sg.trace
def stream(n: int) -> Iterator[str]:
    for i in range(n):
        yield lookup(i)
    Last.ns = time.time_ns()


async def aparts(n: int) -> AsyncIterator[str]:
    for i in range(n):
        await asyncio.sleep(0)
        yield lookup(i)
    Last.ns = time.time_ns()


def parts(n: int) -> Iterator[str]:
    for i in range(n):
        yield lookup(i)
    Last.ns = time.time_ns()


def get(app: FastAPI, path: str, **params: Any) -> httpx.Response:
    """One request, by httpx's own way into an application (starlette's test client asks for another httpx)."""

    async def main() -> httpx.Response:
        async with httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url="http://test") as client:
            return await client.get(path, params=params)

    return asyncio.run(main())


def application() -> FastAPI:
    app = FastAPI()

    @app.get("/astream")
    async def of_async_generator(n: int) -> StreamingResponse:
        return StreamingResponse(astream(n))

    @app.get("/stream")
    async def of_generator(n: int) -> StreamingResponse:
        return StreamingResponse(stream(n))  # stepped by threads of a pool

    @app.get("/plain-route-stream")
    def of_generator_in_a_thread(n: int) -> StreamingResponse:
        return StreamingResponse(stream(n))

    @app.get("/aroute")
    @sg.trace(name="aroute")
    async def aroute(n: int) -> StreamingResponse:
        return StreamingResponse(aparts(n))

    @app.get("/route")
    @sg.trace(name="route")
    def route(n: int) -> StreamingResponse:
        return StreamingResponse(parts(n))

    return app


STREAMED = [("/astream", "astream"), ("/stream", "stream"), ("/plain-route-stream", "stream")]
ROUTES = [("/aroute", "aroute"), ("/route", "route")]


@pytest.mark.parametrize(("path", "name"), [*STREAMED, *ROUTES])
def test_a_streamed_answer_is_one_call_to_its_last_chunk(path: str, name: str, product: Product) -> None:
    seen_before_the_end: list[bool] = []
    product.configure(sg.metric(name="late")(lambda sample: seen_before_the_end.append(Last.ns == 0) or 1))
    Last.ns = 0
    assert get(application(), path, n=3).text == "0 1 2 "
    span = product.only(name)
    assert output(span) == "0 1 2 "
    assert span.end_time >= Last.ns
    assert [child.parent.span_id for child in product.named("lookup")] == [span.context.span_id] * 3
    assert seen_before_the_end == [False]
    (sample,) = product.samples
    assert (sample.input, sample.output) == (3, "0 1 2 ")


class Instrumented:
    """What ASGI instrumentations do: a server span around all of the request, its body included."""

    def __init__(self, app: ASGIApp) -> None:
        self.app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        with trace_api.get_tracer("asgi").start_as_current_span("GET"):
            await self.app(scope, receive, send)


async def short_span(request: Any, call_next: Callable[[Any], Any]) -> Any:
    """What middlewares by hand do: a span that has ended before the body is streamed."""
    with trace_api.get_tracer("app").start_as_current_span("GET"):
        return await call_next(request)


@pytest.mark.parametrize("around", ["the whole request", "the route only"])
@pytest.mark.parametrize(("path", "name"), STREAMED)
def test_a_stream_belongs_to_the_trace_of_its_request_and_is_scored_once(
    path: str, name: str, around: str, product: Product
) -> None:
    app = application()
    if around == "the whole request":
        app.add_middleware(Instrumented)
    else:
        app.add_middleware(BaseHTTPMiddleware, dispatch=short_span)
    assert get(app, path, n=2).text == "0 1 "
    server, span = product.only("GET"), product.only(name)
    assert span.context.trace_id == server.context.trace_id
    assert [child.parent.span_id for child in product.named("lookup")] == [span.context.span_id] * 2
    assert [sample.output for sample in product.samples] == ["0 1 "]


def test_two_streams_at_once_keep_their_own_children(product: Product) -> None:
    app = application()

    async def read(path: str, n: int) -> None:
        async def send(message: Any) -> None:
            await asyncio.sleep(0)

        await app(scope_of(path, f"n={n}"), endless, send)

    async def main() -> None:
        await asyncio.gather(*(read(path, n) for n in (2, 3, 5) for path in ("/astream", "/stream")))

    asyncio.run(main())
    for span in [*product.named("astream"), *product.named("stream")]:
        children = [one for one in product.named("lookup") if one.parent is not None]
        mine = [output(one) for one in children if one.parent.span_id == span.context.span_id]
        assert "".join(mine) == output(span)
    assert len(product.named("lookup")) == 20
    assert len(product.samples) == 6


def test_a_stream_that_fails_half_way_is_an_error_with_what_it_gave(product: Product) -> None:
    app = FastAPI()

    @sg.trace
    async def breaks() -> AsyncIterator[str]:
        yield "half"
        raise RuntimeError("upstream reset")

    @app.get("/")
    async def route() -> StreamingResponse:
        return StreamingResponse(breaks())

    with pytest.raises(RuntimeError, match="upstream reset"):
        get(app, "/")
    span = product.only("breaks")
    assert (output(span), span.status.status_code.name) == ("half", "ERROR")
    assert product.samples[0].context["status"] == "error"


def test_dependencies_and_parameters_of_a_traced_route_are_those_of_the_function(product: Product) -> None:
    app = FastAPI()

    @sg.trace
    async def connection() -> AsyncIterator[str]:
        yield "a connection"

    @app.get("/items/{item}")
    @sg.trace(name="item")
    async def item(item: int, q: str = "none", held: str = Depends(connection)) -> dict[str, Any]:
        return {"item": item, "q": q, "held": held}

    assert get(app, "/items/3", q="x").json() == {"item": 3, "q": "x", "held": "a connection"}
    assert get(app, "/items/x").status_code == 422
    names = {p["name"] for p in get(app, "/openapi.json").json()["paths"]["/items/{item}"]["get"]["parameters"]}
    assert names == {"item", "q"}
    assert len(product.named("item")) == 1
