"""One call of a metric's function: from checked arguments to a `MetricResult`, whatever the function does."""

import asyncio
import inspect
from collections.abc import Callable
from typing import Any, Final

from spangrade._text import bounded
from spangrade.metrics import functional_loop
from spangrade.metrics.functional_inputs import Arguments
from spangrade.metrics.functional_values import AllowedValues, NotAllowed, shown
from spangrade.model.result import MetricResult

_MAX_REASON: Final = 2_000
NOT_AWAITABLE: Final = frozenset((str, float, int, bool, list, MetricResult))  # to ask takes longer than to read them


class Call:
    """Calls ``fn``. It has no state of its own: any number of threads and tasks may use it at once."""

    def __init__(self, fn: Callable[..., Any], name: str, is_async: bool, allowed: AllowedValues) -> None:
        self._fn = fn
        self._name = name
        self._is_async = is_async
        self._allowed = allowed

    def scored(self, arguments: Arguments) -> MetricResult:
        """The result, here and now; of a coroutine function by a loop of ours."""
        if self._is_async:
            return functional_loop.run(lambda: self.awaited(arguments))
        args, kwargs = arguments
        try:
            returned: Any = self._fn(*args, **kwargs)
        except Exception as fault:  # noqa: BLE001 - whatever the function raises is its result
            return self._failed(fault)
        if type(returned) not in NOT_AWAITABLE and inspect.isawaitable(returned):  # where a plain function hides one
            return functional_loop.run(lambda: self._finished(returned))
        return self.read(returned)[0]

    async def awaited(self, arguments: Arguments) -> MetricResult:
        """The result, awaited."""
        args, kwargs = arguments
        try:
            returned: Any = self._fn(*args, **kwargs)
        except Exception as fault:  # noqa: BLE001 - as above
            return self._failed(fault)
        return await self._finished(returned)

    async def _finished(self, returned: Any) -> MetricResult:
        try:
            while inspect.isawaitable(returned):  # a coroutine may return another
                returned = await returned
        except asyncio.CancelledError as fault:
            task = asyncio.current_task()
            if task is None or task.cancelling():
                raise
            return self._failed(fault)  # the function's own: nobody has cancelled us
        except Exception as fault:  # noqa: BLE001 - as above
            return self._failed(fault)
        return self.read(returned)[0]

    def _failed(self, fault: BaseException) -> MetricResult:
        try:
            text = str(fault)
        except Exception:  # noqa: BLE001 - an exception's __str__ may raise, too
            text = ""
        kind = type(fault).__name__
        return MetricResult(
            None, bounded(f"Error executing metric {self._name}: {kind}: {text}".rstrip(": "), _MAX_REASON)
        )

    def read(self, returned: Any) -> tuple[MetricResult, Any]:
        """What the function returned as a result, and its value as the allowed values have it."""
        result = returned if isinstance(returned, MetricResult) else None
        value = returned if result is None else result.value
        if result is not None and value is None and result.reason:
            return result, None
        try:
            taken = self._allowed.take(value)
        except NotAllowed as fault:
            why = f" (its reason: {result.reason})" if result is not None and result.reason else ""
            said = f"{self._name} returned {shown(value)}, {fault}{why}"
            return MetricResult(None, bounded(said, _MAX_REASON)), None
        return (MetricResult(taken) if result is None else result), taken
