"""Where a judge's model runs: an endpoint, by the model's name and what the configuration or the environment says."""

import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from functools import lru_cache
from importlib.metadata import entry_points
from typing import Final
from urllib.parse import urlsplit

from spangrade.errors import JudgeError
from spangrade.judges.limiter import Limiter
from spangrade.judges.limiters import most_at_once, shared_limiter

GROUP: Final = "spangrade.judge_providers"
OPENAI_COMPATIBLE: Final = "openai"
ANTHROPIC: Final = "anthropic"


@dataclass(frozen=True, slots=True)
class Endpoint:
    """One endpoint of judges' models.

    Attributes:
        base_url: None where a provider of another package needs none.
        provider: ``openai`` (chat completions, whoever serves them), ``anthropic`` (messages), or the name that a package has
            given its own by the entry point group ``spangrade.judge_providers``.
        models: the models that it serves, with ``*`` and ``?``.
        api_key, api_key_file: the key, or a file that holds it; not shown.
        headers: sent with every request, not shown.
        ca_file: PEM file of the authorities to trust; by default the usual ones, or ``SSL_CERT_FILE``.
        proxy: an HTTP proxy; by default ``HTTPS_PROXY``, ``ALL_PROXY`` and ``NO_PROXY`` say.
        max_concurrency: calls at once, at most, of all judges of the process at this address with this key; by default
            ``SPANGRADE_JUDGE_MAX_CONCURRENCY``, else 200.
    """

    base_url: str | None = None
    provider: str | None = None
    models: tuple[str, ...] = ("*",)
    api_key: str | None = field(default=None, repr=False)
    api_key_file: str | None = None
    headers: tuple[tuple[str, str], ...] = field(default=(), repr=False)
    ca_file: str | None = None
    proxy: str | None = field(default=None, repr=False)
    max_concurrency: int | None = None

    @property
    def limiter(self) -> Limiter | None:
        """What all calls to it in this process share, by its address, or the provider's name where it has none; None where it
        has neither.

        Raises:
            JudgeError: kind configuration, for a ``SPANGRADE_JUDGE_MAX_CONCURRENCY`` that is no number.
        """
        address = self.base_url or (f"//{self.provider}" if self.provider else "")
        if not address:
            return None
        return shared_limiter(address, self.api_key, self.api_key_file, most_at_once(self.max_concurrency))

    def serves(self, model: str) -> bool:
        """Whether it is the one for a model."""
        return any(fnmatchcase(model, pattern) for pattern in self.models)


@dataclass(frozen=True, slots=True)
class _Vendor:
    """``url``: of its interface; ``keys``, ``urls``: the variables of its own client; ``provider``: what it speaks."""

    url: str
    keys: tuple[str, ...] = ()
    urls: tuple[str, ...] = ()
    provider: str = OPENAI_COMPATIBLE


#: A model may be named ``vendor/model``. Addresses and variables: from each vendor's documentation, November 2026.
VENDORS: Final[Mapping[str, _Vendor]] = {
    "openai": _Vendor("https://api.openai.com/v1", ("OPENAI_API_KEY",), ("OPENAI_BASE_URL",)),
    "anthropic": _Vendor("https://api.anthropic.com", ("ANTHROPIC_API_KEY",), ("ANTHROPIC_BASE_URL",), ANTHROPIC),
    "azure": _Vendor("", ("AZURE_OPENAI_API_KEY",), ("AZURE_OPENAI_ENDPOINT",)),
    "groq": _Vendor("https://api.groq.com/openai/v1", ("GROQ_API_KEY",)),
    "together": _Vendor("https://api.together.xyz/v1", ("TOGETHER_API_KEY",)),
    "openrouter": _Vendor("https://openrouter.ai/api/v1", ("OPENROUTER_API_KEY",)),
    "mistral": _Vendor("https://api.mistral.ai/v1", ("MISTRAL_API_KEY",)),
    "deepseek": _Vendor("https://api.deepseek.com/v1", ("DEEPSEEK_API_KEY",)),
    "ollama": _Vendor("http://127.0.0.1:11434/v1", (), ("OLLAMA_HOST",)),
}
_NO_ENDPOINT: Final = (
    "no endpoint for the judge: set SPANGRADE_JUDGE_API_KEY (or {keys}) for {vendor}, or SPANGRADE_JUDGE_BASE_URL for a "
    "server of your own"
)


