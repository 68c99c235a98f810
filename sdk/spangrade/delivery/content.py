"""What text may leave: redaction and removal, on every span that leaves through us (promise 10)."""

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import Any, Final

from opentelemetry import context as otel_context
from opentelemetry import trace as trace_api
from opentelemetry.sdk.trace import Event, ReadableSpan
from opentelemetry.trace import Link, NonRecordingSpan, SpanContext, TraceFlags

from spangrade import _suppress
from spangrade import semconv as s
from spangrade._text import valid
from spangrade.delivery.span_copy import ScoredSpan
from spangrade.samples.extract import CONTENT_EVENTS, is_content_key
from spangrade.scoring.shield import shield

Redact = Callable[[str], str]
# Texts that are no message content, but made of it: an exception's words, what a metric said beside its score.
_TEXT_OF_OURS: Final = frozenset({"exception.message", "exception.stacktrace", s.SCORE_METADATA, s.VALUE_JSON})
# Made by us of hashes, and looked up again by us or by the next hop: a pattern for long numbers may well match one.
_IDENTITY: Final = frozenset({s.SCORE_ID, s.SCORED_BY, s.CONFIG_HASH, s.JUDGE_PROMPT_HASH})
FAILED: Final = "[redaction failed, text withheld]"


class ContentPolicy:
    """``redact``: applied to every text of a span that is exported (attribute values, events, links, status, name), once.
    When it raises, or gives back no text, the text is withheld, since sending it would be the worse fault.
    ``export_content`` False: what holds users' text is left out after scoring. ``export_explanations`` False: likewise
    the evaluators' explanations.

    Keys are never changed, nor the ids and hashes that tell one score from another. What ``redact`` does itself is not
    traced: its spans would come to be redacted, and make more.
    """

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
        with self.at_work():
            return self.said(value)

    def attributes(self, given: Mapping[str, Any] | None) -> dict[str, Any]:
        """Attributes as they may leave."""
        with self.at_work():
            return self._attributes(given)

    def span(self, span: ReadableSpan) -> ReadableSpan:
        """A copy of ``span`` as it may leave; the span itself under the default policy, and where it is an evaluation span,
        whose texts were redacted when it was made."""
        if self.changes_nothing or s.SCORE_ID in (span.attributes or ()):
            return span
        with self.at_work():
            return self._span(span)

    # --- the parts of a span, for whoever has it in another form; inside of `at_work` ------------------------------------

    def at_work(self) -> AbstractContextManager[None]:
        """Around all that is asked of the policy for one span: what ``redact`` does there is not traced."""
        return _untraced() if self.redact is not None else nullcontext()

    def may_leave(self, key: str) -> bool:
        """Whether an attribute is exported, by its name."""
        if key == s.EXPLANATION:
            return self.export_explanations
        return self.export_content or not (key in _TEXT_OF_OURS or is_content_key(key))

    def event_may_leave(self, name: str) -> bool:
        """Whether an event is exported at all, by its name."""
        return self.export_content or name not in CONTENT_EVENTS

    def changes(self, key: str) -> bool:
        """Whether an attribute's value is redacted: not an id of ours, by which others look it up."""
        return self.redact is not None and key not in _IDENTITY

    def said(self, value: str) -> str:
        """A text as it may leave."""
        if self.redact is None:
            return value
        with shield("redact"):  # the hook is the application's code
            redacted = self.redact(value)
            if isinstance(redacted, str):
                return valid(redacted)
        return FAILED

    def encoded(self, value: bytes) -> bytes:
        """Bytes as they may leave: text, as far as they are one."""
        try:
            text = value.decode()
        except UnicodeDecodeError:
            return value
        return self.said(text).encode()

    def description(self, status: str) -> str | None:
        """The text of a status as it may leave; what goes wrong is told in the users' words."""
        return self.said(status) if self.export_content else None

    # --- of the SDK's spans ----------------------------------------------------------------------------------------------

    def _span(self, span: ReadableSpan) -> ReadableSpan:
        kept = [e for e in span.events if self.event_may_leave(e.name)]
        events = [Event(self.said(e.name), self._attributes(e.attributes), e.timestamp) for e in kept]
        pairs = span.pairs if isinstance(span, ScoredSpan) else ()
        copy = ScoredSpan(span, self._attributes(span.attributes), events, pairs)
        description = span.status.description
        if description:
            copy.redescribe(self.description(description))
        links = [Link(link.context, self._attributes(link.attributes)) for link in span.links]
        copy.rename(self.said(span.name), links)
        return copy

    def _attributes(self, given: Mapping[str, Any] | None) -> dict[str, Any]:
        kept = {key: value for key, value in (given or {}).items() if self.may_leave(key)}
        return {key: self._value(value) if self.changes(key) else value for key, value in kept.items()}

    def _value(self, value: Any) -> Any:
        if isinstance(value, str):
            return self.said(value)
        if isinstance(value, (bytes, bytearray)):
            return self.encoded(bytes(value))
        if isinstance(value, Mapping):
            return {key: self._value(item) for key, item in value.items()}
        if isinstance(value, Sequence):
            return tuple(self._value(item) for item in value)
        return value


@contextmanager
def _untraced() -> Iterator[None]:
    """Nothing inside is traced: by those that ask, because it is suppressed; by the rest, because the trace that they find
    themselves in is not sampled."""
    with _suppress.evaluator_scope():
        ids = int.from_bytes(os.urandom(16)) | 1  # not of `random`, which is the application's to seed
        nobodys = NonRecordingSpan(SpanContext(ids, ids & 0xFFFFFFFF, False, TraceFlags(0)))
        token = otel_context.attach(trace_api.set_span_in_context(nobodys))
        try:
            yield
        finally:
            _suppress.detach(token)
