"""Judges: criteria in plain language, graded by a model over HTTP, whose verdicts are read strictly or not at all."""

from spangrade.judges.judge import EvaluatorPreviewResponse, LlmJudge
from spangrade.judges.live import live, place
from spangrade.judges.providers import JudgeClient, JudgeReply, JudgeRequest

__all__ = ["EvaluatorPreviewResponse", "JudgeClient", "JudgeReply", "JudgeRequest", "LlmJudge", "live", "place"]
