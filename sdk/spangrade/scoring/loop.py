"""One event loop of ours for async metrics, on one thread, started when the first one runs."""

import asyncio
import threading
from collections.abc import Callable, Coroutine
from typing import Any

from spangrade import _guard, _suppress


class LoopThread:
    """Runs coroutines with a time limit; all of them share the loop, so async clients live as long as it does."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._loop: asyncio.AbstractEventLoop | None = None

    def ensure(self) -> None:
        """Start the loop's thread, if it does not run yet."""
        self._running()

    def run(
        self,
        coroutine: Coroutine[Any, Any, Any],
        timeout_s: float,
        done: Callable[[Any, BaseException | None], None],
    ) -> bool:
        """Start ``coroutine``; ``done(result, fault)`` is called on the loop's thread (TimeoutError past the limit).

        Returns False, with the coroutine closed, when no thread can be started any more.
        """
        loop = self._running()
        if loop is None:
            coroutine.close()
            return False
        try:
            asyncio.run_coroutine_threadsafe(self._watch(coroutine, timeout_s, done), loop)
        except RuntimeError:
            coroutine.close()
            return False
        return True

    @staticmethod
    async def _watch(
        coroutine: Coroutine[Any, Any, Any], timeout_s: float, done: Callable[[Any, BaseException | None], None]
    ) -> None:
        result, fault = None, None
        try:
            result = await asyncio.wait_for(coroutine, timeout_s)
        except BaseException as raised:  # noqa: BLE001 - a metric's sys.exit() is that metric's error
            fault = raised
        with _guard.guard("loop.done"):
            done(result, fault)

    def _running(self) -> asyncio.AbstractEventLoop | None:
        with self._lock:
            if self._loop is not None:
                return self._loop
            loop = asyncio.new_event_loop()
            ready = threading.Event()

            def serve() -> None:
                with _suppress.evaluator_scope():
                    asyncio.set_event_loop(loop)
                    loop.call_soon(ready.set)
                    loop.run_forever()
                    loop.close()

            try:
                threading.Thread(target=serve, name="spangrade-loop", daemon=True).start()
            except RuntimeError:
                loop.close()
                return None
            ready.wait()
            self._loop = loop
            return loop

    def stop(self) -> None:
        """End the loop's thread; what still runs is cancelled by nobody and simply never finishes."""
        with self._lock:
            loop, self._loop = self._loop, None
        if loop is not None:
            loop.call_soon_threadsafe(loop.stop)
