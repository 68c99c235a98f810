"""Chat completions as OpenAI, vLLM, Ollama, LiteLLM, llama.cpp, Groq, Together and OpenRouter take them.

Source: https://platform.openai.com/docs/api-reference/chat/create, and the servers' own replies.
"""

import json
import os
import re
import secrets
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

import httpx

from spangrade._values import bounded
from spangrade.errors import JudgeError
from spangrade.judges.providers.base import JudgeReply, JudgeRequest
from spangrade.judges.providers.learned import Dialect
from spangrade.judges.providers.retry import RETRIED_STATUS, RetryPolicy

MAX_BODY: Final = 4 * 1024 * 1024
EXCERPT: Final = 200
_CONNECT: Final = 10.0
_PATH: Final = "/chat/completions"
_KEY_LIKE: Final = re.compile(r"\b(?:sk|pk|rk|gsk|xai)-[\w*.-]{3,}|(?<=Bearer )\S+", re.IGNORECASE)
_TOO_LONG: Final = re.compile(r"context[ _](?:length|window|size)", re.IGNORECASE)
_USUAL: Final = Dialect()
_REFUSED: Final = frozenset({400, 422})
_MAX_ADAPTED: Final = 6
# A 429 that waiting does not mend.
_FINAL_CODES: Final = frozenset({"insufficient_quota", "billing_hard_limit_reached"})