def from_environment(model: str) -> tuple[Endpoint, str]:
    """The endpoint that the environment names for ``model``, and the model's name there.

    ``SPANGRADE_JUDGE_BASE_URL`` is for every model. Without it, ``vendor/model`` and ``claude-*`` go to that vendor, with
    the base URL that its own client reads, and everything else to OpenAI (or ``OPENAI_BASE_URL``). Key:
    ``SPANGRADE_JUDGE_API_KEY``, else what the file ``SPANGRADE_JUDGE_API_KEY_FILE`` holds, else the vendor's own variable,
    but that one only to the vendor or to the host of its base URL: it is not sent to a host that it was not made for.
    Besides: ``SPANGRADE_JUDGE_PROVIDER``, ``SPANGRADE_JUDGE_HEADERS`` (``name=value,name=value``),
    ``SPANGRADE_JUDGE_CA_FILE``, ``SPANGRADE_JUDGE_PROXY``, ``SPANGRADE_JUDGE_MAX_CONCURRENCY`` (1 or more).

    Raises:
        JudgeError: kind configuration, where neither a base URL nor a key is set, or what is set cannot be used.
    """
    url, provider = _said("SPANGRADE_JUDGE_BASE_URL"), _said("SPANGRADE_JUDGE_PROVIDER")
    vendor, name = ("", model) if url else _vendor_of(model, provider)
    if vendor in VENDORS:
        url = _address(vendor, model)
    elif vendor:
        provider = vendor
    key, key_file = _said("SPANGRADE_JUDGE_API_KEY"), _said("SPANGRADE_JUDGE_API_KEY_FILE")
    if not key and not key_file and url:
        key = _vendor_key(url)
        if key is None and vendor in VENDORS and VENDORS[vendor].keys and _origin(url) == _origin(VENDORS[vendor].url):
            raise JudgeError("configuration", _NO_ENDPOINT.format(keys=VENDORS[vendor].keys[0], vendor=_shown(vendor)))
    endpoint = Endpoint(
        base_url=url,
        provider=provider or (VENDORS[vendor].provider if vendor in VENDORS else spoken_at(url or "")),
        api_key=key,
        api_key_file=key_file,
        headers=_headers(_said("SPANGRADE_JUDGE_HEADERS") or ""),
        ca_file=_said("SPANGRADE_JUDGE_CA_FILE"),
        proxy=_said("SPANGRADE_JUDGE_PROXY"),
        max_concurrency=most_at_once(None),
    )
    return endpoint, name


def spoken_at(url: str) -> str:
    """What an address speaks, as far as it tells: Anthropic's messages, or else chat completions."""
    try:
        parts = urlsplit(url)
    except ValueError:
        return OPENAI_COMPATIBLE
    theirs = (parts.hostname or "").endswith("anthropic.com") or parts.path.rstrip("/").endswith("/messages")
    return ANTHROPIC if theirs else OPENAI_COMPATIBLE


def _vendor_of(model: str, provider: str | None) -> tuple[str, str]:
    """The vendor, or the provider of another package, that a model's name or ``provider`` means; and the name there."""
    head, slash, rest = model.partition("/")
    if slash and rest and (head.lower() in VENDORS or head in offered()):
        return (head.lower() if head.lower() in VENDORS else head), rest
    if provider is not None:
        return provider, model
    return ("anthropic" if model.lower().startswith("claude") else "openai"), model


def offered() -> frozenset[str]:
    """The names of the providers that other packages offer."""
    return frozenset(point.name for point in entry_points(group=GROUP))


def _address(vendor: str, model: str) -> str:
    url = next((found for found in map(_said, VENDORS[vendor].urls) if found), None) or VENDORS[vendor].url
    if not url:
        raise JudgeError(
            "configuration", f"the judge's model {model!r} needs an address: set {' or '.join(VENDORS[vendor].urls)}"
        )
    if vendor != "ollama":
        return url
    url = url if "://" in url else f"http://{url}"  # its own variable is host:port
    return url if urlsplit(url).path.strip("/") else url.rstrip("/") + "/v1"


def _vendor_key(url: str) -> str | None:
    """The key that some vendor's client would send to this address."""
    for vendor in VENDORS.values():
        theirs = [vendor.url, *(found for found in map(_said, vendor.urls) if found)]
        if _origin(url) in [_origin(one) for one in theirs if one]:
            key = next((found for found in map(_said, vendor.keys) if found), None)
            if key is not None:
                return key
    return None


def _headers(text: str) -> tuple[tuple[str, str], ...]:
    found = []
    for pair in filter(None, (part.strip() for part in text.split(","))):
        name, sign, value = pair.partition("=")
        if not sign or not name.strip():
            raise JudgeError(
                "configuration", "SPANGRADE_JUDGE_HEADERS is not name=value, several of them parted by commas"
            )
        found.append((name.strip(), value.strip()))
    return tuple(found)


def _said(name: str) -> str | None:
    return os.environ.get(name, "").strip() or None


def _shown(vendor: str) -> str:
    return {"openai": "OpenAI", "deepseek": "DeepSeek", "openrouter": "OpenRouter"}.get(vendor, vendor.capitalize())


@lru_cache(maxsize=64)  # asked at each judge call about every vendor's address
def _origin(url: str) -> tuple[str, str]:
    try:
        parts = urlsplit(url)
    except ValueError:
        return ("", url)
    return (parts.scheme.lower(), parts.netloc.rpartition("@")[2].lower())
