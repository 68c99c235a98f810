"""Following an object of a Python class: for that time its class is one of ours, derived from its own.

So it stays the object that it is, for whoever holds it: its attributes, its methods, what it is an instance of. Only the
methods that take a step or end the stream go by way of `Following` first. When the call is over, it has its own class back.
What is known of a followed object is kept beside it, since it may have no place for a further attribute.
"""

import functools
import inspect
import weakref
from collections.abc import Callable
from typing import Any, Final

from spangrade import _classes, _guard
from spangrade.tracing.call import TracedCall
from spangrade.tracing.following import Following
from spangrade.tracing.iterators import followed_by, standing_for
from spangrade.tracing.streamlike import ENDS, ITERATORS, STANDS_FOR, Verdict, Way, found

_class: Final[Any] = object.__dict__["__class__"]
_set_class: Final[Callable[[Any, type], None]] = _class.__set__

# By id: an object may be neither hashable nor weakly referable. Whoever has an entry has a class of ours, whose finalizer
# takes the entry out.
_followed: Final[dict[int, Following]] = {}

_SENDS: Final = ("send", "throw")
_ASENDS: Final = ("asend", "athrow")


def follow(stream: Any, verdict: Verdict, call: TracedCall) -> bool:
    """Follow it to its end; False, and nothing done, where its class does not allow that."""
    made = verdict.stand_in() if verdict.stand_in is not None else None
    try:
        if made is None:
            made = _stand_in(type(stream))
            verdict.stand_in = weakref.ref(made)
        _set_class(stream, made)
    except TypeError:  # a class made in C
        verdict.way = Way.NOT
        return False
    try:
        _followed[id(stream)] = Following(call)
    except BaseException:
        _set_class(stream, made.__dict__[STANDS_FOR])
        raise
    _set_class(stream, made)  # another thread, stepping it just now, may have given it back as one that nobody follows
    return True


def following_of(stream: Any) -> Following | None:
    """How an object of a class of ours is followed."""
    return followed_by(stream) or _followed.get(id(stream))


def _release(stream: Any) -> None:
    """Give it its own class back."""
    _followed.pop(id(stream), None)
    kind = type.__dict__["__dict__"].__get__(type(stream)).get(STANDS_FOR)
    if kind is not None:
        _set_class(stream, kind)


def _current(stream: Any) -> Following | None:
    following = _followed.get(id(stream))
    if following is None or following.over:  # a copy of a followed one; the process has ended its calls
        _release(stream)
        return None
    return following


# --- the class ---------------------------------------------------------------------------------------------------------------

#: ``of(stream, name)``: a method of the class that is stood for, bound.
_Of = Callable[[Any, str], Callable[..., Any]]


def _stand_in(kind: type) -> type:
    def of(stream: Any, name: str) -> Any:
        # Not by `super`: another thread may have ended the call, and given the object its own class back.
        return getattr(kind, name).__get__(stream, kind)

    body: dict[str, Any] = {
        "__slots__": (),
        "__module__": _classes.module(kind),
        "__qualname__": _classes.qualname(kind),
        "__doc__": found(kind, "__doc__"),
        STANDS_FOR: kind,
        "__del__": _finalizer(kind, of),
    }
    if found(kind, "__class__") is _class:  # else it passes for another one already
        body["__class__"] = property(lambda _stream: kind, _changed_class)
    generator = found(kind, "throw") is not None
    makers: dict[str, Callable[[str, Any, _Of], Any]] = {"__next__": _step, "__anext__": _astep}
    makers |= dict.fromkeys(_SENDS, _step) if generator else {}
    makers |= dict.fromkeys(_ASENDS, _astep) if found(kind, "athrow") is not None else {}
    makers |= dict.fromkeys(ITERATORS, _iterator) | dict.fromkeys(ENDS, _end)
    for name, make in makers.items():
        method = found(kind, name)
        if callable(method) and not isinstance(method, (staticmethod, classmethod, type)):
            body[name] = functools.wraps(method)(make(name, method, of))
    body["__reduce_ex__"] = _reduce
    made: type = type(kind)(_classes.name(kind), (kind,), body)
    return made


def _step(name: str, _method: Any, of: _Of) -> Any:
    def step(self: Any, /, *args: Any, **kwargs: Any) -> Any:
        following = _current(self)
        if following is None:
            return getattr(self, name)(*args, **kwargs)
        try:
            return following.step(of(self, name), *args, **kwargs)
        finally:
            try:
                if following.over:
                    _release(self)
            except RecursionError:  # the next step, or the end, will
                pass

    return step


def _astep(name: str, method: Any, of: _Of) -> Any:
    def step(self: Any, /, *args: Any, **kwargs: Any) -> Any:
        following = _current(self)
        if following is None:
            return getattr(self, name)(*args, **kwargs)
        return _release_after(self, following, following.astep(of(self, name), *args, **kwargs))

    return _async(step) if inspect.iscoroutinefunction(method) else step


async def _release_after(stream: Any, following: Following, step: Any) -> Any:
    try:
        return await step
    finally:
        if following.over:
            _release(stream)


def _async(step: Callable[..., Any]) -> Callable[..., Any]:
    async def async_step(*args: Any, **kwargs: Any) -> Any:
        return await step(*args, **kwargs)

    return async_step


def _iterator(name: str, _method: Any, of: _Of) -> Any:
    def iterator(self: Any) -> Any:
        following = _current(self)
        if following is None:
            return getattr(self, name)()
        made = following.start(of(self, name))
        if made is self or following.inside() or following.over:
            return made
        return standing_for(made, following, functools.partial(_release, self))

    return iterator


def _end(name: str, method: Any, of: _Of) -> Any:
    asynchronous = inspect.iscoroutinefunction(method)

    def end(self: Any, *args: Any, **kwargs: Any) -> Any:
        following = _current(self)
        if following is None:
            return getattr(self, name)(*args, **kwargs)
        how = _how(args) if name in ("__exit__", "__aexit__") else "closed"
        try:
            closing = following.aclosing if asynchronous else following.closing
            return closing(of(self, name), args, kwargs, how)
        finally:
            if following.over:
                _release(self)

    return _async(end) if asynchronous else end


def _how(args: tuple[Any, ...]) -> str:
    """How a ``with`` was left: an exception of its body's is not the stream's, but who is cancelled says so."""
    fault = args[0] if args else None
    left = not isinstance(fault, type) or issubclass(fault, (Exception, GeneratorExit))
    return "closed" if left else "cancelled"


def _finalizer(kind: type, of: _Of) -> Any:
    finalizes = found(kind, "__del__") is not None

    def finalize(self: Any) -> None:
        following = _followed.pop(id(self), None)
        try:
            if finalizes:
                of(self, "__del__")()
        finally:
            if following is not None:
                with _guard.guard("stream.dropped"):
                    following.finish("closed")

    return finalize


def _changed_class(self: Any, kind: type) -> None:
    """Somebody else changes the class of the object: it is theirs, and followed no longer."""
    following = _followed.pop(id(self), None)
    _set_class(self, kind)
    if following is not None:
        with _guard.guard("stream.changed"):
            following.finish("closed")


def _reduce(self: Any, protocol: Any) -> Any:
    """A copy, or a pickle, is one of what the object is an instance of, and is not followed."""
    made = type(self)
    _set_class(self, made.__dict__[STANDS_FOR])
    try:
        return self.__reduce_ex__(protocol)
    finally:
        if id(self) in _followed:
            _set_class(self, made)
