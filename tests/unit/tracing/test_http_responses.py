"""A route that returns a response whose body is made while it is sent: its call lasts to the last chunk of that."""

import asyncio
import gc
from collections.abc import AsyncIterator, Callable, Iterator
from typing import Any

import django
import flask
import pytest
import sse_starlette
from django.conf import settings
from django.http import HttpResponse, StreamingHttpResponse
from opentelemetry import trace as trace_api
from starlette.requests import ClientDisconnect
from starlette.responses import PlainTextResponse, StreamingResponse
from tests.cases.conftest import endless, scope_of
from tests.unit.tracing.conftest import Spans

import spangrade as sg
from spangrade import semconv as s

if not settings.configured:
    settings.configure(ALLOWED_HOSTS=["*"], DEFAULT_CHARSET="utf-8")
    django.setup()


def inside() -> None:
    with trace_api.get_tracer("app").start_as_current_span("inside"):
        pass


def parts() -> Iterator[Any]:
    for word in ("one ", "two ", "drei ✓"):
        inside()
        yield word


def coded() -> Iterator[bytes]:
    whole = "one two drei ✓".encode()
    yield whole[:4]
    yield whole[4:-1]  # in the middle of a character
    yield whole[-1:]


async def aparts() -> AsyncIterator[Any]:
    for word in ("one ", "two ", "drei ✓"):
        await asyncio.sleep(0)
        inside()
        yield word


async def acoded() -> AsyncIterator[bytes]:
    for chunk in coded():
        yield chunk


class Items:
    """An asynchronous iterable that is no iterator."""

    def __aiter__(self) -> AsyncIterator[Any]:
        return aparts()


@sg.trace
def route(make: Callable[[], Any]) -> Any:
    return make()


@sg.trace
async def aroute(make: Callable[[], Any]) -> Any:
    return make()


async def send_all(response: Any, sent: list[bytes], *, gone_after: int = 99, spec: str = "2.4") -> None:
    async def send(message: Any) -> None:
        await asyncio.sleep(0)
        if message["type"] == "http.response.body":
            if len(sent) >= gone_after:
                raise OSError("client has gone")
            sent.append(message["body"])

    await response({**scope_of("/"), "asgi": {"version": "3.0", "spec_version": spec}}, endless, send)


def asgi(response: Any) -> bytes:
    sent: list[bytes] = []
    asyncio.run(send_all(response, sent))
    return b"".join(sent)


def ended(traced: Spans) -> tuple[Any, Any]:
    (span,) = [one for one in traced.all() if one.name != "inside"]
    return span.attributes.get(s.OI_OUTPUT), span.attributes.get(s.ENDED)


BODIES: dict[str, Callable[[], Any]] = {
    "async generator": aparts,
    "generator": parts,
    "async bytes": acoded,
    "bytes": coded,
    "iterator": lambda: iter(["one ", "two ", "drei ✓"]),
    "map": lambda: map(str.lower, ["ONE ", "TWO ", "DREI ✓"]),
    "async iterable": Items,
}


@pytest.mark.parametrize("body", BODIES)
@pytest.mark.parametrize("by", ["function", "coroutine"])
def test_starlettes_is_the_same_object_and_its_call_lasts_to_its_last_chunk(body: str, by: str, traced: Spans) -> None:
    async def main() -> bytes:
        made = StreamingResponse(BODIES[body](), media_type="text/plain", headers={"x-id": "7"})
        got = route(lambda: made) if by == "function" else await aroute(lambda: made)
        assert got is made
        assert type(got) is StreamingResponse
        assert got.headers["x-id"] == "7"
        assert Spans.open() == 1
        sent: list[bytes] = []
        await send_all(got, sent)
        assert Spans.open() == 0
        return b"".join(sent)

    assert asyncio.run(main()).decode() == "one two drei ✓"
    assert ended(traced) == ("one two drei ✓", "complete")
    spans = traced.all()
    (call,) = [one for one in spans if one.name != "inside"]
    assert {one.parent.span_id for one in spans if one.name == "inside"} <= {call.context.span_id}
    assert s.TIME_TO_FIRST_CHUNK in call.attributes


def test_a_subclass_and_one_that_only_looks_like_it(traced: Spans) -> None:
    class Events(StreamingResponse):
        media_type = "text/event-stream"

    events = sse_starlette.EventSourceResponse(aparts())
    for made in (Events(aparts()), events):
        assert b"two" in asgi(route(lambda made=made: made))
    assert [one.attributes[s.OI_OUTPUT] for one in traced.all() if one.name != "inside"] == ["one two drei ✓"] * 2


def test_a_body_that_somebody_has_begun_to_read(traced: Spans) -> None:
    async def main() -> None:
        body = aparts()
        first = await anext(body)  # to fail early, if it fails
        sent: list[bytes] = []
        await send_all(route(lambda: StreamingResponse(body)), sent)
        assert (first, b"".join(sent).decode()) == ("one ", "two drei ✓")

    asyncio.run(main())
    assert ended(traced) == ("two drei ✓", "complete")


