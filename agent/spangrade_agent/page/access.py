"""Who may see the page: by the name it is called by, and by the token.

The Host check stops DNS rebinding: a stranger's page in a browser on this machine can make its own name resolve to the
loopback, but the browser then still sends that name. The cookie holds a keyed hash of the token, not the token: cookies
do not tell ports apart, so another service on this host gets to see it.
"""

import hashlib
import hmac
from collections.abc import Callable
from typing import Final
from urllib.parse import quote, urlencode

from spangrade_agent.page.asgi import Answer, Request, text
from spangrade_agent.page.settings import PageSettings, as_address, host_of, is_loopback

COOKIE: Final = "spangrade_page"
_LOOPBACK: Final = ("localhost", "127.0.0.1", "::1")


class Gate:
    """Asked before anything else. ``login`` makes the answer to a caller without a token."""

    def __init__(self, settings: PageSettings, login: Callable[[Request], Answer]) -> None:
        self._hosts = frozenset((*_LOOPBACK, settings.listen_host, *(host_of(name) for name in settings.hosts)))
        self._any_address = not is_loopback(settings.listen_host)
        self._token = None if settings.token is None else settings.token.encode()
        self._cookie = "" if self._token is None else hmac.digest(self._token, COOKIE.encode(), hashlib.sha256).hex()
        self._login = login

    def refusal(self, request: Request) -> Answer | None:
        """The answer to a caller who may not pass; None: they may."""
        if not self._known_host(request.header("host")):
            return text(
                421,
                "the page does not answer to this Host name, so that a stranger's web page cannot read it through your "
                "browser; call it by its listen address, or add the name to page.hosts in the configuration",
            )
        if self._token is None:
            return None
        given = (request.query or {}).get("token")
        if given is not None and self._is_token(given):
            return self._let_in(request)
        if self._is_token(_bearer(request)) or any(self._is_cookie(value) for value in _cookies(request)):
            return None
        return self._login(request)

    def refusal_of_programs(self, request: Request) -> tuple[int, str] | None:
        """The same for what changes something: status and sentence. The token as a header only, since a browser sends
        cookies by itself, for whoever asks it to."""
        if not self._known_host(request.header("host")):
            return (
                421,
                "the agent does not answer to this Host name; call it by its listen address, or add it to page.hosts",
            )
        if self._token is None or self._is_token(_bearer(request)):
            return None
        return 401, "give the token of page.token as 'Authorization: Bearer <token>'"

    def _known_host(self, header: str | None) -> bool:
        if header is None:
            return False
        host = host_of(header)
        # Rebinding needs a name. A listener for other machines is called by addresses nobody has listed, and has a token.
        return host in self._hosts or (self._any_address and as_address(host) is not None)

    def _is_token(self, given: str) -> bool:
        assert self._token is not None
        return hmac.compare_digest(given.encode("utf-8", "replace"), self._token)

    def _is_cookie(self, given: str) -> bool:
        return hmac.compare_digest(given.encode("utf-8", "replace"), self._cookie.encode())

    def _let_in(self, request: Request) -> Answer:
        """Set the cookie; on to the same address without the token, so that it stays in no history and no log of ours."""
        rest = urlencode(
            {name: value for name, value in (request.query or {}).items() if name != "token"}, errors="replace"
        )
        # One slash: with two the address would be another host's.
        place = "/" + quote(request.path.lstrip("/"), safe="/", errors="replace") + (f"?{rest}" if rest else "")
        secure = "; Secure" if request.secure else ""
        cookie = f"{COOKIE}={self._cookie}; Path=/; HttpOnly; SameSite=Strict{secure}"
        return text(303, "welcome", ("location", place), ("set-cookie", cookie))


def _bearer(request: Request) -> str:
    scheme, _, credentials = (request.header("authorization") or "").partition(" ")
    return credentials.strip() if scheme.lower() == "bearer" else ""


def _cookies(request: Request) -> list[str]:
    """The values of our cookie. Read by hand: the standard reader gives up at a neighbour's odd cookie."""
    pairs = [pair.partition("=") for header in request.headers.get("cookie", []) for pair in header.split(";")]
    return [value.strip() for name, _, value in pairs if name.strip() == COOKIE]
