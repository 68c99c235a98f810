"""Who runs a judge's model. httpx is imported here, in the providers, and when the first judge grades."""

import os
from functools import lru_cache
from typing import TYPE_CHECKING, Final
from urllib.parse import urlsplit
from weakref import WeakSet

from spangrade.errors import JudgeError
from spangrade.judges.providers.base import JudgeClient, JudgeReply, JudgeRequest, Message

if TYPE_CHECKING:
    from spangrade.judges.providers.openai_compatible import OpenAICompatible

__all__ = ["JudgeClient", "JudgeReply", "JudgeRequest", "Message", "client_from_environment", "close_connections"]

OPENAI: Final = "https://api.openai.com/v1"
_ours: "WeakSet[OpenAICompatible]" = WeakSet()


def client_from_environment() -> JudgeClient:
    """The client for the endpoint that the environment names; the same object for the same endpoint and key.

    Base URL: ``SPANGRADE_JUDGE_BASE_URL``, else ``OPENAI_BASE_URL``, else OpenAI's. Key: ``SPANGRADE_JUDGE_API_KEY``,
    else ``OPENAI_API_KEY``, but that one only to OpenAI or to the host of ``OPENAI_BASE_URL``: it is not sent to a host
    that it was not made for. Without a key, a base URL of your own is called without one.

    Raises:
        JudgeError: kind configuration, when neither a base URL nor a key is set, or one of them cannot be used.
    """
    theirs = os.environ.get("OPENAI_BASE_URL", "").strip()
    base_url = os.environ.get("SPANGRADE_JUDGE_BASE_URL", "").strip() or theirs or OPENAI
    key = os.environ.get("SPANGRADE_JUDGE_API_KEY", "").strip()
    if not key and _origin(base_url) in (_origin(OPENAI), _origin(theirs)):
        key = os.environ.get("OPENAI_API_KEY", "").strip()
    if not key and _origin(base_url) == _origin(OPENAI):
        raise JudgeError(
            "configuration",
            "no endpoint for the judge: set SPANGRADE_JUDGE_API_KEY (or OPENAI_API_KEY) for OpenAI, or "
            "SPANGRADE_JUDGE_BASE_URL for a server of your own",
        )
    return _shared(base_url, key)


def close_connections() -> None:
    """Close this process's connections of every client that `client_from_environment` has given; a client that is asked
    again opens new ones. Clients that the application made are left alone."""
    for client in list(_ours):
        client.close()


@lru_cache(maxsize=32)
def _shared(base_url: str, key: str) -> "OpenAICompatible":
    from spangrade.judges.providers.openai_compatible import OpenAICompatible

    client = OpenAICompatible(base_url, key or None)
    _ours.add(client)
    return client


def _origin(url: str) -> tuple[str, str]:
    try:
        parts = urlsplit(url)
    except ValueError:
        return ("", url)
    return (parts.scheme.lower(), parts.netloc.rpartition("@")[2].lower())
