"""The stream objects of real clients, OpenAI's and Anthropic's, against a server here: the same with and without tracing."""

import asyncio
import gc
import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import anthropic
import openai
import pytest
from tests.unit.tracing.conftest import Spans

import spangrade as sg
from spangrade import semconv as s

WORDS = ("It ", "is ", "late.")


def openai_events(fails: bool) -> Iterator[str]:
    for n, word in enumerate(WORDS):
        if fails and n == 1:
            yield 'data: {"error": {"message": "overloaded"}}\n\n'
            return
        delta = {"index": 0, "delta": {"role": "assistant", "content": word}, "finish_reason": None}
        chunk = {"id": "c1", "object": "chat.completion.chunk", "created": 1, "model": "m", "choices": [delta]}
        yield f"data: {json.dumps(chunk)}\n\n"
    yield "data: [DONE]\n\n"


def anthropic_events() -> Iterator[str]:
    message = {"id": "m1", "type": "message", "role": "assistant", "content": [], "model": "m", "stop_reason": None}
    usage = {"input_tokens": 3, "output_tokens": 1}
    events: list[dict[str, Any]] = [
        {"type": "message_start", "message": {**message, "stop_sequence": None, "usage": usage}},
        {"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}},
        *({"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": word}} for word in WORDS),
        {"type": "content_block_stop", "index": 0},
        {"type": "message_delta", "delta": {"stop_reason": "end_turn", "stop_sequence": None}, "usage": usage},
        {"type": "message_stop"},
    ]
    for event in events:
        yield f"event: {event['type']}\ndata: {json.dumps(event)}\n\n"


class Handler(BaseHTTPRequestHandler):
    def do_POST(self) -> None:
        asked = json.loads(self.rfile.read(int(self.headers["content-length"])))
        self.send_response(200)
        self.send_header("content-type", "text/event-stream")
        self.send_header("x-request-id", "req-7")
        self.send_header("connection", "close")
        self.end_headers()
        events = openai_events(asked["model"] == "fails") if "completions" in self.path else anthropic_events()
        try:
            for event in events:
                self.wfile.write(event.encode())
        except OSError:  # the reader has left
            pass

    def log_message(self, *_: Any) -> None: ...


@pytest.fixture(scope="module")
def server() -> Iterator[str]:
    made = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=made.serve_forever)
    thread.start()
    yield f"http://127.0.0.1:{made.server_address[1]}"
    made.shutdown()
    thread.join()
    made.server_close()


MESSAGES: list[Any] = [{"role": "user", "content": "How late is it?"}]


@sg.trace(kind="llm")
def ask(client: Any, model: str = "m") -> Any:
    return client.chat.completions.create(model=model, messages=MESSAGES, stream=True)


@sg.trace(kind="llm")
async def aask(client: Any, model: str = "m") -> Any:
    return await client.chat.completions.create(model=model, messages=MESSAGES, stream=True)


def only(traced: Spans, name: str) -> list[Any]:
    """The calls of that name; Anthropic's client makes spans of its own."""
    return [span for span in traced.all() if span.name.endswith(name)]


def words(span: Any) -> str:
    """What a span recorded as said."""
    (message,) = json.loads(span.attributes[s.OUTPUT_MESSAGES])
    (part,) = message["parts"]
    return part["content"] if part["type"] == "text" else ""


def test_openais_stream(server: str, traced: Spans) -> None:
    with openai.OpenAI(base_url=f"{server}/v1", api_key="x", max_retries=0) as client:
        with ask(client) as stream:
            assert isinstance(stream, openai.Stream)
            assert stream.response.headers["x-request-id"] == "req-7"
            first = next(stream)
            assert Spans.open() == 1
            got = [first, *stream]
        assert type(stream) is openai.Stream
    assert "".join(chunk.choices[0].delta.content for chunk in got) == "It is late."
    span = traced.only()
    assert (words(span), span.attributes[s.ENDED]) == ("It is late.", "complete")
    assert s.TIME_TO_FIRST_CHUNK in span.attributes


