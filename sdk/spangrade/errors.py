"""Everything that Spangrade raises on purpose. Nothing here is ever raised into a traced call.

SpangradeError
├── ConfigError         a setting, metric or judge that cannot work; raised while the application starts
└── EvaluatorError      why an evaluator gave no verdict; becomes the outcome ``error`` (or ``timeout``) of that pair
    └── JudgeError      of a judge
"""

from collections.abc import Mapping
from typing import Any


class SpangradeError(Exception):
    """Base of the tree."""


class ConfigError(SpangradeError, ValueError):
    """A setting that cannot work. The message names the setting, the value, and what would be right."""


class EvaluatorError(SpangradeError):
    """An evaluator gave no verdict. ``kind`` is the wire's ``error.type``: ``timeout``, or a word for what happened; of a
    metric in a worker process ``worker_died``, ``worker_failed``, ``not_picklable``, or what the metric itself raised.
    ``details``: more wire attributes of the error.
    """

    def __init__(self, kind: str, message: str, details: Mapping[str, Any] | None = None) -> None:
        super().__init__(message)
        self.kind = kind
        self.details: Mapping[str, Any] = details or {}


class JudgeError(EvaluatorError):
    """A judge call that gave no verdict.

    ``kind`` is the wire's ``error.type``: truncated, refused, content_filter, unparseable, several_verdicts,
    out_of_range, empty, http_status, timeout, connection, configuration; circuit_open and rate_limited where nothing was
    sent, since the endpoint does not work or would not take it in time. ``details`` are those of the replies that there
    were (model, prompt hash, tokens). ``unanswered``: tries that were sent, gave nothing, and may have been billed all the
    same; None where a client does not say, and then the kind tells whether there was one.
    """

    unanswered: int | None = None
