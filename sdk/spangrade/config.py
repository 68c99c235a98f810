"""The configuration file: one YAML for the SDK and the agent (DESIGN section 5).

``${env:NAME}`` stands for an environment variable in any text; ``${env:NAME:-default}`` gives one where it is not set.
Keys are the names of `spangrade.configure`'s parameters; keys that only the agent reads are accepted here too. An
unknown key, a wrong type or an unset variable is a `ConfigError` that names the key and what would be right.
"""

import os
import re
from pathlib import Path
from typing import Annotated, Any, Final, Literal, TypeVar

from pydantic import BaseModel, BeforeValidator, ConfigDict, Discriminator, Field, Tag, ValidationError

from spangrade._units import Bytes, Number, Seconds, SecondsOrZero
from spangrade.errors import ConfigError

_ENV: Final = re.compile(r"\$\{env:([A-Za-z_][A-Za-z0-9_]*)(?::-([^}]*))?\}")
FORMAT_VERSION: Final = 1


class Strict(BaseModel):
    """Unknown keys are errors; values do not change."""

    # Validators are built with the first file that is read: `import spangrade` does without them.
    model_config = ConfigDict(extra="forbid", frozen=True, defer_build=True)


class MetricOptions(Strict):
    """What any metric may be told in the file, in place of what it says itself: the constructor's names (see `LocalMetric`)."""

    result_key: str | None = None
    threshold: Number | None = None
    lower_is_better: bool | None = None
    verdict: bool | None = None
    version: Annotated[int | str | None, BeforeValidator(lambda v: str(v) if isinstance(v, float) else v)] = None
    requires: str | list[str] | None = None
    target: str | dict[str, Any] | None = None
    timeout: Number | None = Field(default=None, gt=0)
    process: bool | None = None


class UseEntry(MetricOptions):
    """``{use: overlap}`` or ``{use: "package.module:name"}``; ``config``: the parameters of a metric that takes some."""

    use: str
    config: dict[str, Any] | None = None


class MetricEntry(UseEntry):
    """A metric by itself. ``match`` (resource attributes) is read by the agent."""

    match: dict[str, str] = Field(default_factory=dict)


class ChildMetric(UseEntry):
    """A metric in a tree."""

    weight: Number | None = Field(default=None, ge=0)


class TreeShape(MetricOptions):
    """The keys are `CompositeMetric`'s parameters; ``aggregate`` may be ``module:function`` too."""

    name: str
    children: list["AnyChild"] = Field(min_length=1)
    aggregate: str | None = None
    on_missing: Literal["fail", "ignore"] = "fail"


class ChildTree(Strict):
    """A tree in a tree."""

    tree: TreeShape
    weight: Number | None = Field(default=None, ge=0)


class TreeEntry(Strict):
    """``{tree: {name: quality, aggregate: mean, children: [overlap, {use: ..., weight: 2}, {tree: ...}]}}``."""

    tree: TreeShape
    match: dict[str, str] = Field(default_factory=dict)


class LiveEntry(Strict):
    """A judge's live policy; see `spangrade.live`."""

    rate: Number | dict[str, Number] | None = None
    when: str | list[str] | None = None
    max_per_minute: Number | None = None
    min_per_minute: Number | None = None
    group: str | None = None
    price: dict[str, Number] | None = None
    canaries: list[dict[str, Any]] | None = None
    canary_rate: Number | None = None
    budget: dict[str, Number] | None = None
    target: str | dict[str, Any] = "root"


class JudgeEntry(Strict):
    """The keys are `LlmJudge`'s parameters; ``live`` is true, or a policy; ``timeout`` in seconds, retries included;
    ``cache``: of how many prompts the verdict is kept."""

    name: str
    criteria: str
    scale: str = "1-5"
    levels: dict[int, str] | None = None
    fields: list[str] | None = None
    examples: list[dict[str, Any]] = Field(default_factory=list)
    threshold: Number = 0.5
    live: bool | LiveEntry = False
    model: str | None = None
    temperature: Number | None = None
    timeout: Number | None = Field(default=None, gt=0)
    cache: int | None = Field(default=None, gt=0)
    match: dict[str, str] = Field(default_factory=dict)


class JudgeEndpointEntry(Strict):
    """Where judges' models run; the first whose ``models`` (with ``*`` and ``?``) has a judge's is asked. The keys are those
    of `spangrade.judges.providers.Endpoint`."""

    models: list[str] = Field(default_factory=lambda: ["*"], min_length=1)
    base_url: str | None = None
    provider: str | None = None
    api_key: str | None = Field(default=None, repr=False)
    api_key_file: str | None = None
    headers: dict[str, str] = Field(default_factory=dict, repr=False)
    ca_file: str | None = None
    proxy: str | None = Field(default=None, repr=False)
    max_concurrency: int | None = Field(default=None, ge=1)


class DestinationEntry(Strict):
    """Where spans go. The SDK knows the preset ``otlp``."""

    preset: Literal["otlp"] = "otlp"
    endpoint: str


class RedactEntry(Strict):
    """Regular expressions whose matches are replaced."""

    patterns: list[str]
    replacement: str = "[redacted]"


class AssemblyEntry(Strict):
    """What a sample is waited for; see `spangrade.samples.bounds.AssemblyBounds`, whose defaults hold for what is left out."""

    grace: Seconds | None = None
    quiet: Seconds | None = None
    max_age: Seconds | None = None
    max_traces: int | None = Field(default=None, gt=0)
    max_bytes: Bytes | None = None
    logs: SecondsOrZero | None = None  # 0: not at all
    session_idle: Seconds | None = None
    session_max_age: Seconds | None = None
    max_sessions: int | None = Field(default=None, gt=0)
    max_session_bytes: Bytes | None = None


