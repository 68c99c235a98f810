"""Money for what a judge did not expect to need, as judges see it: a try that gave nothing, may have been billed, and is made
once more."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Final

#: Whether so many US dollars more may be spent; they are held then.
Allowance = Callable[[float], bool]
_given: Final[ContextVar[Allowance | None]] = ContextVar("spangrade_allowance", default=None)


@contextmanager
def allowing(allowance: Allowance) -> Iterator[None]:
    """What runs inside, on this thread, asks ``allowance`` before it spends more than was held for it."""
    token = _given.set(allowance)
    try:
        yield
    finally:
        _given.reset(token)


def may_spend(usd: Callable[[], float | None]) -> bool:
    """Whether so much more may be spent: always, where nobody holds money for this; never what nobody knows the price of."""
    allowance = _given.get()
    if allowance is None:
        return True
    amount = usd()
    return amount is not None and allowance(amount)
