"""A traced function may return a stream: a generator, an async generator, a coroutine, or an object that is one (see
`streamlike`). Its call lasts as long as that.

Of the first three the caller gets one of the same kind that steps through it. That is only right for a stream that is new
and that nobody else holds: one that an object keeps, and hands out again and again, must not end with what we put around
it. Such a one is returned as it is, and the call is over. An object of a Python class stays itself (see `stand_ins`).
"""

import inspect
import opcode
import types
from collections.abc import Callable, Coroutine, Generator
from sys import getrefcount
from typing import Any, Final

from spangrade import _guard
from spangrade import semconv as s
from spangrade.tracing import responses, stand_ins, streams
from spangrade.tracing.call import TracedCall
from spangrade.tracing.following import Following
from spangrade.tracing.iterators import standing_for
from spangrade.tracing.open_streams import ended, opened
from spangrade.tracing.place import enter, leave
from spangrade.tracing.streamlike import Verdict, Way, verdict_of


def settle(owners: int, result: Any, call: TracedCall) -> Any:
    """End the call with its result, or follow the stream that it is. ``owners``: the reference count of the result as a
    local variable of whoever asks."""
    kind = type(result)  # not isinstance: that asks what is no stream for its __class__, and a lazy proxy would wake up
    if kind is types.GeneratorType or kind is types.CoroutineType or kind is types.AsyncGeneratorType:
        try:
            if owners <= _SOLE and _is_new(result):
                return _follow(result, call)
        except Exception as fault:  # noqa: BLE001 - a fault of ours
            _guard.swallowed("trace.follow", fault)
    else:
        try:
            verdict = verdict_of(kind)
            if verdict.way is not Way.NOT:
                following = _follow_object(result, verdict, owners <= _SOLE, call)
                if following is not None:
                    return following
        except Exception as fault:  # noqa: BLE001 - a fault of ours
            _guard.swallowed("trace.follow_object", fault)
    call.done(result)
    return result


def _follow_object(stream: Any, verdict: Verdict, sole: bool, call: TracedCall) -> Any:
    """What the caller gets of a stream that is an object and is followed from now on; None if it is not."""
    way = verdict.way
    if way is Way.BUILTIN:
        return standing_for(stream, Following(call)) if sole else None
    if way is Way.FOLLOWED:
        already = stand_ins.following_of(stream)
        follows = already is not None and already.also(call)
    elif way is Way.RESPONSE:
        follows = responses.follow(stream, call)
    else:
        follows = (sole or way is Way.ITERATOR) and stand_ins.follow(stream, verdict, call)
    return stream if follows else None


def coroutine(make: Callable[..., Any], start: streams.Start) -> Callable[..., Coroutine[Any, Any, Any]]:
    """A coroutine function that awaits ``make(...)``."""

    async def traced(*args: Any, **kwargs: Any) -> Any:
        inner = make(*args, **kwargs)
        call = start(args, kwargs)
        if call is None:
            return await inner
        token = enter(call.context)
        try:
            result = await inner
        except BaseException as fault:
            call.fail(fault)
            call.end()
            raise
        finally:
            leave(token)
        kind = type(result)
        if kind is str or kind is dict or kind is list or result is None:  # most, at no further cost
            call.done(result)
            return result
        return settle(getrefcount(result), result, call)

    return traced


def _empty() -> Generator[None, None, None]:
    yield


def _sole() -> int:
    result = _empty()
    return getrefcount(result)


# What a count is for a local variable that nothing else refers to; it differs between versions of Python.
_SOLE: Final = _sole()


def _is_new(stream: Any) -> bool:
    if type(stream) is types.GeneratorType:
        return inspect.getgeneratorstate(stream) == inspect.GEN_CREATED
    if type(stream) is types.CoroutineType:
        return inspect.getcoroutinestate(stream) == inspect.CORO_CREATED
    state = getattr(inspect, "getasyncgenstate", None)
    if state is not None:
        return bool(state(stream) == "AGEN_CREATED")
    # Python 3.11 has no word for it. There a new one stands where it was made.
    frame = stream.ag_frame
    made = opcode.opmap["RETURN_GENERATOR"]
    return frame is not None and not stream.ag_running and stream.ag_code.co_code[frame.f_lasti] == made


class _Owed:
    """A stream that is the caller's to step, with its call. Whoever steps it takes it; if it is closed or dropped before
    that, as a stream that never began runs no code of its own, not even a ``finally``, the call ends with this."""

    __slots__ = ("__weakref__", "_call", "_stream")

    def __init__(self, stream: Any, call: TracedCall) -> None:
        self._stream = stream
        self._call = call
        opened(self)

    def take(self) -> Any:
        ended(self)
        stream, self._stream = self._stream, None
        return stream

    def start(self, _args: tuple[Any, ...], _kwargs: dict[str, Any]) -> TracedCall:
        return self._call

    def leave(self) -> None:
        """End the call; the stream is still there to be stepped."""
        ended(self)
        if not self._call.ended:
            self._call.note(s.ENDED, "unconsumed")
            self._call.end()

    def __del__(self) -> None:
        if self._stream is None:
            return
        try:
            if type(self._stream) is types.CoroutineType:
                self._stream.close()  # Python has warned of ours, under its name, if it is to be warned of
            self.leave()
        except Exception as fault:  # noqa: BLE001 - a fault of ours
            _guard.swallowed("trace.unconsumed", fault)


def _follow(stream: Any, call: TracedCall) -> Any:
    owed = _Owed(stream, call)
    wrapper: Callable[..., Any]
    if type(stream) is types.CoroutineType:
        wrapper = coroutine(owed.take, owed.start)
    elif type(stream) is types.AsyncGeneratorType:
        wrapper = streams.async_generator(owed.take, owed.start)
    else:
        wrapper = streams.generator(owed.take, owed.start, awaited=streams.is_awaited(stream.gi_code))
    following: Any = wrapper()
    following.__name__, following.__qualname__ = stream.__name__, stream.__qualname__
    return following