def _as_metric(value: Any) -> Any:
    return {"use": value} if isinstance(value, str) else value


def _kind_of(value: Any) -> str:
    is_tree = "tree" in value if isinstance(value, dict) else hasattr(value, "tree")
    return _TREE if is_tree else _METRIC


_METRIC: Final = "a metric"
_TREE: Final = "a tree"
AnyMetric = Annotated[
    Annotated[MetricEntry, Tag(_METRIC)] | Annotated[TreeEntry, Tag(_TREE)],
    Discriminator(_kind_of),
    BeforeValidator(_as_metric),
]
AnyChild = Annotated[
    Annotated[ChildMetric, Tag(_METRIC)] | Annotated[ChildTree, Tag(_TREE)],
    Discriminator(_kind_of),
    BeforeValidator(_as_metric),
]


class FileConfig(Strict):
    """The whole file, as the SDK reads it."""

    version: Literal[1] = 1
    service_name: str | None = None
    endpoint: str | None = None
    metrics: list[AnyMetric] = Field(default_factory=list)
    judges: list[JudgeEntry] = Field(default_factory=list)
    destinations: list[DestinationEntry] = Field(default_factory=list)
    take_over: bool = False
    score: Literal["here", "agent"] = "here"
    hold: Number | None = None
    redact: RedactEntry | None = None
    export_content: bool = True
    export_explanations: bool = True
    instrument: list[str] = Field(default_factory=list)
    judge_endpoints: list[JudgeEndpointEntry] = Field(default_factory=list)
    budget_store: str | None = Field(default=None, repr=False)
    assembly: AssemblyEntry | None = None
    # What only the agent reads; checked there.
    mode: Any = None
    receivers: Any = None
    admin: Any = None
    page: Any = None
    spool: Any = None
    store: Any = None
    registry: Any = None


Config = TypeVar("Config", bound=FileConfig)


def load(path: str | os.PathLike[str], shape: type[Config]) -> Config:
    """Read and check a configuration file of the SDK's or the agent's ``shape``.

    Raises:
        ConfigError: the file cannot be read, is no YAML mapping, or has a key or value that is wrong.
    """
    return checked(mapping_in(path), shape, path)


def mapping_in(path: str | os.PathLike[str]) -> dict[Any, Any]:
    """The keys and values of a YAML file, as they stand there.

    Raises:
        ConfigError: the file cannot be read, or is no YAML mapping.
    """
    import yaml  # most applications have no file

    file = Path(path)
    try:
        text = file.read_text(encoding="utf-8")
    except OSError as fault:
        raise ConfigError(f"configuration file {str(file)!r} cannot be read: {fault.strerror or fault}") from fault
    except UnicodeDecodeError as fault:
        raise ConfigError(f"configuration file {str(file)!r} is not UTF-8; save it as that") from fault
    try:
        raw = yaml.safe_load(text)
    except yaml.YAMLError as fault:
        raise ConfigError(f"configuration file {str(file)!r} is not YAML: {fault}") from fault
    if raw is None:
        return {}
    if not isinstance(raw, dict):
        raise ConfigError(f"configuration file {str(file)!r} must hold keys and values, not a {type(raw).__name__}")
    return raw


def checked(raw: dict[Any, Any], shape: type[Config], path: str | os.PathLike[str]) -> Config:
    """What stood in the file ``path``, with its environment variables, as a ``shape``.

    Raises:
        ConfigError: a key or value is wrong, or a variable is not set.
    """
    try:
        return shape.model_validate(_substitute(raw, ""))
    except ValidationError as fault:
        raise ConfigError(_explain(str(Path(path)), fault)) from None


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


_SWITCHABLE: Final = ("admin", "page", "store", "registry")  # or false, in the agent's file
_OFF: Final = "literal[False]"


def _explain(file: str, fault: ValidationError) -> str:
    lines = []
    for error in fault.errors(include_url=False):
        place = error["loc"]
        if place[0] in _SWITCHABLE and len(place) > 1:  # pydantic's word for which of the two it was not
            if place[1] == _OFF:
                continue
            place = (place[0], *place[2:])
        key = ".".join(str(part) for part in place if part not in (_METRIC, _TREE, "bool", "LiveEntry"))
        if error["type"] == "extra_forbidden":
            lines.append(f"unknown key {key!r}")
        elif error["type"] == "missing":
            lines.append(f"{key!r} is missing")
        else:
            # What holds keys is not shown, in whatever wrong shape it came.
            secret = place[0] == "judge_endpoints" or place[-1] == "token" or isinstance(error["input"], dict)
            shown = type(error["input"]).__name__ if secret else repr(error["input"])
            lines.append(f"{key!r} is {shown}: {error['msg']}")
    return f"configuration file {file!r}: {'; '.join(lines)} ({_keys_there(fault)})"


def _keys_there(fault: ValidationError) -> str:
    """What may stand where something unknown stood."""
    places = {error["loc"][0] for error in fault.errors(include_url=False)}
    if places == {"assembly"}:
        return f"assembly has {', '.join(AssemblyEntry.model_fields)}"
    if places != {"metrics"}:
        return f"top-level keys: {', '.join(FileConfig.model_fields)}"
    metric, tree = list(MetricEntry.model_fields), list(TreeShape.model_fields)
    return f"a metric has use, or tree; beside use: {_others(metric, 'use', 'match')}; in a tree: {_others(tree)}, each child a weight"


def _others(names: list[str], *without: str) -> str:
    return ", ".join(name for name in names if name not in without)
