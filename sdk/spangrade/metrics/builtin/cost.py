"""`cost`: what the call's model calls cost, in US dollars.

What it measures: reported tokens times list prices, cached input and cache writes at their own price, each model of the call at
its own. Prices are those of the package ``genai-prices`` (extra ``cost``) in the version that is installed; nothing is fetched.
``prices=`` gives those of your own models and contracts.

What it does not: the bill. Discounts, batch and priority tiers, tools billed by call, embeddings and taxes are not in it, nor is what a
judge costs (``spangrade.judge.cost``). Prices are today's, whenever the call was made. Where tokens, model or price are unknown it is
skipped with the reason, never 0.

The provider is the span's (``gen_ai.provider.name``, ``llm.provider``); without one the package looks for the model at its own maker.

A measurement: neither pass nor fail. ``threshold=`` (US dollars) makes it pass what costs at most that. Source: pydantic/genai-prices.
"""

from collections.abc import Mapping
from decimal import Decimal
from typing import Any, Final

from spangrade.errors import ConfigError
from spangrade.metrics.builtin.options import extra, measurement
from spangrade.metrics.builtin.tokens import token_count
from spangrade.metrics.local import LocalMetric
from spangrade.model.sample import Sample
from spangrade.model.score import Score, Skip

#: The conventions' words for providers that the price list calls otherwise.
_PROVIDERS: Final = {
    "azure.ai.openai": "azure",
    "az.ai.openai": "azure",
    "azure.ai.inference": "azure",
    "az.ai.inference": "azure",
    "aws.bedrock": "aws",
    "bedrock": "aws",
    "gcp.gemini": "google",
    "gcp.gen_ai": "google",
    "gcp.vertex_ai": "google",
    "vertexai": "google",
    "vertex_ai": "google",
    "gemini": "google",
    "mistral_ai": "mistral",
    "mistralai": "mistral",
    "x_ai": "x-ai",
    "xai": "x-ai",
}
_PRICED: Final = ("input_tokens", "output_tokens", "cache_read_tokens", "cache_write_tokens")
_MILLION: Final = 1_000_000


def cost(
    *,
    threshold: float | None = None,
    provider: str | None = None,
    prices: Mapping[str, Mapping[str, float]] | None = None,
    name: str = "cost",
    target: str = "root",
) -> LocalMetric:
    """US dollars of the call's model calls; with ``threshold`` it passes at most so many.

    Args:
        threshold: US dollars.
        provider: whose prices to take, whatever the span says (``"openai"``).
        prices: US dollars per million tokens of your own models, before the list's:
            ``{"my-model": {"input": 0.5, "output": 1.5, "cache_read": 0.05, "cache_write": 0.6}}``; the last two are the input's
            price where they are left out.
        name: of the score.
        target: what is scored, as in `LocalMetric`.

    Raises:
        ConfigError: prices that are no numbers.
    """
    own = _own_prices(f"metric {name!r}", prices or {})

    def dollars(sample: Sample) -> Score:
        total, why = Decimal(0), []
        for call in _calls(sample.context):
            price = _price(call, own, provider)
            total += price
            why.append(f"{call['model']} {_dollars(price)}")
        return Score(float(total), explanation="; ".join(why[:10]))

    config = {"provider": provider, "prices": {model: {k: str(v) for k, v in p.items()} for model, p in own.items()}}
    return measurement(
        dollars, name=name, threshold=threshold, target=target, config=config if provider or own else None, timeout=30.0
    )


def _dollars(price: Decimal) -> str:
    return f"${price:.6f}".rstrip("0").rstrip(".") if price else "$0"


def _own_prices(what: str, given: Mapping[str, Mapping[str, float]]) -> dict[str, dict[str, Decimal]]:
    found: dict[str, dict[str, Decimal]] = {}
    for model, held in given.items():
        if not isinstance(held, Mapping) or not {"input", "output"} <= held.keys():
            raise ConfigError(
                f"{what}: prices of {model!r} need 'input' and 'output', in US dollars per million tokens"
            )
        unknown = held.keys() - {"input", "output", "cache_read", "cache_write"}
        if unknown:
            raise ConfigError(f"{what}: prices of {model!r} know no {sorted(map(str, unknown))[0]!r}")
        for kind, price in held.items():
            if isinstance(price, bool) or not isinstance(price, (int, float)) or not 0 <= price < float("inf"):
                raise ConfigError(
                    f"{what}: the {kind} price {price!r} of {model!r} is not a number of US dollars, 0 or more"
                )
        found[model] = {kind: Decimal(str(price)) for kind, price in held.items()}
    return found


def _calls(context: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Model, provider and counts of what was called."""
    several = context.get("usage_by_model")
    held = several if isinstance(several, list) and several else [_single(context)]
    calls = []
    for entry in held:
        if not isinstance(entry, Mapping) or not isinstance(entry.get("model"), str):
            raise Skip("the model is unknown")
        counts = {key: token_count(entry, key) for key in _PRICED}
        if counts["input_tokens"] is None or counts["output_tokens"] is None:
            raise Skip(f"tokens of {entry['model'][:100]!r} are unknown")
        calls.append({"model": entry["model"], "provider": entry.get("provider"), **counts})
    return calls


def _single(context: Mapping[str, Any]) -> dict[str, Any]:
    usage = context.get("usage")
    counts = usage if isinstance(usage, Mapping) else {}
    return {**counts, "model": context.get("model"), "provider": context.get("provider")}


def _price(call: Mapping[str, Any], own: Mapping[str, Mapping[str, Decimal]], provider: str | None) -> Decimal:
    mine = own.get(call["model"])
    if mine is not None:
        read, written = call["cache_read_tokens"] or 0, call["cache_write_tokens"] or 0
        plain = max(call["input_tokens"] - read - written, 0)
        spent: Decimal = (
            plain * mine["input"]
            + read * mine.get("cache_read", mine["input"])
            + written * mine.get("cache_write", mine["input"])
            + call["output_tokens"] * mine["output"]
        )
        return spent / _MILLION
    given = provider or call["provider"]
    prices = extra("genai_prices", "cost")
    counts = {key: call[key] for key in _PRICED if call[key] is not None}
    whose = _PROVIDERS.get(given.lower(), given) if isinstance(given, str) else None
    try:
        found = prices.calc_price(prices.Usage(**counts), call["model"], provider_id=whose)
    except LookupError:
        at = f" of provider {given[:60]!r}" if isinstance(given, str) else ""
        raise Skip(f"no price is known for model {call['model'][:100]!r}{at}; give it by cost(prices=...)") from None
    except ValueError as fault:  # counts that cannot be: more cached than read
        raise Skip(f"the token counts do not add up: {str(fault)[:200]}") from None
    return Decimal(str(found.total_price))
