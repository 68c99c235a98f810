"""Why a span gives the Sample that it gives: what was recognised, what is missing from it, and what would change that.

The same words are printed by ``spangrade explain`` and shown on the agent's page. They hold no content.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from spangrade._guard import guard
from spangrade.model.sample import is_empty
from spangrade.model.span import SpanData
from spangrade.samples.dialects import DIALECTS, Dialect
from spangrade.samples.extract import extract
from spangrade.samples.kinds import quick_kind
from spangrade.samples.reading import RETRIEVAL_KINDS, Call

_GENERIC: Final = ("spangrade", "plain")  # say least of who instruments the application
_SHARED: Final = (
    "openinference",
    "otel_genai",
    "otel_genai_events",
)  # conventions: whoever else is named writes by them
_LENGTH: Final = (
    "raise or unset OTEL_SPAN_ATTRIBUTE_VALUE_LENGTH_LIMIT and OTEL_ATTRIBUTE_VALUE_LENGTH_LIMIT in the application"
)
_COUNT: Final = "raise OTEL_SPAN_ATTRIBUTE_COUNT_LIMIT (128 by default) in the application"


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing worth knowing. ``code``: for programs; ``says``: a sentence without its full stop; ``fix``: the setting, or
    the call, that would change it, None where nothing would. ``harmless``: it costs no evaluator anything."""

    code: str
    says: str
    fix: str | None = None

    @property
    def harmless(self) -> bool:
        return self.code in _HARMLESS


_HARMLESS: Final = ("refusal", "tool_calls_only", "found_nothing", "evaluator", "not_a_call")


@dataclass(frozen=True, slots=True)
class SpanNote:
    """What a span was taken for.

    ``kind`` is None for a span that is no call. ``dialects``: those that found something in it, in the order in which they
    are believed. ``evaluator``: somebody's judge at work, which is never scored.
    """

    trace_id: str
    span_id: str
    parent_span_id: str | None
    name: str
    service: str | None
    scope: str
    kind: str | None
    dialects: tuple[str, ...] = ()
    evaluator: bool = False
    findings: tuple[Finding, ...] = ()

    @property
    def is_call(self) -> bool:
        """Whether evaluators may look at it."""
        return self.kind is not None and not self.evaluator


def note_of(span: SpanData, call: Call | None = None) -> SpanNote:
    """What is known of a span; never raises. ``call``: its call, where that was read already."""
    kind: str | None = None
    findings: tuple[Finding, ...] = ()
    dialects: tuple[str, ...] = ()
    evaluator = False
    with guard("samples.explain"):
        found = extract(span) if call is None else call
        if found is None:
            findings = (_no_call(span.attributes),)
        else:
            kind, evaluator = found.kind, found.evaluator
            dialects = tuple(name for name in found.reading.dialect.split("+") if name)
            findings = (_EVALUATOR,) if evaluator else tuple(_of_call(found))
    service = span.resource.get("service.name")
    return SpanNote(
        span.trace_hex,
        span.span_hex,
        None if span.parent_span_id is None else f"{span.parent_span_id:016x}",
        span.name,
        service if isinstance(service, str) else None,
        span.scope_name,
        kind,
        dialects,
        evaluator,
        findings,
    )


_EVALUATOR: Final = Finding("evaluator", "this is an evaluator at work, which nobody scores")


def _no_call(attributes: Mapping[str, Any]) -> Finding:
    if quick_kind({**attributes, "input": "", "output": ""}) is None:  # even with content it would be none
        return Finding(
            "not_a_call", "it is marked as no call: a prompt being filled in, or a placeholder of a span to come"
        )
    return Finding(
        "not_a_call",
        "no call: none of its attributes is one by which a dialect knows a call",
        "instrument the function with @spangrade.trace, or switch on the instrumentation of its library",
    )


def _of_call(call: Call) -> list[Finding]:
    reading, span = call.reading, call.span
    found: list[Finding] = []
    lost_input, lost_output = is_empty(reading.input), is_empty(reading.output)
    if lost_input and lost_output and not reading.tool_calls and reading.documents is None:
        found.append(_CUT if reading.truncated else _no_content(call))
    else:
        if lost_input:
            found.append(_no_input(call))
        if lost_output and (call.kind not in RETRIEVAL_KINDS or reading.documents is None):
            found.append(_no_output(call))
    if reading.refusal:
        found.append(Finding("refusal", "the model refused; its words are the output"))
    if span.dropped_attributes:
        many = span.dropped_attributes
        said = f"its SDK dropped {many} attribute{'s' if many > 1 else ''} at its limit, so parts of the call may be missing"
        found.append(Finding("dropped_attributes", said, _COUNT))
    elif reading.truncated and not (lost_output and _out_of_tokens(reading.finish_reasons)):
        found.append(_CUT)
    found += _of_documents(call)
    return list(dict.fromkeys(found))


