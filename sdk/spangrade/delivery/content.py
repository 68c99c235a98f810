"""What text may leave: redaction and removal, on every span that leaves through us (promise 10)."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

from opentelemetry.sdk.trace import Event, ReadableSpan
from opentelemetry.trace import Link

from spangrade import _guard
from spangrade.delivery.span_copy import ScoredSpan
from spangrade.samples.extract import CONTENT_EVENTS, is_content_key
from spangrade.semconv import EXPLANATION, SCORE_METADATA, VALUE_JSON

Redact = Callable[[str], str]
# Texts that are no message content, but made of it: an exception's words, what a metric said beside its score.
_TEXT_OF_OURS: Final = frozenset({"exception.message", "exception.stacktrace", SCORE_METADATA, VALUE_JSON})
FAILED: Final = "[redaction failed, text withheld]"


class ContentPolicy:
    """``redact``: applied to every text of a span that is exported (attribute values, events, status). When it raises,
    the text is withheld, since sending it would be the worse fault. ``export_content`` False: attributes that hold
    users' text are left out after scoring. ``export_explanations`` False: likewise the evaluators' explanations."""

    def __init__(
        self, redact: Redact | None = None, *, export_content: bool = True, export_explanations: bool = True
    ) -> None:
        self.redact = redact
        self.export_content = export_content
        self.export_explanations = export_explanations

    @property
    def changes_nothing(self) -> bool:
        """True for the default policy: spans go through as they are."""
        return self.redact is None and self.export_content and self.export_explanations

    def text(self, value: str) -> str:
        """Redacted text."""
        if self.redact is None:
            return value
        try:
            redacted = self.redact(value)
        except Exception as fault:  # noqa: BLE001 - the hook is the application's code
            _guard.swallowed("redact", fault)
            return FAILED
        return redacted if isinstance(redacted, str) else FAILED

    def attributes(self, given: Mapping[str, Any] | None) -> dict[str, Any]:
        """Attributes as they may leave."""
        return {key: self._value(value) for key, value in (given or {}).items() if self._may_leave(key)}

    def _may_leave(self, key: str) -> bool:
        if key == EXPLANATION:
            return self.export_explanations
        return self.export_content or not (key in _TEXT_OF_OURS or is_content_key(key))

    def _value(self, value: Any) -> Any:
        if self.redact is None:
            return value
        if isinstance(value, str):
            return self.text(value)
        if isinstance(value, Mapping):
            return {key: self._value(item) for key, item in value.items()}
        if isinstance(value, Sequence) and not isinstance(value, (bytes, bytearray)):
            return tuple(self._value(item) for item in value)
        return value

    def span(self, span: ReadableSpan) -> ReadableSpan:
        """A copy of ``span`` as it may leave; the span itself under the default policy."""
        if self.changes_nothing:
            return span
        kept = [e for e in span.events if self.export_content or e.name not in CONTENT_EVENTS]
        events = [Event(self.text(e.name), self.attributes(e.attributes), e.timestamp) for e in kept]
        pairs = span.pairs if isinstance(span, ScoredSpan) else ()
        copy = ScoredSpan(span, self.attributes(span.attributes), events, pairs)
        description = span.status.description
        if description:
            copy.redescribe(self.text(description) if self.export_content else None)
        if self.redact is not None:
            copy.rename(
                self.text(span.name), [Link(link.context, self.attributes(link.attributes)) for link in span.links]
            )
        return copy
