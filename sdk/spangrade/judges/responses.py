"""What `LlmJudge.preview` and `LlmJudge.register` answer, and who may answer in place of this process."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Any, Literal, Protocol, runtime_checkable

from spangrade.errors import ConfigError, JudgeError

if TYPE_CHECKING:
    from spangrade.judges.judge import LlmJudge


@dataclass(frozen=True, slots=True)
class EvaluatorPreviewResponse:
    """One sample graded, nothing stored.

    Attributes:
        score: 0 to 1; None when the judge gave no verdict.
        explanation: the judge's reasoning.
        prompt: what was sent, system and user message; empty when nothing could be sent.
        error: why there is no score, as ``kind: message``; None when there is one.
    """

    score: float | None
    explanation: str | None
    prompt: str
    error: str | None = None


@dataclass(frozen=True, slots=True)
class EvaluatorResponse:
    """A judge as a registry has it.

    Attributes:
        id: the evaluator's, in the registry's addresses; the same for all its versions.
        name: the judge's.
        version: 1 for the first configuration of that name in the project, and one more for each that differs.
        config_hash: what identifies the version on its scores, by the model that the registry's host resolved.
        status: ``active``: this version grades production traffic; ``paused``: it does not (yet).
        project_id: the namespace.
        created: when this version was registered, UTC.
    """

    id: str
    name: str
    version: int
    config_hash: str
    status: Literal["active", "paused"]
    project_id: str
    created: datetime


@runtime_checkable
class Registry(Protocol):
    """Where judges are registered, and previewed as they would grade there. `RegistryClient` is one."""

    def register(self, judge: "LlmJudge", project_id: str | None = None) -> EvaluatorResponse:
        """Create the judge there, or reuse the one with the same configuration."""
        ...

    def preview(
        self, judge: "LlmJudge", sample: Mapping[str, Any], project_id: str | None = None
    ) -> EvaluatorPreviewResponse:
        """Grade one sample there. ``sample``: input, output, expected, documents, metadata, as far as given."""
        ...


def previewed(
    client: Registry, judge: "LlmJudge", sample: Mapping[str, Any], project_id: str | None
) -> EvaluatorPreviewResponse:
    """What a registry says of one sample; why it cannot be asked is the response's ``error``."""
    try:
        return client.preview(judge, sample, project_id)
    except ConfigError as fault:
        return EvaluatorPreviewResponse(None, None, "", f"configuration: {fault}")
    except JudgeError as fault:
        return EvaluatorPreviewResponse(None, None, "", f"{fault.kind}: {fault}")
