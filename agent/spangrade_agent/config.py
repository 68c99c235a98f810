"""The agent's side of the configuration file: what `spangrade.config` accepts and leaves to the agent, checked."""

import os
import re
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Final, Literal

from pydantic import BeforeValidator, Field

from spangrade._units import Bytes, Seconds
from spangrade.config import FileConfig, Strict, load
from spangrade.errors import ConfigError
from spangrade.model.policy import DEFAULT_JUDGE_RATE

_LISTEN: Final = re.compile(r"^(?P<host>\[[0-9a-fA-F:.]+\]|[^:\s]+):(?P<port>\d{1,5})$")


def check_listen(value: str) -> str:
    """``host:port``.

    Raises:
        ValueError: it is not; the message says what would be right.
    """
    found = _LISTEN.match(value)
    if found is None or int(found.group("port")) > 65_535:
        raise ValueError(f"{value!r} is not host:port, such as 127.0.0.1:4317")
    return value


Listen = Annotated[str, BeforeValidator(lambda v: check_listen(v) if isinstance(v, str) else v)]


class Tls(Strict):
    """Paths of a PEM certificate and its key."""

    cert: str
    key: str


class Receiver(Strict):
    """One OTLP listener."""

    listen: Listen
    tls: Tls | None = None


class Receivers(Strict):
    """The OTLP listeners; one that is not named does not listen."""

    grpc: Receiver | None = None
    http: Receiver | None = None


class Admin(Strict):
    """Health, readiness, own instruments; no content."""

    listen: Listen = "127.0.0.1:8888"


class Page(Strict):
    """Recent samples, with content; a token is needed when it is not on the loopback."""

    listen: Listen = "127.0.0.1:8080"
    token: str | None = None
    hosts: list[str] = Field(default_factory=list)


class Store(Strict):
    """The recent samples behind the page. ``content``: redacted (by ``redact``, where given), keep, or none."""

    max_samples: int = Field(default=10_000, gt=0)
    max_bytes: Bytes = 64 * 2**20
    max_age: Seconds = 86_400.0
    content: Literal["redacted", "keep", "none"] = "redacted"


class Registry(Strict):
    """Judges that applications register, over the page's listener; their models run at ``judge_endpoints`` only.

    ``path``: a SQLite file. ``allow_live``: a judge that is registered as live grades production traffic at once; otherwise it
    waits until somebody activates it. ``allow_environment``: models that no ``judge_endpoints`` serves may run where
    ``SPANGRADE_JUDGE_*`` of the agent's own environment say. ``rate``: of a live judge whose registration names none;
    ``max_rate``: the most that one may name. ``max_per_minute``, ``budget``: ceilings of each registered judge; all previews
    together have those of ``budget`` once more.
    """

    path: str = Field(min_length=1)
    allow_live: bool = False
    allow_environment: bool = False
    max_evaluators: int = Field(default=100, gt=0, le=1_000)
    rate: float | None = Field(default=None, gt=0, le=1)
    max_rate: float = Field(default=DEFAULT_JUDGE_RATE, gt=0, le=1)
    max_per_minute: float | None = Field(default=None, gt=0)
    budget: dict[str, float] | None = None

    @property
    def default_rate(self) -> float:
        """``rate``, which is at most ``max_rate``."""
        return min(DEFAULT_JUDGE_RATE if self.rate is None else self.rate, self.max_rate)


class SpoolSettings(Strict):
    """Where what was acknowledged is durable until it has been handed on.

    ``path``: a folder, of this agent alone. ``max_bytes``: at that size new requests are refused, to come again. ``durability``:
    ``fsync`` (it survives the loss of power) or ``process`` (it survives the end of the process, however it ends).
    """

    path: str = Field(min_length=1)
    max_bytes: Bytes = 2 * 2**30
    durability: Literal["fsync", "process"] = "fsync"


class AgentConfig(FileConfig):
    """The file as the agent reads it. ``admin``, ``page`` and ``store`` are switched off by ``false``."""

    mode: Literal["relay", "tap"] = "relay"
    receivers: Receivers = Receivers(grpc=Receiver(listen="127.0.0.1:4317"), http=Receiver(listen="127.0.0.1:4318"))
    admin: Admin | Literal[False] = Admin()
    page: Page | Literal[False] = Page()
    store: Store | Literal[False] = Store()
    registry: Registry | Literal[False] = False

    spool: SpoolSettings | None = None


#: Without a file: the built-ins that need no model, but for json_valid, which fails every answer that is plain text.
DEFAULT_METRICS: Final = ("overlap", "length_words", "no_refusal")


def read(path: str | os.PathLike[str] | None) -> AgentConfig:
    """The checked file, or the defaults without one.

    Raises:
        ConfigError: the file cannot be read or holds something wrong; the message names the key, the value, and what would
            be right.
    """
    return load(path, AgentConfig) if path is not None else AgentConfig()


def import_paths(config_path: str | os.PathLike[str] | None) -> Callable[[], None]:
    """Make metrics beside the configuration file importable; returns what undoes it."""
    import sys

    folder = str(Path(config_path).resolve().parent) if config_path is not None else str(Path.cwd())
    if folder in sys.path:
        return lambda: None
    sys.path.append(folder)  # last: a file there must not stand in for a module of somebody else's
    return lambda: sys.path.remove(folder) if folder in sys.path else None


__all__ = ["AgentConfig", "ConfigError", "import_paths", "read"]
