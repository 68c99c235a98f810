"""Calls → `Sample`. Pure: no state, no clock; the same calls in any order give the same Sample (promise 6)."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from spangrade import semconv
from spangrade.model.sample import Sample
from spangrade.samples.context import context_of
from spangrade.samples.dialects import otel_genai
from spangrade.samples.family import Family, by_end, by_start
from spangrade.samples.reading import RETRIEVAL_KINDS, ROOT_KINDS, Call, Reading
from spangrade.samples.retrieval import Evidence, evidence


def sample_of(call: Call, parts: Sequence[Call] = (), given: str | None = None) -> Sample:
    """The Sample of one call, for every target but root.

    ``parts``: other calls of the same group, from which a call that answers (llm, agent, chain) or acts takes its
    documents, tool results and usage; a retriever has its own documents or none. Only what had ended when the call did is
    looked at (of those above it, documents set by hand): what came after cannot have fed it, and a host that grades at once
    has not seen it: it gives those documents as ``given``, as they stand on the span. A call that answers, and of which no content was captured, leaves input and output to the calls below.
    """
    above = (
        [_given(call, given)] if given is not None else list(Family([*parts, call]).ancestors(call)) if parts else []
    )
    family = Family([*(other for other in parts if by_end(other) < by_end(call)), call])
    below = family.under(call)
    if call.kind in RETRIEVAL_KINDS:
        documents = call.reading.documents
        found = Evidence(tuple(documents or ()), call if documents is not None else None, searched=True)
    else:
        found = _own_evidence(call) or evidence([call], below, above, family.calls)
    said = _said([call], below) if call.kind in ROOT_KINDS else _Said(call.reading.input, call.reading.output, (call,))
    return _sample(call, [call], below, found, said)


def _given(call: Call, documents: str) -> Call:
    """A call above that is open still, of which the documents are known."""
    attributes = {semconv.RETRIEVAL_DOCUMENTS: documents}
    read = otel_genai.read(replace(call.span, attributes=attributes, events=(), dropped_attributes=0))
    return Call(
        replace(call.span, span_id=0, attributes=attributes),
        Reading("spangrade", kind="chain", documents=read.documents),
    )


def root_sample(tops: Sequence[Call], parts: Sequence[Call], partial: bool = False) -> tuple[Call, Sample] | None:
    """The Sample of everything under one local root, and the call that carries its score; None when no call is left.

    ``tops``: the topmost calls of a root kind; usually one. ``parts``: the calls below them and beside them. The input
    is that of the first top to start, the output that of the last to end, which carries the score. Tops without any
    content (content capture is off for them) leave both to the calls below. ``partial``: not everything had arrived.
    """
    family = Family([*parts, *tops]).without_evaluators()
    top_ids = {call.span.span_id for call in tops}
    mine = [call for call in family.calls if call.span.span_id in top_ids and call.kind in ROOT_KINDS]
    if not mine:
        return None
    carrier = max(mine, key=by_end)
    below = [call for call in family.calls if not any(call is top for top in mine)]
    found = evidence(mine, below, (), family.calls)
    sample = _sample(carrier, mine, below, found, _said(mine, below), partial=partial)
    return carrier, sample


class _Said:
    """Input and output, and the calls they were taken from."""

    __slots__ = ("input", "output", "sources")

    def __init__(self, asked: Any, answered: Any, sources: tuple[Call, ...]) -> None:
        self.input = asked
        self.output = answered
        self.sources = sources


def _said(tops: Sequence[Call], below: Sequence[Call]) -> _Said:
    speaking = [call for call in tops if _has_content(call)]
    if not speaking:
        # An entry without content, or content capture is off for it: what is below speaks for it. Not of an error,
        # though: nobody knows that a model's answer below a failed call ever reached the user.
        failed = max(tops, key=by_end).span.status == "error"
        speaking = [call for call in below if call.kind in ROOT_KINDS and _has_content(call)] or list(tops)
        first, last = min(speaking, key=by_start), max(speaking, key=by_end)
        return _Said(first.reading.input, None if failed else last.reading.output, (first, last))
    first, last = min(speaking, key=by_start), max(speaking, key=by_end)
    return _Said(first.reading.input, last.reading.output, (first, last))


def _has_content(call: Call) -> bool:
    return call.reading.input is not None or call.reading.output is not None


def _own_evidence(call: Call) -> Evidence | None:
    """The documents of a helper call (a tool, a guardrail) that has its own."""
    if call.kind in ROOT_KINDS or call.reading.documents is None:
        return None
    return Evidence(tuple(call.reading.documents), call, searched=True)


def _sample(
    carrier: Call, own: Sequence[Call], below: Sequence[Call], found: Evidence, said: _Said, *, partial: bool = False
) -> Sample:
    sources = {call.span.span_id: call for call in (*said.sources, found.source) if call is not None}
    context = context_of(carrier, own, below, found, list(sources.values()))
    if partial:
        context["assembly"] = "partial"
    metadata: dict[str, Any] = {}
    service = carrier.span.resource.get("service.name")
    if isinstance(service, str):
        metadata["service.name"] = service
    for call in sorted(own, key=by_start):
        metadata.update(call.reading.metadata)
    return Sample(
        input=said.input,
        output=said.output,
        documents=[dict(document) for document in found.documents],
        context=context,
        metadata=metadata,
        trace_id=carrier.span.trace_hex,
    )