class OpenAICompatible:
    """A judge client for one base URL and key; threads and judges share it, and a fork gets its own connections.

    Args:
        base_url: as for the OpenAI client, usually ending in ``/v1``.
        api_key: sent as a bearer token; None for servers that want none. Never shown, logged or put in an error.
        retry: waits and clocks.

    Proxies and certificates are taken from the environment, as httpx does (``HTTPS_PROXY``, ``SSL_CERT_FILE``).

    Raises:
        JudgeError: kind configuration, when URL or key cannot be used.
    """

    def __init__(self, base_url: str, api_key: str | None = None, *, retry: RetryPolicy | None = None) -> None:
        self._url = _endpoint(base_url)
        self._shown = f"{self._url.scheme}://{self._url.netloc.decode('ascii')}"  # no userinfo, no query
        self._key = _checked_key(api_key)
        self._retry = retry or RetryPolicy()
        # By process id: a forked child must not write to its parent's sockets, and must not close them either. A plain
        # dict, since a lock could be held by a thread that does not exist in the child.
        self._clients: dict[int, httpx.Client] = {}
        self._dialects: dict[str, Dialect] = {}

    def __repr__(self) -> str:
        return f"OpenAICompatible({self._shown!r})"

    def close(self) -> None:
        """Close this process's connections; the next call opens new ones."""
        client = self._clients.pop(os.getpid(), None)
        if client is not None:
            client.close()

    def complete(self, request: JudgeRequest) -> JudgeReply:
        """Send the request; adapt to what the model refuses, and try again what may pass (see `RetryPolicy`).

        Raises:
            JudgeError: as the protocol says. The message has the status, and at most 200 characters of the reply.
        """
        deadline = self._retry.clock() + request.timeout
        tried = adapted = 0
        while True:
            dialect = self._dialects.get(request.model, _USUAL)
            body = dialect.body(request)
            got = self._exchange(body, deadline)
            if got.status == 200:
                return _reply(got.data)
            if got.status is None:
                failure, passing = self._no_answer(got.fault, request.timeout)
            else:
                error = _Error(got.data)
                other = dialect.after_refusal(body, error.param, error.message) if got.status in _REFUSED else None
                if other is not None and error.adaptable and adapted < _MAX_ADAPTED:
                    adapted += 1
                    if self._dialects.get(request.model, _USUAL) == dialect:  # no other thread has just learned more
                        self._dialects[request.model] = other
                    continue
                failure = self._failure(got.status, error)
                passing = got.status in RETRIED_STATUS and error.code not in _FINAL_CODES
            tried += 1
            wait = self._retry.wait_before(tried, got.headers, deadline - self._retry.clock()) if passing else None
            if wait is None:
                raise failure
            self._retry.sleep(wait)

    def _exchange(self, body: dict[str, Any], deadline: float) -> "_Exchange":
        """`_post`, with an HTTP fault as a value: chained to what is raised it would show the request, and the key."""
        try:
            return self._post(body, deadline)
        except httpx.HTTPError as fault:
            return _Exchange(None, fault=type(fault))

    def _post(self, body: dict[str, Any], deadline: float) -> "_Exchange":
        """One exchange, bounded in time by the deadline (checked between chunks) and in size by `MAX_BODY`."""
        left = deadline - self._retry.clock()
        if left <= 0:
            raise httpx.ReadTimeout("out of time")
        # Unsampled: whoever stands between here and the model sees a trace that is not to be recorded (no echo).
        headers = {"traceparent": f"00-{secrets.token_hex(16)}-{secrets.token_hex(8)}-00"}
        if self._key is not None:
            headers["Authorization"] = f"Bearer {self._key}"
        timeout = httpx.Timeout(left, connect=min(left, _CONNECT))
        data = bytearray()
        with self._http().stream("POST", self._url, json=body, headers=headers, timeout=timeout) as response:
            for chunk in response.iter_bytes(65_536):
                data += chunk
                if len(data) > MAX_BODY:
                    raise JudgeError("unparseable", f"the reply of {self._shown} is longer than {MAX_BODY} bytes")
                if self._retry.clock() > deadline:
                    raise httpx.ReadTimeout("out of time")
            return _Exchange(response.status_code, response.headers, bytes(data))

    def _http(self) -> httpx.Client:
        pid = os.getpid()
        client = self._clients.get(pid)
        if client is None:
            try:
                made = httpx.Client(limits=httpx.Limits(max_connections=256, max_keepalive_connections=64))
            except (OSError, ValueError, ImportError, httpx.InvalidURL) as fault:
                kind = type(fault).__name__  # not its text: a proxy's address may hold a password
                raise JudgeError(
                    "configuration",
                    f"no HTTP client for the judge ({kind}); look at HTTPS_PROXY, ALL_PROXY and SSL_CERT_FILE",
                ) from None
            client = self._clients.setdefault(pid, made)
            if client is not made:  # another thread was faster
                made.close()
        return client

    def _no_answer(self, fault: type[httpx.HTTPError], seconds: float) -> tuple[JudgeError, bool]:
        """The error for an exchange without an answer, and whether another try may help."""
        if issubclass(fault, httpx.TimeoutException) and not issubclass(fault, httpx.ConnectTimeout):
            return JudgeError("timeout", f"no reply from {self._shown} within {seconds:g} s"), False
        return JudgeError("connection", f"no connection to {self._shown}: {fault.__name__}"), True

    def _failure(self, status: int, error: "_Error") -> JudgeError:
        if error.filtered:
            return JudgeError("content_filter", f"{self._shown} filtered the request (status {status})")
        text = error.message or error.code or "no reason given"
        if self._key:
            text = text.replace(self._key, "[key]")
        text = bounded(_KEY_LIKE.sub("[key]", text), EXCERPT)
        return JudgeError("http_status", f"{self._shown} answered {status}: {text}{_HINTS.get(status, '')}")


@dataclass(frozen=True, slots=True)
class _Exchange:
    """What came back: a status with headers and body, or the kind of fault."""

    status: int | None
    headers: Mapping[str, str] = field(default_factory=dict)
    data: bytes = b""
    fault: type[httpx.HTTPError] = httpx.HTTPError


_HINTS: Final[Mapping[int, str]] = {
    401: " (is SPANGRADE_JUDGE_API_KEY the key for this base URL?)",
    404: " (is the model's name right, and does SPANGRADE_JUDGE_BASE_URL end as it should, usually in /v1?)",
}


