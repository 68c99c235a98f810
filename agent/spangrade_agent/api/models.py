"""What the registry's requests and answers are: the models that validate them, and that the OpenAPI document is made of."""

from datetime import UTC, datetime
from typing import Annotated, Any, Final, Literal

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, JsonValue

from spangrade.errors import ConfigError
from spangrade.judges.checks import MAX_EXAMPLES, MAX_TEXT
from spangrade.judges.prompt import FIELDS
from spangrade.model.evaluator import TARGETS, check_target
from spangrade_agent.registry import Record, Version

DEFAULT_PROJECT = "default"
EVALUATOR_ID = r"^ev_[0-9a-f]{24}$"
PROJECT = r"^[A-Za-z0-9._-]{1,64}$"


class Asked(BaseModel):
    """A request: unknown keys are errors, and a number is not a text."""

    model_config = ConfigDict(extra="forbid", strict=True, allow_inf_nan=False, hide_input_in_errors=True)


def _said(text: str) -> str:
    if not text.strip():
        raise ValueError("is blank")
    return text


def _target(text: str) -> str:
    try:
        return check_target(text, "config")
    except ConfigError as fault:
        raise ValueError(str(fault)) from None


Text = Annotated[
    str, Field(min_length=1, max_length=MAX_TEXT, json_schema_extra={"pattern": r"\S"}), AfterValidator(_said)
]
ProjectId = Annotated[str, Field(pattern=PROJECT)]
Share = Annotated[float, Field(gt=0, le=1)]
Level = Literal["1", "2", "3", "4", "5"]


# What `LlmJudge` checks itself, for readers of the document.
_FIELDS_TOO: Final[dict[str, Any]] = {"uniqueItems": True, "contains": {"const": "output"}}
_TARGET: Final[dict[str, Any]] = {
    "anyOf": [
        {"enum": list(TARGETS)},
        {
            "pattern": r"^(name|scope|attributes\.[A-Za-z0-9_.-]{1,64}) = [A-Za-z0-9_.*?/-]{1,64}( [A-Za-z0-9_.*?=/-]{1,64})*$"
        },
    ]
}
_EXAMPLE: Final[dict[str, Any]] = {
    "required": ["output"],
    "properties": {
        "output": {"description": "not empty"},
        "level": {"type": "integer", "minimum": 1, "maximum": 5, "description": "for scale 1-5"},
        "verdict": {"enum": ["pass", "fail"], "description": "for scale binary"},
        **{name: {} for name in ("input", "expected", "reasoning")},
    },
    "additionalProperties": False,
}


class JudgeConfig(Asked):
    """What `LlmJudge.config()` gives: what identifies a judge. No address, no key: those are the agent's."""

    name: Annotated[
        str, Field(min_length=1, max_length=128, json_schema_extra={"pattern": r"\S"}), AfterValidator(_said)
    ]
    criteria: Text
    scale: Literal["1-5", "binary"] = "1-5"
    levels: dict[Level, Text] = Field(default_factory=dict, description="for scale 1-5 only")
    fields: Annotated[list[Literal[FIELDS]], Field(min_length=1, max_length=len(FIELDS))] = Field(  # type: ignore[valid-type]
        default=["input", "output"], description="each once; output among them", json_schema_extra=_FIELDS_TOO
    )
    examples: list[Annotated[dict[str, JsonValue], Field(json_schema_extra=_EXAMPLE)]] = Field(
        default_factory=list, max_length=MAX_EXAMPLES
    )
    model: Annotated[str, Field(min_length=1, max_length=256)] | None = Field(
        default=None, description="one that an endpoint of the agent serves; by default that of the agent's environment"
    )
    temperature: Annotated[float, Field(ge=0, le=2)] | None = None
    target: Annotated[str, AfterValidator(_target)] = Field(
        default="root",
        max_length=1_024,
        description=f"{', '.join(TARGETS)}, or a rule such as 'name = answer*'",
        json_schema_extra=_TARGET,
    )
    template: Annotated[str, Field(max_length=64)] | None = Field(
        default=None, description="the hash of the prompt's template; one that is not the agent's is refused"
    )


class LivePolicy(Asked):
    """How often a live judge grades; see `spangrade.live`. Never more than the agent's configuration allows."""

    rate: Share | Annotated[dict[str, Share], Field(min_length=1, max_length=32)] | None = Field(
        default=None,
        description="of matching samples; or one for each kind, by conditions, the last of which may be else",
    )
    when: (
        Annotated[str, Field(min_length=1, max_length=256)]
        | Annotated[list[Annotated[str, Field(min_length=1, max_length=256)]], Field(min_length=1, max_length=32)]
        | None
    ) = None
    max_per_minute: Annotated[float, Field(gt=0)] | None = None
    budget: dict[str, Annotated[float, Field(ge=0)]] | None = Field(default=None, max_length=8)
    group: Annotated[str, Field(min_length=1, max_length=128)] | None = None


