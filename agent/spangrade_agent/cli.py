"""``spangrade agent run`` and ``spangrade agent check-config``."""

import argparse
import logging
import signal
import sys
from collections.abc import Sequence
from queue import Empty, SimpleQueue
from typing import TYPE_CHECKING, Any, Final

from spangrade.errors import ConfigError
from spangrade_agent.config import AgentConfig, check_listen, import_paths, read

if TYPE_CHECKING:
    from spangrade_agent.app import Agent

EXIT_CONFIG = 2
_EXTRA: Final = frozenset({"uvicorn", "httptools", "uvloop", "urllib3"})


def main(argv: Sequence[str] | None = None) -> int:
    """The agent's command line; returns the exit code (2: the configuration cannot work)."""
    parser = argparse.ArgumentParser(prog="spangrade agent", description="OTLP in, scores added, OTLP out.")
    commands = parser.add_subparsers(dest="command", required=True)
    run = commands.add_parser("run", help="run the agent")
    run.add_argument("--config", metavar="FILE", help="YAML, see the README")
    run.add_argument("--grpc", metavar="HOST:PORT", help="OTLP/gRPC listener (default 127.0.0.1:4317)")
    run.add_argument("--http", metavar="HOST:PORT", help="OTLP/HTTP listener (default 127.0.0.1:4318)")
    run.add_argument("--admin", metavar="HOST:PORT", help="health and metrics (default 127.0.0.1:8888)")
    run.add_argument("--page", metavar="HOST:PORT", help="recent samples (default 127.0.0.1:8080)")
    run.add_argument("--forward", metavar="URL", help="where spans and scores go, such as http://localhost:4318")
    run.add_argument(
        "--metric",
        metavar="MODULE:NAME",
        action="append",
        default=[],
        help="a metric, or a built-in's name; repeatable",
    )
    check = commands.add_parser("check-config", help="check a configuration file and say what it means")
    check.add_argument("file", metavar="FILE")
    options = parser.parse_args(argv)
    path = options.config if options.command == "run" else options.file
    undo = import_paths(path)
    try:
        config = read(path)
        if options.command == "check-config":
            return _check(config)
        return _run(_with_flags(config, options))
    except ConfigError as fault:
        print(f"spangrade agent: {fault}", file=sys.stderr)
        return EXIT_CONFIG
    finally:
        undo()


def _with_flags(config: AgentConfig, options: argparse.Namespace) -> AgentConfig:
    """A flag wins over the file."""
    changed: dict[str, Any] = {}
    receivers = config.receivers.model_dump()
    for name in ("grpc", "http"):
        if (listen := getattr(options, name)) is not None:
            receivers[name] = {**(receivers[name] or {}), "listen": _listen(f"--{name}", listen)}
    changed["receivers"] = receivers
    for name in ("admin", "page"):
        if (listen := getattr(options, name)) is not None:
            given = getattr(config, name)
            kept = given.model_dump() if given is not False else {}
            changed[name] = {**kept, "listen": _listen(f"--{name}", listen)}
    if options.forward is not None:
        changed["endpoint"], changed["destinations"] = options.forward, []
    if options.metric:
        changed["metrics"] = list(options.metric)
    return AgentConfig.model_validate({**config.model_dump(), **changed})


def _listen(flag: str, value: str) -> str:
    try:
        return check_listen(value)
    except ValueError as fault:
        raise ConfigError(f"{flag} {fault}") from None


def _agent() -> "type[Agent]":
    """What runs, which needs libraries that the SDK alone has not."""
    try:
        from spangrade_agent.app import Agent
    except ModuleNotFoundError as fault:
        if (fault.name or "").partition(".")[0] not in _EXTRA:
            raise
        raise ConfigError(
            f'{fault.name} is not installed; the agent needs its extra: pip install "spangrade[agent]"'
        ) from None
    return Agent


def _check(config: AgentConfig) -> int:
    agent = _agent()(config, dry=True)  # imports metrics, makes judges: what cannot work says so
    agent.stop(0.0)
    print(f"mode {config.mode}; evaluators: {', '.join(p.evaluator.info.name for p in agent.placed)}")
    return 0


def _run(config: AgentConfig) -> int:
    make = _agent()
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(levelname)s %(message)s", stream=sys.stderr)
    for noisy in ("uvicorn", "urllib3", "httpx", "httpcore"):
        logging.getLogger(noisy).setLevel(logging.WARNING)
    agent = make(config)
    # Not an Event: its lock may be held by this very thread when the signal comes; a SimpleQueue's put is reentrant.
    stopping: SimpleQueue[None] = SimpleQueue()
    asked: list[int] = []

    def on_signal(number: int, _frame: Any) -> None:
        if asked:  # a second signal leaves at once
            raise SystemExit(1)
        asked.append(number)
        stopping.put(None)

    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, on_signal)
    found = agent.start()
    lines = [
        ("OTLP/gRPC", found.grpc),
        ("OTLP/HTTP", found.http and f"http://{found.http}"),
        ("page", found.page and f"http://{found.page}/"),
        ("health", found.admin and f"http://{found.admin}/healthz"),
    ]
    for what, where in lines:
        if where:
            print(f"{what:10} {where}", flush=True)
    while not _wanted(stopping):
        if agent.store is not None:
            agent.store.expire()  # without traffic nobody else lets go of what is too old
    return 0 if agent.stop() else 1


def _wanted(stopping: "SimpleQueue[None]") -> bool:
    """Wait a minute for the signal to stop."""
    try:
        stopping.get(timeout=60)
    except Empty:
        return False
    return True
