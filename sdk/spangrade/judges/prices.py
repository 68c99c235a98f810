"""What a judge's call costs: prices given by hand, or the list that `genai-prices` keeps."""

import math
import os
import threading
from collections.abc import Mapping
from functools import lru_cache
from typing import Any, Final, Protocol

from spangrade._guard import guard
from spangrade._threads import ProcessLock, unbound
from spangrade.errors import ConfigError, JudgeError
from spangrade.model.score import Skip
from spangrade.semconv import JUDGE_CACHED, JUDGE_COST, JUDGE_COST_AT_MOST

_MILLION: Final = 1_000_000


class Price(Protocol):
    """The price of one model."""

    def cost(self, input_tokens: int, output_tokens: int) -> float | None:
        """US dollars of one call; None where nobody knows."""


class GivenPrice:
    """US dollars per million tokens, ``{"input": 0.4, "output": 1.6}``.

    Raises:
        ConfigError: other keys, or what is no price.
    """

    def __init__(self, price: Mapping[str, float]) -> None:
        if not isinstance(price, Mapping) or set(price) != {"input", "output"}:
            raise ConfigError(
                f"price {price!r} is not like {{'input': 0.4, 'output': 1.6}}, US dollars per million tokens"
            )
        for name, value in price.items():
            if isinstance(value, bool) or not isinstance(value, (int, float)) or not (0 <= value < math.inf):
                raise ConfigError(f"price {name} {value!r} is not a number of US dollars per million tokens, 0 or more")
        self._input, self._output = float(price["input"]), float(price["output"])

    def __repr__(self) -> str:
        return f"GivenPrice(input={self._input:g}, output={self._output:g})"

    def cost(self, input_tokens: int, output_tokens: int) -> float:
        """See `Price`."""
        return (input_tokens * self._input + output_tokens * self._output) / _MILLION


class ListPrice:
    """The price of a model by its name in the installed version of `genai-prices` (extra ``cost``); nothing is fetched.
    ``vendor/model`` is asked about as that vendor's."""

    def __init__(self, model: str) -> None:
        self._model = model

    def __repr__(self) -> str:
        return f"ListPrice({self._model!r})"

    def cost(self, input_tokens: int, output_tokens: int) -> float | None:
        """See `Price`; None without the extra, and for a model that the list does not have."""
        prices = None if self._model in _unknown else _list()
        if prices is None:
            return None
        vendor, slash, rest = self._model.partition("/")
        usage = prices.Usage(input_tokens=input_tokens, output_tokens=output_tokens)
        with guard("judge.price"):  # a fault in the list costs no verdict
            for model, whose in ((self._model, None), *([(rest, vendor)] if slash else [])):
                try:
                    return float(prices.calc_price(usage, model, provider_id=whose).total_price)
                except (LookupError, ValueError):
                    continue
            _unknown[self._model] = None  # to look through the list takes longer than the rest of a grading
            for oldest in list(_unknown)[:-_MOST_UNKNOWN]:
                _unknown.pop(oldest, None)
        return None


_MOST_UNKNOWN: Final = 256
_unknown: dict[str, None] = {}
_loading = ProcessLock()
_begun: list[bool] = []


@lru_cache(maxsize=1)
def _list() -> Any:
    with _loading:
        try:
            import genai_prices
        except ImportError:
            return None
        return genai_prices


def load_soon() -> None:
    """Begin to load the installed list, on a thread of its own: that takes half a second, in which the reply comes whose
    price is asked for. It is nobody's time then, and no place at an endpoint is held meanwhile."""
    if _begun:
        return
    _begun.append(True)
    if hasattr(os, "register_at_fork"):
        # A fork in the middle of an import would leave its child with a module that is never done: it waits for that.
        os.register_at_fork(before=_loading.__enter__, after_in_parent=_loading.__exit__)
    try:
        unbound(threading.Thread(target=_list, name="spangrade-prices", daemon=True).start)
    except RuntimeError:  # the interpreter is closing
        pass


def unpriced(model: str) -> ConfigError:
    """Why a budget in money cannot be kept."""
    hint = "" if _list() is not None else ' (the price list is in the extra: pip install "spangrade[cost]")'
    return ConfigError(
        f"no price is known for the judge's model {model!r}, so a budget in US dollars cannot be kept; give it, as in "
        f"sg.live(judge, price={{'input': 0.4, 'output': 1.6}}) per million tokens{hint}"
    )


#: Kinds of errors that come before any work, where a client does not say more.
NOBODY_WORKED: Final = frozenset({"configuration", "connection", "circuit_open", "rate_limited", "http_status"})


def cost_of(end: object) -> float | None:
    """What a judge's verdict or error says that it did cost (or may have cost), in US dollars; None where it does not: then it
    may be the most."""
    details = getattr(end, "details", None) or {}
    for name in (JUDGE_COST, JUDGE_COST_AT_MOST):
        if name in details:
            return float(details[name])
    unasked = isinstance(end, JudgeError) and not details and end.kind in NOBODY_WORKED and not end.unanswered
    return 0.0 if details.get(JUDGE_CACHED) or unasked or isinstance(end, Skip) else None
