"""A small ASGI server on a thread of its own: OTLP/HTTP, the admin listener and the page are each served by one."""

import asyncio
import logging
import threading
from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any, Final

import uvicorn

from spangrade.errors import ConfigError
from spangrade_agent.receivers.listen import ServerTls, bind

Scope = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[MutableMapping[str, Any]]]
Send = Callable[[MutableMapping[str, Any]], Awaitable[None]]
AsgiApp = Callable[[Scope, Receive, Send], Awaitable[None]]

# OTLP exporters send every five seconds or so: a connection that the server gives up after five (uvicorn's default)
# is closed just as the next batch is written to it.
KEEP_ALIVE_S: Final = 75
_START_S: Final = 30.0


class _Server(uvicorn.Server):
    """uvicorn's, which also says when it listens, or that it never will."""

    def __init__(self, config: uvicorn.Config) -> None:
        super().__init__(config)
        self.settled = threading.Event()
        self.fault: BaseException | None = None

    async def startup(self, sockets: Any = None) -> None:
        await super().startup(sockets=sockets)
        self.settled.set()


class HttpServer:
    """Serves ``app`` at ``listen`` until `stop`. Websockets, lifespan events, signal handlers and access log are off.

    Args:
        app: a bare ASGI application; called on this server's own event loop.
        listen: ``host:port``; port 0 takes any free one.
        name: what it is for, in messages and as the thread's name.
        tls: certificate and key; plain HTTP without.
    """

    def __init__(self, app: AsgiApp, listen: str, name: str, tls: ServerTls | tuple[str, str] | None = None) -> None:
        self._app = app
        self._listen = listen
        self._name = name
        self._tls = ServerTls.of(tls)
        self._server: _Server | None = None
        self._thread: threading.Thread | None = None

    def start(self) -> int:
        """Bind, start the thread, and return the port once connections are answered.

        Raises:
            ConfigError: the address is in use or no address of this machine, or the TLS files cannot be used.
        """
        if self._server is not None:
            raise RuntimeError(f"{self._name} was started before")
        config = uvicorn.Config(
            self._app,
            loop="auto",  # uvloop where it is installed
            http="auto",  # httptools where it is installed
            ws="none",
            lifespan="off",
            log_config=None,
            access_log=False,
            proxy_headers=False,  # nothing here trusts a forwarded address
            server_header=False,
            timeout_keep_alive=KEEP_ALIVE_S,
        )
        # A port scanner's requests are not worth a line each.
        logging.getLogger("uvicorn.error").setLevel(logging.ERROR)
        context = self._tls.context() if self._tls else None
        config.load()
        config.ssl = context
        sockets = bind(self._listen, self._name)
        port: int = sockets[0].getsockname()[1]
        server = self._server = _Server(config)
        self._thread = threading.Thread(
            target=self._run, args=(server, sockets), name=f"spangrade-{self._name}", daemon=True
        )
        self._thread.start()
        if not server.settled.wait(_START_S) or server.fault is not None:
            self.stop(0)
            raise ConfigError(f"{self._name} does not start on {self._listen!r}: {server.fault!r}")
        return port

    def _run(self, server: _Server, sockets: list[Any]) -> None:
        try:
            server.run(sockets=sockets)
        except (Exception, SystemExit, asyncio.CancelledError) as fault:  # noqa: BLE001 - told to start(), or after stop()
            server.fault = fault
        finally:
            for sock in sockets:
                sock.close()
            server.settled.set()

    def stop(self, grace_s: float = 5.0) -> None:
        """Take no more connections, give open requests ``grace_s`` seconds, then end them. Again, or unstarted: nothing."""
        server, thread = self._server, self._thread
        if server is None or thread is None:
            return
        server.config.timeout_graceful_shutdown = max(0, grace_s)  # type: ignore[assignment]  # wait_for takes a float
        server.should_exit = True
        thread.join(grace_s + 2.0)
        server.force_exit = True
        self._thread = None
