"""A judge's client over HTTP: what all providers share. It adapts to what a model refuses and tries again what may pass."""

import os
from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Final

import httpx

from spangrade.errors import JudgeError
from spangrade.judges.limiter import Limiter, Place
from spangrade.judges.limiters import most_at_once, shared_limiter
from spangrade.judges.providers.base import JudgeReply, JudgeRequest
from spangrade.judges.providers.connection import Connection, Exchange
from spangrade.judges.providers.key import Key
from spangrade.judges.providers.learned import Learned
from spangrade.judges.providers.resets import reset_wait
from spangrade.judges.providers.retry import BILLED_STATUS, RETRIED_STATUS, Passing, RetryPolicy, asked_wait
from spangrade.judges.providers.said import ErrorBody
from spangrade.model.gate import CIRCUIT_OPEN, RATE_LIMITED, carried

_REFUSED: Final = frozenset({400, 422})
_TOO_MANY: Final = frozenset({429, 529})
_NOT_SENT: Final = (httpx.ConnectError, httpx.ConnectTimeout, httpx.ProxyError, httpx.UnsupportedProtocol)
_MAX_ADAPTED: Final = 8
_NO_URL: Final = "the judge's base URL is no http(s) address; set SPANGRADE_JUDGE_BASE_URL, e.g. https://host/v1"


