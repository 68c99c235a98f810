"""What the calls of one grading did cost, or may have cost at most."""

from collections.abc import Mapping
from typing import Any, Final

from spangrade import semconv
from spangrade.errors import JudgeError
from spangrade.judges.prices import NOBODY_WORKED, Price
from spangrade.judges.prompt import REPAIR, Prompt
from spangrade.judges.providers import JudgeReply
from spangrade.judges.scale import Scale

MAX_TOKENS: Final = 1_024
MORE_TOKENS: Final = 4_096  # asked for once, after a reply that reached `MAX_TOKENS`
AROUND: Final = 512  # tokens that a provider puts around our texts, at most


class Spending:
    """``price``: None where nobody wants to know. What was sent and gave nothing may have been billed: it counts with the
    most that it can have cost. A text has no more tokens than bytes, a reply no more than it is given room for."""

    def __init__(self, prompt: Prompt, scale: Scale, price: Price | None) -> None:
        self._prompt, self._scale, self._price = prompt, scale, price
        self._size: int | None = None
        self._known: float | None = 0.0  # None: the price is unknown
        self._exact = True
        self._calls = 0

    def most(self, room: int) -> float | None:
        """US dollars that one call with room for so many tokens can cost at most; None when the price is unknown."""
        if self._price is None:
            return None
        if self._size is None:
            prompt, scale = self._prompt, self._scale
            texts = f"{prompt.system}{prompt.user}{scale.schema}{REPAIR}{scale.form}"
            self._size = len(texts.encode()) + AROUND
        return self._price.cost(self._size, room)

    def replied(self, reply: JudgeReply, room: int) -> None:
        """A call came back."""
        self._in_vain(reply.unanswered, room)
        if reply.input_tokens is None or reply.output_tokens is None:
            self._in_vain(1, room)
        elif self._price is not None:
            self._add(self._price.cost(reply.input_tokens, reply.output_tokens))

    def failed(self, fault: JudgeError, room: int) -> None:
        """A call did not."""
        tries = fault.unanswered
        self._in_vain((fault.kind not in NOBODY_WORKED) if tries is None else tries, room)

    def details(self) -> Mapping[str, Any]:
        """As wire attributes: ``spangrade.judge.cost``, or ``.cost_at_most``; empty where nothing was spent, or nobody knows."""
        if self._price is None or self._known is None or not self._calls:
            return {}
        return {semconv.JUDGE_COST if self._exact else semconv.JUDGE_COST_AT_MOST: self._known}

    def _in_vain(self, tries: int, room: int) -> None:
        if tries and self._price is not None:
            self._exact = False
            most = self.most(room)
            self._add(None if most is None else tries * most)

    def _add(self, usd: float | None) -> None:
        self._calls += 1
        self._known = None if usd is None or self._known is None else self._known + usd


def most(prompt: Prompt, scale: Scale, price: Price) -> float | None:
    """US dollars that one grading can cost at most, each of its two calls made once; None when the price is unknown."""
    spending = Spending(prompt, scale, price)
    costs = [spending.most(room) for room in (MAX_TOKENS, MORE_TOKENS)]
    return None if None in costs else sum(cost for cost in costs if cost is not None)