class Registration(Asked):
    """A judge to create, or to reuse."""

    config: JudgeConfig
    threshold: float = Field(default=0.5, ge=0, le=1, description="the pass mark; no part of the identity")
    live: bool | LivePolicy = Field(
        default=False, description="grade production traffic, by a policy or by the default one"
    )
    project_id: ProjectId = DEFAULT_PROJECT


class ListQuery(BaseModel):
    """Which evaluators; as text, from an address."""

    model_config = ConfigDict(extra="forbid", hide_input_in_errors=True)

    project_id: ProjectId | None = None
    name: Annotated[str, Field(min_length=1, max_length=128)] | None = None
    limit: int = Field(default=100, ge=1, le=500)
    after: Annotated[str, Field(pattern=EVALUATOR_ID)] | None = None


class PreviewSample(Asked):
    """One sample, as the judge is to see it."""

    output: JsonValue
    input: JsonValue = None
    expected: JsonValue = None
    documents: list[dict[str, JsonValue] | str] = Field(default_factory=list, max_length=1_000)
    metadata: dict[str, JsonValue] = Field(default_factory=dict)


class Preview(Asked):
    """A judge, and a sample that it is to grade now."""

    config: JudgeConfig
    sample: PreviewSample
    threshold: float = Field(default=0.5, ge=0, le=1)
    project_id: ProjectId = DEFAULT_PROJECT


class Activation(Asked):
    """Which version is to grade; the latest where none is said."""

    version: Annotated[int, Field(ge=1, le=1_000_000)] | None = None


class Nothing(Asked):
    """``{}``: there is nothing to say."""


Status = Literal["active", "paused"]


class Given(BaseModel):
    """An answer."""

    model_config = ConfigDict(extra="forbid")


class VersionView(Given):
    """A version without its configuration."""

    version: int
    config_hash: str
    status: Status
    threshold: float
    live: bool | LivePolicy
    created: datetime


class VersionWhole(VersionView):
    """A version with its configuration."""

    config: JudgeConfig


class EvaluatorView(Given):
    """An evaluator. ``version``, and what goes with it: of the version that was registered, or of the latest."""

    id: str
    name: str
    project_id: str
    version: int
    config_hash: str
    status: Status = Field(description="of this version; active_version says which one grades")
    active_version: int | None
    threshold: float
    live: bool | LivePolicy
    created: datetime
    config: JudgeConfig
    problem: str | None = Field(description="why the active version does not grade")


class EvaluatorWhole(EvaluatorView):
    """An evaluator with all its versions, oldest first."""

    versions: list[VersionView]


class EvaluatorList(Given):
    """Evaluators in the order in which they were made. ``next``: the ``after`` to go on with."""

    evaluators: list[EvaluatorView]
    next: str | None


class PreviewView(Given):
    """One sample graded. ``score`` is None exactly where there is an ``error``."""

    score: float | None
    explanation: str | None
    prompt: str
    error: str | None


class FieldProblem(Given):
    """What is wrong with one field."""

    field: str
    message: str


class Problem(Given):
    """An error (RFC 9457): ``detail`` says what is wrong and the way out."""

    type: Literal["about:blank"] = "about:blank"
    title: str
    status: int
    detail: str
    errors: list[FieldProblem] = Field(default_factory=list)


def _time(ns: int) -> datetime:
    return datetime.fromtimestamp(ns // 1_000 / 1_000_000, UTC)


def _version(record: Record, version: Version) -> dict[str, Any]:
    return {
        "version": version.version,
        "config_hash": version.config_hash,
        "status": "active" if record.active == version.version else "paused",
        "threshold": version.threshold,
        "live": version.live,
        "created": _time(version.created_ns),
    }


def version_view(record: Record, version: Version) -> VersionWhole:
    """A version as it is shown by itself."""
    return VersionWhole(**_version(record, version), config=JudgeConfig(**version.config))


def evaluator_view(record: Record, version: Version | None = None, problem: str | None = None) -> EvaluatorView:
    """An evaluator by one of its versions."""
    return EvaluatorView(**_evaluator(record, version or record.latest, problem))


def evaluator_whole(record: Record, problem: str | None) -> EvaluatorWhole:
    """An evaluator with its versions."""
    versions = [VersionView(**_version(record, version)) for version in record.versions]
    return EvaluatorWhole(**_evaluator(record, record.latest, problem), versions=versions)


def _evaluator(record: Record, version: Version, problem: str | None) -> dict[str, Any]:
    head = {"id": record.id, "name": record.name, "project_id": record.project_id, "active_version": record.active}
    return {**head, **_version(record, version), "config": JudgeConfig(**version.config), "problem": problem}
