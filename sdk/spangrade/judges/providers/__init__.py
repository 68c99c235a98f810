"""Who runs a judge's model. httpx is imported here, in the providers, and when the first judge grades."""

from importlib.metadata import entry_points
from typing import TYPE_CHECKING, Any, Final
from weakref import WeakSet

from spangrade.errors import JudgeError
from spangrade.judges.providers.base import JudgeClient, JudgeReply, JudgeRequest, Message
from spangrade.judges.providers.endpoint import (
    ANTHROPIC,
    GROUP,
    OPENAI_COMPATIBLE,
    Endpoint,
    from_environment,
    offered,
    spoken_at,
)
from spangrade.judges.providers.limited import LimitedClient

if TYPE_CHECKING:
    from spangrade.judges.providers.http_client import HttpJudgeClient

__all__ = [
    "Endpoint", "JudgeClient", "JudgeReply", "JudgeRequest", "Message", "client_at", "client_from_environment", "close_connections",
    "from_environment",
]  # fmt: skip

_MOST_CLIENTS: Final = 32
_clients: dict[Endpoint, JudgeClient] = {}
_ours: "WeakSet[HttpJudgeClient]" = WeakSet()


def client_from_environment(model: str = "") -> tuple[JudgeClient, str]:
    """The client for ``model`` by what the environment says, and the model's name there; see `from_environment`. The same
    object for the same endpoint and key.

    Raises:
        JudgeError: kind configuration, when neither a base URL nor a key is set, or one of them cannot be used.
    """
    endpoint, name = from_environment(model)
    return client_at(endpoint), name


def client_at(endpoint: Endpoint) -> JudgeClient:
    """The client for an endpoint; the same object for the same endpoint, of the last 32.

    Raises:
        JudgeError: kind configuration, when the provider is unknown, or address, key or a header cannot be used.
    """
    found = _clients.get(endpoint)
    if found is None:
        # Two threads that come first may each make one; all get the one that is there first. The other holds nothing yet.
        found = _clients.setdefault(endpoint, _made(endpoint))
        for old in list(_clients)[:-_MOST_CLIENTS]:
            _clients.pop(old, None)
    return found


def _made(endpoint: Endpoint) -> JudgeClient:
    provider = endpoint.provider or spoken_at(endpoint.base_url or "")
    made: HttpJudgeClient
    if provider == OPENAI_COMPATIBLE:
        from spangrade.judges.providers.openai_compatible import OpenAICompatible

        made = OpenAICompatible(**_settings(endpoint))
    elif provider == ANTHROPIC:
        from spangrade.judges.providers.anthropic import AnthropicMessages

        made = AnthropicMessages(**_settings(endpoint))
    else:
        return _theirs(provider, endpoint)
    _ours.add(made)
    return made


def close_connections() -> None:
    """Close this process's connections of every client of ours that `client_at` has given; a client that is asked again
    opens new ones. Clients that the application made are left alone."""
    for client in list(_ours):
        client.close()


def _settings(endpoint: Endpoint) -> dict[str, Any]:
    return {
        "base_url": endpoint.base_url or "",
        "api_key": endpoint.api_key,
        "api_key_file": endpoint.api_key_file,
        "headers": dict(endpoint.headers),
        "ca_file": endpoint.ca_file,
        "proxy": endpoint.proxy,
        "max_concurrency": endpoint.max_concurrency,
    }


def _theirs(provider: str, endpoint: Endpoint) -> JudgeClient:
    """A client of another package's, within our limiter: its entry point is a function of an `Endpoint` that gives a
    `JudgeClient`."""
    found = next(iter(entry_points(group=GROUP, name=provider)), None)
    if found is None:
        known = ", ".join(sorted({OPENAI_COMPATIBLE, ANTHROPIC} | offered()))
        raise JudgeError("configuration", f"no provider {provider!r} for the judge; there are {known}")
    try:
        client = found.load()(endpoint)
    except Exception as fault:  # noqa: BLE001 - another package's code, and its words may hold the key
        raise JudgeError(
            "configuration", f"the provider {provider!r} ({found.value}) failed: {type(fault).__name__}"
        ) from None
    if not isinstance(client, JudgeClient):
        raise JudgeError("configuration", f"the provider {provider!r} ({found.value}) gave no client with `complete`")
    return LimitedClient(client, endpoint)