_CUT: Final = Finding(
    "truncated", "a text or a message list was cut on its way here, and what stood behind the cut is lost", _LENGTH
)


def capture_of(dialects: Sequence[str]) -> str | None:
    """What switches content capture on for spans of these dialects; None where nothing is known."""
    known: list[Dialect] = [dialect for dialect in DIALECTS if dialect.name in dialects]
    named = [dialect for dialect in known if dialect.name not in _GENERIC] or known
    named = [dialect for dialect in named if dialect.name not in _SHARED] or named
    if len(named) == 1:
        return named[0].capture
    return "; ".join(f"{dialect.name}: {dialect.capture}" for dialect in named) or None


def _no_content(call: Call) -> Finding:
    fix = capture_of(call.reading.dialect.split("+"))
    said = "no content was captured: neither input nor output is on the span, or came in log records"
    return Finding("content_off", said, fix)


def _no_input(call: Call) -> Finding:
    if call.reading.truncated:
        return _CUT
    if call.reading.messages:
        return Finding("no_input", "the conversation has no user turn with text, so there is no input")
    return Finding("no_input", "no input was captured", capture_of(call.reading.dialect.split("+")))


def _no_output(call: Call) -> Finding:
    reading, span = call.reading, call.span
    if reading.output == "" or (isinstance(reading.output, str) and not reading.output.strip()):
        return Finding("empty_output", "the answer is empty text")
    if reading.tool_calls and call.kind != "tool":
        return Finding("tool_calls_only", "the model asked for tools and gave no text, which is no empty answer")
    if _out_of_tokens(reading.finish_reasons):
        return Finding(
            "out_of_tokens", "the model ran out of tokens before it gave an answer", "raise the request's token limit"
        )
    if span.status == "error":
        return Finding("failed", "the call ended with an error, so there is no output")
    if reading.truncated:
        return _CUT
    if reading.reasoning:
        return Finding("thoughts_only", "the model gave thoughts and no answer")
    return Finding("no_output", "no output was captured", capture_of(reading.dialect.split("+")))


def _out_of_tokens(reasons: Sequence[str]) -> bool:
    return any(reason in ("length", "max_tokens") for reason in reasons)


def _of_documents(call: Call) -> list[Finding]:
    documents = call.reading.documents
    if documents is None:
        if call.kind not in RETRIEVAL_KINDS:
            return []
        said = "the retrieval says nothing of what it found"
        return [Finding("no_documents", said, capture_of(call.reading.dialect.split("+")))]
    if not documents:
        return [Finding("found_nothing", "searched, and found nothing")]
    if all(is_empty(document.get("content")) for document in documents):
        said = f"its {len(documents)} documents have ids and scores and no text, as the GenAI conventions have them"
        fix = "write their text too: spangrade.set_retrieval_documents(docs), or an instrumentation that captures it"
        return [Finding("documents_without_text", said, fix)]
    return []


#: What a sample can be short of: field → what would bring it.
_NEEDS: Final[Mapping[str, str]] = {
    "documents": "trace the retriever (@spangrade.trace(kind='retriever')), or call spangrade.set_retrieval_documents(docs) "
    "in the traced function",
    "input": "let the span have its input: spangrade.set_input(value), or capture of content in its instrumentation",
    "output": "let the span have its output: spangrade.set_output(value), or capture of content in its instrumentation",
    "expected": "there is a reference answer in datasets only; use this evaluator offline",
    "context": "give it with spangrade.set_context(...)",
    "metadata": "give it with spangrade.set_metadata(...)",
}


def missing(fields: Sequence[str], findings: Sequence[Finding], *, searched: bool = False) -> Finding:
    """Why an evaluator that needs ``fields`` skips a sample, by what its spans' ``findings`` say. ``searched``: a retrieval
    took place."""
    causes_said: list[str] = []
    causes = {
        "documents": ("documents_without_text", "found_nothing", "no_documents"),
        "input": ("content_off", "no_input", "truncated"),
        "output": (
            "content_off",
            "failed",
            "tool_calls_only",
            "out_of_tokens",
            "thoughts_only",
            "empty_output",
            "no_output",
        ),
    }
    fixes: list[str] = []
    for field in fields:
        cause = next((f for code in causes.get(field, ()) for f in findings if f.code == code), None)
        if cause is not None:
            causes_said.append(cause.says)
        elif field == "documents" and not searched:
            causes_said.append("nobody searched within this call")
        fix = _NEEDS.get(field) if cause is None else cause.fix
        if fix is not None and fix not in fixes:
            fixes.append(fix)
    because = f" ({'; '.join(dict.fromkeys(causes_said))})" if causes_said else ""
    return Finding(
        "skipped", f"it needs {' and '.join(fields)}, which the sample has not{because}", "; ".join(fixes) or None
    )