@pytest.mark.parametrize("spec", ["2.3", "2.4"])
@pytest.mark.parametrize("body", ["async generator", "generator"])
def test_a_client_that_hangs_up_ends_the_call_without_an_error(body: str, spec: str, traced: Spans) -> None:
    async def main() -> None:
        sent: list[bytes] = []
        gone = ClientDisconnect if spec == "2.4" else OSError
        with pytest.raises(gone):
            await send_all(route(lambda: StreamingResponse(BODIES[body]())), sent, gone_after=1, spec=spec)

    asyncio.run(main())
    gc.collect()
    output, how = ended(traced)
    assert how in ("closed", "cancelled")
    assert output == "one two "
    assert all(one.status.status_code.name == "UNSET" for one in traced.all())


def test_a_response_that_is_never_sent_or_has_no_stream_in_it(traced: Spans) -> None:
    async def main() -> None:
        route(lambda: StreamingResponse(aparts()))
        gc.collect()

    asyncio.run(main())
    assert Spans.open() == 0
    assert asgi(route(lambda: PlainTextResponse("x"))) == b"x"
    assert [one.attributes.get(s.ENDED) for one in traced.all()] == ["unconsumed", None]


def test_a_body_that_fails_is_an_error_with_what_came(traced: Spans) -> None:
    async def breaks() -> AsyncIterator[str]:
        yield "half"
        raise RuntimeError("upstream")

    with pytest.raises(RuntimeError, match="upstream"):
        asgi(route(lambda: StreamingResponse(breaks())))
    assert ended(traced) == ("half", "error")


def test_bytes_that_are_no_text_are_not_made_text(traced: Spans) -> None:
    async def image() -> AsyncIterator[bytes]:
        yield b"\x89PNG\r\n"
        yield b"\xff\xfe"

    assert asgi(route(lambda: StreamingResponse(image()))) == b"\x89PNG\r\n\xff\xfe"
    output, how = ended(traced)
    assert how == "complete"
    assert "image/png length=6" in output


def test_a_call_inside_that_returned_the_same_response_lasts_as_long(traced: Spans) -> None:
    @sg.trace
    def outer() -> Any:
        return route(lambda: StreamingResponse(aparts()))

    assert asgi(outer()).decode() == "one two drei ✓"
    calls = [one for one in traced.all() if one.name != "inside"]
    assert [one.attributes[s.OI_OUTPUT] for one in calls] == ["one two drei ✓"] * 2
    assert {one.attributes[s.ENDED] for one in calls} == {"complete"}


# --- Flask and Django --------------------------------------------------------------------------------------------------------


def flask_get(answer: Callable[[], Any]) -> tuple[bytes, Any]:
    app = flask.Flask(__name__)
    app.add_url_rule("/", view_func=sg.trace(name="view")(answer), endpoint="view")
    response = app.test_client().get("/", buffered=False)
    return response.data, response


@pytest.mark.parametrize("body", ["generator", "bytes", "iterator", "map"])
def test_flasks_response_over_a_generator(body: str, traced: Spans) -> None:
    data, _ = flask_get(lambda: flask.Response(BODIES[body](), mimetype="text/plain"))
    assert data.decode() == "one two drei ✓"
    assert ended(traced) == ("one two drei ✓", "complete")


def test_flasks_plain_response_and_a_body_that_is_closed(traced: Spans) -> None:
    class Body:
        closed = False

        def __iter__(self) -> "Body":
            return self

        def __next__(self) -> str:
            return "x"

        def close(self) -> None:
            Body.closed = True

    assert flask_get(lambda: flask.Response("whole"))[0] == b"whole"
    response = route(lambda: flask.Response(Body()))
    assert next(iter(response.iter_encoded())) == b"x"
    response.close()
    assert Body.closed
    assert [one.attributes.get(s.ENDED) for one in traced.all()] == [None, "closed"]


@pytest.mark.parametrize("body", ["generator", "bytes", "iterator", "map"])
def test_djangos_streaming_response(body: str, traced: Spans) -> None:
    made = StreamingHttpResponse(BODIES[body]())
    response = route(lambda: made)
    assert response is made
    assert b"".join(response).decode() == "one two drei ✓"
    response.close()
    assert ended(traced) == ("one two drei ✓", "complete")


@pytest.mark.parametrize("body", ["async generator", "async bytes"])
def test_djangos_streaming_response_read_asynchronously(body: str, traced: Spans) -> None:
    async def main() -> bytes:
        response = route(lambda: StreamingHttpResponse(BODIES[body]()))
        return b"".join([chunk async for chunk in response])

    assert asyncio.run(main()).decode() == "one two drei ✓"
    assert ended(traced) == ("one two drei ✓", "complete")


def test_djangos_plain_response_is_left_alone(traced: Spans) -> None:
    assert route(lambda: HttpResponse("whole")).content == b"whole"
    assert Spans.open() == 0