class HttpJudgeClient(ABC):
    """A judge client for one base URL and key; threads and judges share it, and a fork gets its own connections.

    A provider says where requests go, what they look like and how a reply is read; see `OpenAICompatible`.

    Args:
        base_url: as for the provider's own client.
        api_key: None for servers that want none. Never shown, logged or put in an error.
        api_key_file: path of a file with the key, where no key is given.
        headers: sent with every request besides; never shown.
        ca_file, proxy: see `Connection`.
        retry: waits and clocks.
        max_concurrency: calls at once, at most; see `Limiter`, which all clients of one address and key share. By default
            ``SPANGRADE_JUDGE_MAX_CONCURRENCY``, else 200.

    Raises:
        JudgeError: kind configuration, when URL, key, a header or the variable cannot be used.
    """

    #: What a model is asked for before it has refused anything.
    usual: Learned

    def __init__(
        self,
        base_url: str,
        api_key: str | None = None,
        *,
        api_key_file: str | None = None,
        headers: Mapping[str, str] | None = None,
        ca_file: str | None = None,
        proxy: str | None = None,
        retry: RetryPolicy | None = None,
        max_concurrency: int | None = None,
    ) -> None:
        self._retry = retry or RetryPolicy()
        self._key = Key(api_key, api_key_file)
        self._headers = _checked(headers or {})
        url = self.address(_http_url(base_url))
        self._connection = Connection(url, ca_file=ca_file, proxy=proxy, clock=self._retry.clock)
        self._limited_by = (base_url, api_key, api_key_file, most_at_once(max_concurrency))
        self._limiter: tuple[int, Limiter] | None = None
        self._learned: dict[str, Learned] = {}

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self._connection.shown!r})"

    @abstractmethod
    def address(self, base: httpx.URL) -> httpx.URL:
        """Where requests go, for a base URL as people write it."""

    @abstractmethod
    def authorization(self, key: str | None) -> Mapping[str, str]:
        """The headers that say who asks."""

    @abstractmethod
    def body(self, request: JudgeRequest, how: Learned) -> dict[str, Any]:
        """The request as JSON."""

    @abstractmethod
    def reply(self, data: bytes, how: Learned) -> tuple[JudgeReply, bool]:
        """What a 200 says, and whether it came in the form that was asked for.

        Raises:
            JudgeError: the body is no reply of this provider's.
        """

    @property
    def limiter(self) -> Limiter:
        """What all of this process that call the same endpoint with the same key share."""
        found = self._limiter
        if found is None or found[0] != os.getpid():
            made = shared_limiter(*self._limited_by, clock=self._retry.clock, sleep=self._retry.sleep)
            found = self._limiter = (os.getpid(), made)
        return found[1]

    def close(self) -> None:
        """Close this process's connections; the next call opens new ones."""
        self._connection.close()

    def complete(self, request: JudgeRequest) -> JudgeReply:
        """Send the request when the endpoint's limiter lets it; adapt to what the model refuses, and try again what may pass
        (see `RetryPolicy`).

        Raises:
            JudgeError: as the protocol says; kind circuit_open or rate_limited where nothing was sent (see `Limiter`). The message has the status, and at most 200 characters of the reply.
        """
        deadline = self._retry.clock() + request.timeout
        limiter = self.limiter
        place: Place | None = None
        last: JudgeError | None = None
        unanswered = 0  # tries that gave nothing and may have been billed

        def give_back() -> None:  # what waits between two tries holds no place
            if place is not None:
                place.release()

        def attempt() -> JudgeReply:
            nonlocal place, last, unanswered
            try:
                place = limiter.place(deadline)
                return self._once(request, deadline, limiter, place)
            except Passing as passing:
                last = passing.failure
                unanswered += passing.billed
                raise
            except JudgeError as fault:
                unanswered += fault.unanswered or 0
                raise (last or fault if fault.kind in (RATE_LIMITED, CIRCUIT_OPEN) else fault) from None

        def allowed(passing: Passing) -> bool:
            return (not passing.billed or request.again is None or request.again()) and limiter.may_retry()

        try:
            reply = self._retry.retrying(deadline, allowed, give_back)(attempt)
            return replace(reply, unanswered=unanswered) if unanswered else reply
        except Passing as passing:
            limiter.failed(passing.reason)
            passing.failure.unanswered = unanswered
            raise passing.failure from None
        except JudgeError as fault:
            fault.unanswered = unanswered
            raise
        finally:
            if place is not carried():  # a lane's place is the lane's: the same step may ask once more
                give_back()

    def _once(self, request: JudgeRequest, deadline: float, limiter: Limiter, place: Place) -> JudgeReply:
        """One try; those again that the model's answer teaches to ask otherwise.

        Raises:
            Passing: another try may help.
            JudgeError: none will.
        """
        for adapted in range(_MAX_ADAPTED + 1):
            how = self._learned.get(request.model, self.usual)
            body = self.body(request, how)
            headers = {**self.authorization(self._key.value()), **self._headers}
            sent = self._retry.clock()
            got = self._connection.post(body, headers, deadline)
            self._heed(got, limiter)
            if got.status == 200:
                limiter.answered(place, request.model, sent)
                reply, as_asked = self._read(got.data, how)
                if request.schema is not None and not as_asked:
                    self._learn(request.model, how, how.weaker())
                return reply
            if got.status is None:
                failure, passing = self._no_answer(got.fault, request.timeout)
                if passing:
                    raise Passing(failure, {}, failure.kind, billed=not issubclass(got.fault, _NOT_SENT))
                if sent < deadline:
                    failure.unanswered = 1
                    limiter.failed(failure.kind)
                raise failure
            error = ErrorBody(got.data)
            other = how.after_refusal(body, error.param, error.message) if got.status in _REFUSED else None
            if other is not None and error.adaptable and adapted < _MAX_ADAPTED:
                self._learn(request.model, how, other)
                continue
            failure = error.fault(self._connection.shown, got.status, self._key)
            if got.status in RETRIED_STATUS and not error.final:
                if got.status in _TOO_MANY:
                    limiter.refused(sent)
                raise Passing(failure, got.headers, f"status {got.status}", billed=got.status in BILLED_STATUS)
            if got.status == 401 or error.final:  # so it would be for every call with this key
                limiter.failed(f"status {got.status}", at_once=True)
            else:
                limiter.answered(place, request.model, None)
            raise failure
        raise AssertionError("unreachable")

    def _read(self, data: bytes, how: Learned) -> tuple[JudgeReply, bool]:
        """See `reply`: a 200 that is none has been billed."""
        try:
            return self.reply(data, how)
        except JudgeError as fault:
            fault.unanswered = 1
            raise

    def _heed(self, got: Exchange, limiter: Limiter) -> None:
        """The endpoint's wishes concern all that call it: a wait that it asks for is everybody's. One that is longer than
        calls wait is as good as an endpoint that does not work."""
        policy = self._retry
        refused = got.status in RETRIED_STATUS
        asked = asked_wait(got.headers, policy.now()) if refused else None
        if asked is not None and asked > policy.max_wait:
            limiter.failed(f"asks for a pause of {asked:.0f} s", at_once=True, for_s=asked)
        elif asked is None:
            reset = reset_wait(got.headers, policy.now(), refused=got.status in _TOO_MANY)
            asked = None if reset is None else min(reset, policy.max_wait)
        if asked is not None and asked > 0:
            limiter.pause(min(asked, policy.max_wait))

    def _learn(self, model: str, was: Learned, now: Learned) -> None:
        if self._learned.get(model, self.usual) == was:  # no other thread has just learned more
            self._learned[model] = now

    def _no_answer(self, fault: type[httpx.HTTPError], seconds: float) -> tuple[JudgeError, bool]:
        """The error for an exchange without an answer, and whether another try may help."""
        shown = self._connection.shown
        if issubclass(fault, httpx.TimeoutException) and not issubclass(fault, httpx.ConnectTimeout):
            return JudgeError("timeout", f"no reply from {shown} within {seconds:g} s"), False
        return JudgeError("connection", f"no connection to {shown}: {fault.__name__}"), True


def _http_url(base_url: str) -> httpx.URL:
    try:
        url = httpx.URL(base_url.strip())
    except (httpx.InvalidURL, TypeError, ValueError):
        url = httpx.URL("")
    if url.scheme not in ("http", "https") or not url.host:
        raise JudgeError("configuration", _NO_URL)
    return url


def _checked(headers: Mapping[str, str]) -> dict[str, str]:
    for name, value in headers.items():
        if (
            not name.isascii()
            or not name.isprintable()
            or " " in name
            or not value.isascii()
            or not value.isprintable()
        ):
            raise JudgeError("configuration", f"the judge's header {name!r} is none that HTTP takes")
    return dict(headers)
