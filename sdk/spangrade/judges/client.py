"""The client of an agent's registry of judges. Beside the judges' providers the only room that imports httpx."""

import json
import os
import secrets
import time
from collections.abc import Mapping
from datetime import datetime
from typing import Any, Final, cast

import httpx

from spangrade._suppress import evaluator_scope
from spangrade._values import snapshot
from spangrade.errors import ConfigError, JudgeError
from spangrade.judges.judge import LlmJudge
from spangrade.judges.providers.key import Key
from spangrade.judges.responses import EvaluatorPreviewResponse, EvaluatorResponse

URL: Final = "SPANGRADE_AGENT_URL"
TOKEN: Final = "SPANGRADE_TOKEN"
DEFAULT_URL: Final = "http://127.0.0.1:8080"
TIMEOUT: Final = 10.0
PREVIEW_TIMEOUT: Final = 90.0  # the agent's judge has 60 s
_PATH: Final = "/v1/evaluators"
_LOOPBACK: Final = ("localhost", "127.0.0.1", "::1")
_MAX_ANSWER: Final = 1024 * 1024
_MAX_SAID: Final = 1_000


class RegistryClient:
    """An agent's registry: `LlmJudge.register` and `LlmJudge.preview` talk to it. A context manager; threads may share it.

    Args:
        base_url: where the agent's page is; by default ``SPANGRADE_AGENT_URL``, else ``http://127.0.0.1:8080``.
        token: its ``page.token``; by default ``SPANGRADE_TOKEN``. Never shown, and sent to that address only.
        timeout: seconds for a request; a preview has 90, since a model grades meanwhile.

    Raises:
        ConfigError: an address that is no http(s) URL, or a token that no HTTP header takes.

    Nothing that it does is traced or scored. Redirections are not followed; to the loopback no proxy is asked.
    """

    def __init__(self, base_url: str | None = None, token: str | None = None, *, timeout: float = TIMEOUT) -> None:
        given = base_url or os.environ.get(URL, "").strip() or DEFAULT_URL
        self._url = _http_url(given, "base_url" if base_url else URL)
        self.shown = f"{self._url.scheme}://{self._url.netloc.decode('ascii')}"
        try:
            self._token = Key(token or os.environ.get(TOKEN))
        except JudgeError:
            raise ConfigError(
                f"the token of the agent at {self.shown} holds characters that no HTTP header takes; give page.token as it "
                f"stands in the agent's configuration ({TOKEN})"
            ) from None
        if not timeout > 0:
            raise ConfigError(f"timeout {timeout!r} is not a number of seconds above 0")
        self._timeout = float(timeout)
        self._http: httpx.Client | None = None

    def __repr__(self) -> str:
        return f"RegistryClient({self.shown!r})"

    def __enter__(self) -> "RegistryClient":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close its connections; the next request opens new ones."""
        http, self._http = self._http, None
        if http is not None:
            http.close()

    def register(
        self, judge: LlmJudge, project_id: str | None = None, live: Mapping[str, Any] | None = None
    ) -> EvaluatorResponse:
        """Create ``judge``, or reuse the one with the same configuration; see `LlmJudge.register`.

        Args:
            live: its policy there (rate, when, max_per_minute, budget, as in `spangrade.live`), within what the agent's
                configuration allows. By default the agent's rate, where the judge has ``live=True``.
        """
        body = self._body(judge, project_id)
        body["live"] = judge.live if live is None else dict(live)
        answer = self._ask("POST", _PATH, body, self._timeout)
        try:
            return _response(answer)
        except (KeyError, TypeError, ValueError):
            raise self._no_registry() from None

    def preview(
        self, judge: LlmJudge, sample: Mapping[str, Any], project_id: str | None = None
    ) -> EvaluatorPreviewResponse:
        """Grade one sample on the agent; see `LlmJudge.preview`."""
        body = {**self._body(judge, project_id), "sample": {name: snapshot(value) for name, value in sample.items()}}
        answer = self._ask("POST", f"{_PATH}/preview", body, max(self._timeout, PREVIEW_TIMEOUT))
        score, said = answer.get("score"), [answer.get(name) for name in ("explanation", "prompt", "error")]
        if not (score is None or (type(score) in (int, float) and 0 <= score <= 1)):
            raise self._no_registry()
        if not all(text is None or isinstance(text, str) for text in said) or (score is None) != (said[2] is not None):
            raise self._no_registry()
        return EvaluatorPreviewResponse(score, said[0], said[1] or "", said[2])

    def _body(self, judge: LlmJudge, project_id: str | None) -> dict[str, Any]:
        body: dict[str, Any] = {"config": judge.config(), "threshold": judge.threshold}
        return body if project_id is None else {**body, "project_id": project_id}

    def _ask(self, method: str, path: str, body: Mapping[str, Any], seconds: float) -> dict[str, Any]:
        # Unsampled: whoever stands between here and the agent sees a trace that is not to be recorded (no echo).
        headers = {"traceparent": f"00-{secrets.token_hex(16)}-{secrets.token_hex(8)}-00", "accept": "application/json"}
        token = self._token.value()
        if token is not None:
            headers["authorization"] = f"Bearer {token}"
        url = self._url.copy_with(path=self._url.path.rstrip("/") + path)
        content = json.dumps(body).encode()
        headers["content-type"] = "application/json"
        data = bytearray()
        status, fault = 0, None
        deadline = time.monotonic() + seconds  # for the whole answer; httpx's own limit is for each piece of it
        with evaluator_scope():
            try:
                with self._client().stream(method, url, content=content, headers=headers, timeout=seconds) as reply:
                    status = reply.status_code
                    for chunk in reply.iter_bytes(65_536):
                        data += chunk
                        if len(data) > _MAX_ANSWER:
                            raise self._no_registry()
                        if time.monotonic() > deadline:
                            raise httpx.ReadTimeout("out of time")
            except httpx.HTTPError as error:
                fault = error  # raised below, unchained: what httpx raises has the request in it, and the token
        if fault is not None:
            raise self._no_answer(type(fault), seconds)
        if not 200 <= status < 300:
            raise self._refused(status, bytes(data))
        answer = _json(bytes(data))
        if answer is None:
            raise self._no_registry()
        return answer

    def _client(self) -> httpx.Client:
        if self._http is None:
            local = self._url.host in _LOOPBACK
            try:
                self._http = httpx.Client(trust_env=not local, follow_redirects=False)
            except (OSError, ValueError, ImportError, httpx.InvalidURL) as fault:
                kind = type(fault).__name__  # not its text: a proxy's address may hold a password
                raise ConfigError(
                    f"no HTTP client for the agent ({kind}); look at HTTPS_PROXY, ALL_PROXY and SSL_CERT_FILE"
                ) from None
        return self._http

    def _no_answer(self, fault: type[httpx.HTTPError], seconds: float) -> JudgeError:
        if issubclass(fault, httpx.TimeoutException) and not issubclass(fault, httpx.ConnectTimeout):
            return JudgeError("timeout", f"the agent at {self.shown} gave no answer within {seconds:g} s")
        return JudgeError(
            "connection",
            f"no agent answers at {self.shown} ({fault.__name__}); start one with `spangrade agent run`, or say where its "
            f"page is with RegistryClient(base_url=...) or {URL}",
        )

    def _refused(self, status: int, data: bytes) -> ConfigError | JudgeError:
        said = self._token.hide(_sentence(data))[:_MAX_SAID]
        if status == 401:
            return ConfigError(
                f"the agent at {self.shown} wants a token: give RegistryClient(token=...), or set {TOKEN} (page.token in the "
                "agent's configuration)"
            )
        if status == 404 and not said:
            return ConfigError(f"{self.shown} has no registry of judges; is it the page of a Spangrade agent?")
        if 400 <= status < 500 and status not in (408, 429):
            return ConfigError(f"the agent at {self.shown} says {status}: {said or 'nothing more'}")
        return JudgeError("http_status", f"the agent at {self.shown} says {status}: {said or 'nothing more'}")

    def _no_registry(self) -> JudgeError:
        return JudgeError("unparseable", f"what answers at {self.shown} is no registry of a Spangrade agent")


def _http_url(given: str, name: str) -> httpx.URL:
    try:
        url = httpx.URL(given.strip())
    except (httpx.InvalidURL, TypeError, ValueError):
        url = httpx.URL("")
    if url.scheme not in ("http", "https") or not url.host or url.query or url.fragment:
        raise ConfigError(f"{name} is no http(s) address of an agent's page, such as {DEFAULT_URL}")
    if url.userinfo:
        raise ConfigError(f"{name} has a user or password in it; the agent takes a token: token=..., or {TOKEN}")
    return url


def _json(data: bytes) -> dict[str, Any] | None:
    try:
        answer = json.loads(data)
    except (ValueError, RecursionError):
        return None
    return answer if isinstance(answer, dict) else None


def _sentence(data: bytes) -> str:
    """A problem object's ``detail``, and what it says of single fields."""
    answer = _json(data) or {}
    said = [answer["detail"]] if isinstance(answer.get("detail"), str) else []
    errors = answer.get("errors")
    for error in errors if isinstance(errors, list) else []:
        if isinstance(error, dict) and isinstance(error.get("message"), str):
            said.append(f"{error.get('field')}: {error['message']}")
    return "; ".join(said)


def _response(answer: Mapping[str, Any]) -> EvaluatorResponse:
    names = ("id", "name", "config_hash", "status", "project_id", "created")
    texts: dict[str, Any] = {name: answer[name] for name in names}
    version = answer["version"]
    if not all(isinstance(text, str) for text in texts.values()) or type(version) is not int:
        raise TypeError
    if texts["status"] not in ("active", "paused"):
        raise ValueError
    created = datetime.fromisoformat(cast("str", texts.pop("created")))
    return EvaluatorResponse(**texts, version=version, created=created)
