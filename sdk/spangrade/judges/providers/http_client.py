"""A judge's client over HTTP: what all providers share. It adapts to what a model refuses and tries again what may pass."""

from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import Any, Final

import httpx

from spangrade.errors import JudgeError
from spangrade.judges.providers.base import JudgeReply, JudgeRequest
from spangrade.judges.providers.connection import Connection
from spangrade.judges.providers.key import Key
from spangrade.judges.providers.learned import Learned
from spangrade.judges.providers.retry import RETRIED_STATUS, RetryPolicy
from spangrade.judges.providers.said import ErrorBody

_REFUSED: Final = frozenset({400, 422})
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

    Raises:
        JudgeError: kind configuration, when URL, key or a header cannot be used.
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
    ) -> None:
        self._retry = retry or RetryPolicy()
        self._key = Key(api_key, api_key_file)
        self._headers = _checked(headers or {})
        url = self.address(_http_url(base_url))
        self._connection = Connection(url, ca_file=ca_file, proxy=proxy, clock=self._retry.clock)
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

    def close(self) -> None:
        """Close this process's connections; the next call opens new ones."""
        self._connection.close()

    def complete(self, request: JudgeRequest) -> JudgeReply:
        """Send the request; adapt to what the model refuses, and try again what may pass (see `RetryPolicy`).

        Raises:
            JudgeError: as the protocol says. The message has the status, and at most 200 characters of the reply.
        """
        deadline = self._retry.clock() + request.timeout
        tried = adapted = 0
        while True:
            how = self._learned.get(request.model, self.usual)
            body = self.body(request, how)
            headers = {**self.authorization(self._key.value()), **self._headers}
            got = self._connection.post(body, headers, deadline)
            if got.status == 200:
                reply, as_asked = self.reply(got.data, how)
                if request.schema is not None and not as_asked:
                    self._learn(request.model, how, how.weaker())
                return reply
            if got.status is None:
                failure, passing = self._no_answer(got.fault, request.timeout)
            else:
                error = ErrorBody(got.data)
                other = how.after_refusal(body, error.param, error.message) if got.status in _REFUSED else None
                if other is not None and error.adaptable and adapted < _MAX_ADAPTED:
                    adapted += 1
                    self._learn(request.model, how, other)
                    continue
                failure = error.fault(self._connection.shown, got.status, self._key)
                passing = got.status in RETRIED_STATUS and not error.final
            tried += 1
            wait = self._retry.wait_before(tried, got.headers, deadline - self._retry.clock()) if passing else None
            if wait is None:
                raise failure
            self._retry.sleep(wait)

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