@pytest.mark.parametrize("way", ["with", "close", "dropped"])
def test_openais_stream_that_is_left(way: str, server: str, traced: Spans) -> None:
    with openai.OpenAI(base_url=f"{server}/v1", api_key="x", max_retries=0) as client:
        stream = ask(client)
        if way == "with":
            with stream:
                for _ in stream:
                    break
        else:
            for _ in stream:
                break
            if way == "close":
                stream.close()
        closed = stream.response.is_closed
        assert closed == (way != "dropped")
        response = stream.response
        del stream
        gc.collect()
        response.close()
    assert Spans.open() == 0
    span = traced.only()
    assert (words(span), span.attributes[s.ENDED]) == ("It ", "closed")


def test_openais_stream_that_fails_half_way(server: str, traced: Spans) -> None:
    with openai.OpenAI(base_url=f"{server}/v1", api_key="x", max_retries=0) as client:
        stream = ask(client, "fails")
        with pytest.raises(openai.APIError, match="overloaded"):
            list(stream)
        stream.close()
    span = traced.only()
    assert (words(span), span.attributes[s.ENDED], span.status.status_code.name) == ("It ", "error", "ERROR")


@pytest.mark.parametrize("way", ["whole", "with", "close", "cancelled"])
def test_openais_asynchronous_stream(way: str, server: str, traced: Spans) -> None:
    async def main() -> None:
        async with openai.AsyncOpenAI(base_url=f"{server}/v1", api_key="x", max_retries=0) as client:
            stream = await aask(client)
            assert isinstance(stream, openai.AsyncStream)
            assert stream.response.headers["x-request-id"] == "req-7"
            if way == "whole":
                assert [chunk.choices[0].delta.content async for chunk in stream] == list(WORDS)
                assert type(stream) is openai.AsyncStream
            elif way == "with":
                async with stream:
                    async for _ in stream:
                        break
            elif way == "close":
                await anext(stream)
                await stream.close()
            else:

                async def read() -> None:
                    async with stream:
                        async for _ in stream:
                            reading.set()
                            await asyncio.Event().wait()

                reading = asyncio.Event()
                task = asyncio.create_task(read())
                await reading.wait()
                task.cancel()
                await asyncio.gather(task, return_exceptions=True)
            assert stream.response.is_closed

    asyncio.run(main())
    gc.collect()
    span = traced.only()
    how = {"whole": "complete", "cancelled": "cancelled"}.get(way, "closed")
    assert (words(span), span.attributes[s.ENDED]) == ("It is late." if way == "whole" else "It ", how)


def test_anthropics_stream(server: str, traced: Spans) -> None:
    @sg.trace(kind="llm")
    def claude(client: anthropic.Anthropic) -> Any:
        return client.messages.create(model="m", max_tokens=9, messages=MESSAGES, stream=True)

    with anthropic.Anthropic(base_url=server, api_key="x", max_retries=0) as client, claude(client) as stream:
        assert isinstance(stream, anthropic.Stream)
        types = [event.type for event in stream]
    assert types[0] == "message_start"
    assert types[-1] == "message_stop"
    (span,) = only(traced, "claude")
    assert span.attributes[s.ENDED] == "complete"
    assert words(span) == "It is late."


def test_anthropics_helper_with_methods_of_its_own(server: str, traced: Spans) -> None:
    """Its other ways to be read iterate over itself."""

    @sg.trace(kind="llm")
    def entered(manager: Any) -> Any:
        return manager.__enter__()

    with anthropic.Anthropic(base_url=server, api_key="x", max_retries=0) as client:
        for read in (lambda stream: stream.get_final_text(), lambda stream: "".join(stream.text_stream)):
            manager = client.messages.stream(model="m", max_tokens=9, messages=MESSAGES)
            assert read(entered(manager)) == "It is late."
            manager.__exit__(None, None, None)
    assert Spans.open() == 0
    assert [span.attributes[s.ENDED] for span in only(traced, "entered")] == ["complete"] * 2
    assert [words(span) for span in only(traced, "entered")] == ["It is late."] * 2
