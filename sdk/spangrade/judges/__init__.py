"""Judges: criteria in plain language, graded by a model over HTTP, whose verdicts are read strictly or not at all."""

from spangrade.judges.judge import LlmJudge
from spangrade.judges.live import live, place
from spangrade.judges.providers import JudgeClient, JudgeReply, JudgeRequest
from spangrade.judges.responses import EvaluatorPreviewResponse, EvaluatorResponse

__all__ = [
    "EvaluatorPreviewResponse",
    "EvaluatorResponse",
    "JudgeClient",
    "JudgeReply",
    "JudgeRequest",
    "LlmJudge",
    "live",
    "place",
]
