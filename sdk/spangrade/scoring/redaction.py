"""The Sample that a judge sees: every text of it redacted first (promise 10). Metrics run in-process on the text itself."""

from collections.abc import Callable
from typing import Any

from spangrade._text import valid
from spangrade.errors import JudgeError
from spangrade.model.sample import Sample

Redact = Callable[[str], str]


def redacted(sample: Sample, redact: Redact) -> Sample:
    """A copy of ``sample`` with ``redact`` applied to every text, keys excepted.

    Raises:
        JudgeError: kind ``redaction_failed``; no text is sent then.
    """

    def walk(value: Any) -> Any:
        if isinstance(value, str):
            changed = redact(value)
            if not isinstance(changed, str):
                raise TypeError(f"redact returned {type(changed).__name__}, not a text")
            return valid(changed)
        if isinstance(value, dict):
            return {key: walk(item) for key, item in value.items()}
        if isinstance(value, list):
            return [walk(item) for item in value]
        return value

    try:
        return Sample(
            input=walk(sample.input),
            output=walk(sample.output),
            expected=walk(sample.expected),
            documents=walk(sample.documents),
            context=walk(sample.context),
            metadata=walk(sample.metadata),
            trace_id=sample.trace_id,
            item_id=sample.item_id,
        )
    except BaseException as fault:  # the hook is the application's code, and the thread ours: it may not end it
        raise JudgeError(
            "redaction_failed", f"the redact hook raised {type(fault).__name__}; nothing was sent"
        ) from fault
