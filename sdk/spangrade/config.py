"""The configuration file: one YAML for the SDK and the agent (DESIGN section 5).

``${env:NAME}`` stands for an environment variable in any text; ``${env:NAME:-default}`` gives one where it is not set.
Keys are the names of `spangrade.configure`'s parameters; keys that only the agent reads are accepted here too. An
unknown key, a wrong type or an unset variable is a `ConfigError` that names the key and what would be right.
"""

import os
import re
from pathlib import Path
from typing import Annotated, Any, Final, Literal, TypeVar

import yaml
from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, ValidationError

from spangrade.errors import ConfigError

_ENV: Final = re.compile(r"\$\{env:([A-Za-z_][A-Za-z0-9_]*)(?::-([^}]*))?\}")
FORMAT_VERSION: Final = 1


class Strict(BaseModel):
    """Unknown keys are errors; values do not change."""

    model_config = ConfigDict(extra="forbid", frozen=True)


class MetricEntry(Strict):
    """``{use: overlap}`` or ``{use: "package.module:name"}``; ``match`` (resource attributes) is read by the agent."""

    use: str
    match: dict[str, str] = Field(default_factory=dict)


class LiveEntry(Strict):
    """A judge's live policy; see `spangrade.live`."""

    rate: float | None = None
    when: str | list[str] | None = None
    max_per_minute: float | None = None
    budget: dict[str, float] | None = None
    target: str = "root"


class JudgeEntry(Strict):
    """The keys are `LlmJudge`'s parameters; ``live`` is true, or a policy; ``timeout`` in seconds, retries included."""

    name: str
    criteria: str
    scale: str = "1-5"
    levels: dict[int, str] | None = None
    fields: list[str] | None = None
    examples: list[dict[str, Any]] = Field(default_factory=list)
    threshold: float = 0.5
    live: bool | LiveEntry = False
    model: str | None = None
    temperature: float | None = None
    timeout: float | None = Field(default=None, gt=0)
    match: dict[str, str] = Field(default_factory=dict)


class DestinationEntry(Strict):
    """Where spans go. The SDK knows the preset ``otlp``."""

    preset: Literal["otlp"] = "otlp"
    endpoint: str


class RedactEntry(Strict):
    """Regular expressions whose matches are replaced."""

    patterns: list[str]
    replacement: str = "[redacted]"


def _as_metric(value: Any) -> Any:
    return {"use": value} if isinstance(value, str) else value


class FileConfig(Strict):
    """The whole file, as the SDK reads it."""

    version: Literal[1] = 1
    service_name: str | None = None
    endpoint: str | None = None
    metrics: list[Annotated[MetricEntry, BeforeValidator(_as_metric)]] = Field(default_factory=list)
    judges: list[JudgeEntry] = Field(default_factory=list)
    destinations: list[DestinationEntry] = Field(default_factory=list)
    take_over: bool = False
    score: Literal["here", "agent"] = "here"
    hold: float | None = None
    redact: RedactEntry | None = None
    export_content: bool = True
    export_explanations: bool = True
    instrument: list[str] = Field(default_factory=list)
    # What only the agent reads; checked there.
    mode: Any = None
    receivers: Any = None
    admin: Any = None
    page: Any = None
    spool: Any = None
    store: Any = None
    judge_endpoints: Any = None


Config = TypeVar("Config", bound=FileConfig)


def load(path: str | os.PathLike[str], shape: type[Config]) -> Config:
    """Read and check a configuration file of the SDK's or the agent's ``shape``.

    Raises:
        ConfigError: the file cannot be read, is no YAML mapping, or has a key or value that is wrong.
    """
    file = Path(path)
    try:
        text = file.read_text(encoding="utf-8")
    except OSError as fault:
        raise ConfigError(f"configuration file {str(file)!r} cannot be read: {fault.strerror or fault}") from fault
    try:
        raw = yaml.safe_load(text)
    except yaml.YAMLError as fault:
        raise ConfigError(f"configuration file {str(file)!r} is not YAML: {fault}") from fault
    if raw is None:
        raw = {}
    if not isinstance(raw, dict):
        raise ConfigError(f"configuration file {str(file)!r} must hold keys and values, not a {type(raw).__name__}")
    try:
        return shape.model_validate(_substitute(raw, ""))
    except ValidationError as fault:
        raise ConfigError(_explain(str(file), fault)) from None


def _substitute(value: Any, where: str) -> Any:
    if isinstance(value, dict):
        return {key: _substitute(item, f"{where}.{key}" if where else str(key)) for key, item in value.items()}
    if isinstance(value, list):
        return [_substitute(item, f"{where}[{i}]") for i, item in enumerate(value)]
    if not isinstance(value, str):
        return value

    def replace(found: re.Match[str]) -> str:
        name, default = found.group(1), found.group(2)
        said = os.environ.get(name, default)
        if said is None:
            raise ConfigError(
                f"{where}: environment variable {name} is not set; set it, or write ${{env:{name}:-default}}"
            )
        return said

    return _ENV.sub(replace, value)


def _explain(file: str, fault: ValidationError) -> str:
    lines = []
    for error in fault.errors(include_url=False):
        key = ".".join(
            str(part) for part in error["loc"] if part not in ("function-before[_as_metric()", "bool", "LiveEntry")
        )
        if error["type"] == "extra_forbidden":
            lines.append(f"unknown key {key!r}")
        elif error["type"] == "missing":
            lines.append(f"{key!r} is missing")
        else:
            lines.append(f"{key!r} is {error['input']!r}: {error['msg']}")
    known = ", ".join(FileConfig.model_fields)
    return f"configuration file {file!r}: {'; '.join(lines)} (top-level keys: {known})"
