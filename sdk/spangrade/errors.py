"""Everything that Spangrade raises on purpose. Nothing here is ever raised into a traced call.

SpangradeError
├── ConfigError         a setting, metric or judge that cannot work; raised while the application starts
└── EvaluatorError      why an evaluator gave no verdict; becomes the outcome ``error`` (or ``timeout``) of that pair
    └── JudgeError      of a judge
"""


class SpangradeError(Exception):
    """Base of the tree."""


class ConfigError(SpangradeError, ValueError):
    """A setting that cannot work. The message names the setting, the value, and what would be right."""


class EvaluatorError(SpangradeError):
    """An evaluator gave no verdict. ``kind`` is the wire's ``error.type``: ``timeout``, or a word for what happened; of a
    metric in a worker process ``worker_died``, ``worker_failed``, ``not_picklable``, or what the metric itself raised.
    """

    def __init__(self, kind: str, message: str) -> None:
        super().__init__(message)
        self.kind = kind


class JudgeError(EvaluatorError):
    """A judge call that gave no verdict.

    ``kind`` is the wire's ``error.type``: truncated, refused, content_filter, unparseable, several_verdicts,
    out_of_range, empty, http_status, timeout, connection, configuration, circuit_open.
    """