class _Error:
    """What an error body says, in whichever of the usual shapes; the start of the body where it has none of them."""

    def __init__(self, data: bytes) -> None:
        body = _json(data)
        found = body.get("error", body) if isinstance(body, dict) else body
        inner: Mapping[str, Any] = found if isinstance(found, dict) else {}
        self.code = str(inner.get("code") or inner.get("type") or "")
        self.param = str(inner.get("param") or "")
        said = inner.get("message") or inner.get("detail") or (found if isinstance(found, str) else None)
        self.message = str(said) if said else ("" if inner else data[:4096].decode("utf-8", "replace").strip())
        words = f"{self.code} {inner.get('innererror') or ''}".lower()
        self.filtered = any(word in words for word in ("content_filter", "content_policy", "responsibleaipolicy"))
        self.adaptable = not self.filtered and not _TOO_LONG.search(f"{self.code} {self.message}")


def _reply(data: bytes) -> JudgeReply:
    """The parts of a chat completion that a verdict needs; a body in another shape is a `JudgeError`."""
    body = _json(data)
    if not isinstance(body, dict):
        raise JudgeError("unparseable", "the endpoint answered 200 with something that is no chat completion")
    choices = body.get("choices")
    if not isinstance(choices, list) or not choices:
        if body.get("error"):  # some gateways answer 200 for an upstream's error
            raise JudgeError("http_status", "the endpoint answered 200 with an error instead of a completion")
        raise JudgeError("empty", "the endpoint answered 200 without choices")
    if len(choices) > 1:
        raise JudgeError("several_verdicts", f"the endpoint answered with {len(choices)} choices")
    choice = choices[0] if isinstance(choices[0], dict) else {}
    message = choice.get("message")
    message = message if isinstance(message, dict) else {}
    usage = body.get("usage")
    usage = usage if isinstance(usage, dict) else {}
    return JudgeReply(
        text=_text(message.get("content")),
        model=_str(body.get("model")),
        finish_reason=_str(choice.get("finish_reason")),
        refusal=_str(message.get("refusal")),
        input_tokens=_count(usage.get("prompt_tokens")),
        output_tokens=_count(usage.get("completion_tokens")),
    )


def _json(data: bytes) -> Any:
    """The body as JSON, or None. The decoder's error is not passed on: it holds the body, and that perhaps the key."""
    try:
        return json.loads(data)
    except (ValueError, RecursionError):
        return None


def _text(content: Any) -> str:
    """Text content, or the text parts of a list of parts; thinking parts are not text."""
    if isinstance(content, str):
        return content
    if not isinstance(content, list):
        return ""
    parts = (part.get("text") for part in content if isinstance(part, dict) and part.get("type") in (None, "text"))
    return "".join(part for part in parts if isinstance(part, str))


def _str(value: Any) -> str | None:
    return bounded(value, 1024) if isinstance(value, str) and value.strip() else None


def _count(value: Any) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) and 0 <= value < 2**53 else None


def _endpoint(base_url: str) -> httpx.URL:
    try:
        url = httpx.URL(base_url.strip())
    except (httpx.InvalidURL, TypeError, ValueError):
        url = httpx.URL("")
    if url.scheme not in ("http", "https") or not url.host:
        raise JudgeError(
            "configuration",
            "the judge's base URL is no http(s) address; set SPANGRADE_JUDGE_BASE_URL, e.g. https://host/v1",
        )
    path = url.path.rstrip("/")
    return url.copy_with(path=path if path.endswith(_PATH) else path + _PATH)


def _checked_key(key: str | None) -> str | None:
    key = (key or "").strip()
    if not key:
        return None
    if not key.isascii() or not key.isprintable() or " " in key:
        # Said here without the key: the HTTP layer would name it in its own error.
        raise JudgeError("configuration", "the judge's API key holds characters that no HTTP header takes")
    return key
