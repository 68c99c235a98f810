"""Which documents fed an answer, and which retrievals there were besides (DESIGN section 5, case C056).

1. Documents set by hand (on an llm, agent or chain call): the call's own; else those of the calls below it, the last to
   start (the innermost); else those of the nearest call above it.
2. Else those of the last retrieval that ended before the last model call started: retrievers and rerankers, and any
   other helper call (a tool) that has documents. Where none did, of the last that ended before that model call ended.

Retrieval spans that say nothing of documents count as searched, not as found nothing.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from spangrade.model.documents import CUT
from spangrade.samples.family import by_end, by_start
from spangrade.samples.reading import RETRIEVAL_KINDS, ROOT_KINDS, Call
from spangrade.samples.sightings import told_twice

MAX_RETRIEVALS: Final = 50
MAX_RETRIEVED_CHARS: Final = 262_144


@dataclass(frozen=True, slots=True)
class Evidence:
    """``documents`` with the call they come from, whether anybody searched, and the other retrievals."""

    documents: tuple[Mapping[str, Any], ...] = ()
    source: Call | None = None
    searched: bool = False
    others: tuple[Call, ...] = ()

    @property
    def cut(self) -> Mapping[str, Any] | None:
        """``{"given", "kept"}`` when documents were cut, by whoever wrote them down."""
        held = self.documents[-1].get("metadata") if self.documents else None
        note = held.get(CUT) if isinstance(held, Mapping) else None
        return note if isinstance(note, Mapping) else None


def is_retrieval(call: Call) -> bool:
    """A retriever or reranker, or another helper call that has documents."""
    return call.kind in RETRIEVAL_KINDS or (call.kind not in ROOT_KINDS and call.reading.documents is not None)


def evidence(own: Sequence[Call], below: Sequence[Call], above: Iterable[Call], around: Sequence[Call]) -> Evidence:
    """The `Evidence` for the answer of the calls ``own``.

    ``below``: the calls under them; ``above``: those over them, nearest first; ``around``: all of the group, of which
    retrievals may have come before.
    """
    retrievals = sorted((call for call in around if is_retrieval(call)), key=by_start)
    chosen = _by_hand(own, below, above) or _last_before_answer([*own, *below], retrievals)
    return Evidence(
        documents=tuple((chosen.reading.documents or ()) if chosen is not None else ()),
        source=chosen,
        searched=bool(retrievals) or chosen is not None,
        others=tuple(_others(retrievals, chosen)),
    )


def _others(retrievals: Sequence[Call], chosen: Call | None) -> list[Call]:
    """The retrievals besides, one that two instrumentations have seen once."""
    again = told_twice(retrievals)
    mine = None if chosen is None else again.get(chosen.span.span_id, chosen.span.span_id)
    return [call for call in retrievals if call.span.span_id not in again and call.span.span_id != mine]


def _by_hand(own: Sequence[Call], below: Sequence[Call], above: Iterable[Call]) -> Call | None:
    for calls in (own, below):
        set_here = [call for call in calls if call.kind in ROOT_KINDS and call.reading.documents is not None]
        if set_here:
            return max(set_here, key=by_start)
    return next((call for call in above if call.kind in ROOT_KINDS and call.reading.documents is not None), None)


def _last_before_answer(answering: Sequence[Call], retrievals: Sequence[Call]) -> Call | None:
    found = [call for call in retrievals if call.reading.documents is not None]
    models = [call for call in answering if call.kind == "llm"]
    if not found:
        return None
    if not models:
        end = max((call.span.end_ns for call in answering), default=0)
        return max((call for call in found if call.span.start_ns <= end), key=by_end, default=None)
    last = max(models, key=by_start)
    for limit in (last.span.start_ns, last.span.end_ns):
        before = [call for call in found if call.span.end_ns <= limit]
        if before:
            return max(before, key=by_end)
    # Some clocks cut a start to whole milliseconds and not an end (JavaScript's), so a quick model seems to have ended
    # before the retrieval that fed it: what had started by then counts.
    return max((call for call in found if call.span.start_ns <= last.span.end_ns), key=by_end, default=None)


def described(others: Sequence[Call]) -> list[dict[str, Any]]:
    """The other retrievals for ``context["retrievals"]``: name, kind, query, documents; bounded, the cut marked."""
    room = MAX_RETRIEVED_CHARS
    entries = []
    for call in others[-MAX_RETRIEVALS:]:
        entry: dict[str, Any] = {"name": call.span.name, "kind": call.kind}
        query = call.reading.query if call.reading.query is not None else call.reading.input
        if query is not None:
            entry["query"] = query
        documents = call.reading.documents
        if documents is not None:
            kept = []
            for document in documents:
                room -= len(document["content"])
                if room < 0:
                    entry["documents_given"] = len(documents)
                    break
                kept.append(document)
            entry["documents"] = kept
        entries.append(entry)
    return entries
