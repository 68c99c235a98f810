"""``Sample.context``: what else belongs to a call, each thing in its fixed place.

The keys ``kind``, ``span_name``, ``status`` (ok or error) and ``duration_s`` (None where the clock makes no sense) are
always there. Where known: ``messages`` (the conversation as it was sent, system turn included; the answer is `output`),
``output_messages`` (choices, or items of one response, when there are several), ``system``, ``model``, ``response_id``,
``provider``, ``usage``
(``input_tokens``, ``output_tokens``, and of these ``cache_read_tokens``, ``cache_write_tokens``, ``reasoning_tokens``),
``usage_by_model`` (when several models answered: the same counts with ``model`` and ``provider``),
``time_to_first_chunk_s`` (of a streamed answer, from the start of the call), ``tools`` (those that the models were offered,
each as it was declared), ``finish_reasons``, ``tool_calls`` (with ``result`` where a tool span or message has it), ``reasoning``,
``session_id``, ``user_id``, ``retrievals`` (those that did not give the documents), ``documents_cut``,
``dropped_attributes``. Only when True: ``searched``, ``refusal``, ``truncated``. ``assembly`` is ``partial`` when not
all had arrived. What `set_context` gave stands beside these; a name of ours is ours.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

from spangrade.samples.family import Family, by_end, by_start
from spangrade.samples.reading import Call
from spangrade.samples.retrieval import Evidence, described
from spangrade.samples.scalars import MAX_TOOLS, USAGE
from spangrade.samples.sightings import around, told_twice

MAX_TOOL_CALLS: Final = 256
_YEAR_NS: Final = 366 * 24 * 3_600 * 10**9


def context_of(
    carrier: Call, own: Sequence[Call], below: Sequence[Call], found: Evidence, sources: Sequence[Call]
) -> dict[str, Any]:
    """The context of a sample.

    Args:
        carrier: the call that carries the score.
        own: the calls that make up the sample, the carrier among them.
        below: the calls under them.
        found: the documents and retrievals.
        sources: the calls of which input, output or documents were taken.
    """
    speaker = _speaker(carrier, below)
    mine = (carrier.reading, speaker.reading)
    context: dict[str, Any] = {}
    for call in sorted([*below, *own], key=lambda c: (any(c is o for o in own), by_start(c))):
        context.update(call.reading.context)  # what the outermost says last counts
    known: dict[str, Any] = {
        "messages": list(speaker.reading.messages),
        "output_messages": list(speaker.reading.output_messages) if len(speaker.reading.output_messages) > 1 else [],
        "system": _first(r.system for r in mine),
        "model": _first(r.model for r in mine),
        "provider": _first(r.provider for r in mine),
        "response_id": _first(r.response_id for r in (mine if carrier.kind == "llm" else mine[:1])),
        "usage": usage([*own, *below]),
        "usage_by_model": usage_by_model([*own, *below]),
        "tools": offered_tools([*own, *below]),
        "finish_reasons": list(speaker.reading.finish_reasons),
        "tool_calls": tool_calls([*own, *below]),
        "reasoning": speaker.reading.reasoning,
        "session_id": _first(c.reading.session_id for c in [carrier, *own, *below]),
        "user_id": _first(c.reading.user_id for c in [carrier, *own, *below]),
        "retrievals": described(found.others),
        "documents_cut": dict(found.cut) if found.cut is not None else None,
        "dropped_attributes": sum(c.span.dropped_attributes for c in sources),
        "searched": found.searched,
        "refusal": carrier.reading.refusal or speaker.reading.refusal,
        "truncated": any(c.reading.truncated for c in sources),
    }
    context.update({key: value for key, value in known.items() if value})
    context["kind"] = carrier.kind
    context["span_name"] = carrier.span.name
    context["status"] = "error" if carrier.span.status == "error" else "ok"
    context["duration_s"] = duration_s(own)
    first_chunk = first_chunk_s(carrier, own)
    if first_chunk is not None:
        context["time_to_first_chunk_s"] = first_chunk
    return context


def _speaker(carrier: Call, below: Iterable[Call]) -> Call:
    """The call whose conversation this is: the carrier's own, else that of the last model call to end below it. A model call
    of which no content was captured has what is below it, which is itself seen again; a chain's messages lack what its
    prompt adds, so those of the model call come first."""
    told, models = carrier.reading, [call for call in below if call.kind == "llm"]
    if carrier.kind == "chain" and told.messages:
        return max((call for call in models if call.reading.messages), key=by_end, default=carrier)
    if told.messages or told.output_messages or (carrier.kind == "llm" and (told.input, told.output) != (None, None)):
        return carrier
    return max(models, key=by_end, default=carrier)


def duration_s(own: Sequence[Call]) -> float | None:
    """From the first start to the last end, in seconds; None where a time is missing, runs backwards, or was read from no
    clock (a call of more than a year). Of a span that is only a note of a call, what it says."""
    if len(own) == 1 and own[0].reading.duration_s is not None:
        return own[0].reading.duration_s
    start, end = min(call.span.start_ns for call in own), max(call.span.end_ns for call in own)
    return (end - start) / 1e9 if 0 < start <= end <= start + _YEAR_NS else None


def usage(calls: Sequence[Call]) -> dict[str, int]:
    """Tokens of all model calls, each counted once (C070).

    Of one that two instrumentations have seen (`spangrade.samples.sightings`) the sighting counts that is graded, or
    another where that says nothing. Totals that agents and chains repeat count only when no model call says anything.
    """
    total: dict[str, int] = {}
    if not any(call.reading.usage for call in calls):
        return total
    family = Family(calls)
    for key in USAGE:
        counted = [call.reading.usage[key] for call in _counted(family, key)]
        if not counted:
            counted = [
                call.reading.usage[key]
                for call in family.calls
                if call.kind in ("agent", "chain")
                and key in call.reading.usage
                and not any(key in above.reading.usage for above in family.ancestors(call))
            ]
        if counted:
            total[key] = sum(counted)
    return total


def _counted(family: Family, key: str) -> list[Call]:
    """The model calls whose ``key`` counts."""
    saying = [call for call in family.calls if call.kind == "llm" and key in call.reading.usage]
    outer = [call for call in saying if not any(key in above.reading.usage for above in around(family, call))]
    again = told_twice(outer)
    return [call for call in outer if call.span.span_id not in again]


def usage_by_model(calls: Sequence[Call]) -> list[dict[str, Any]]:
    """`usage` of each model apart, in order of first use; empty when it was one model only."""
    if sum(bool(call.reading.usage) for call in calls) < 2:
        return []
    family = Family(calls)
    models: dict[tuple[str | None, str | None], dict[str, Any]] = {}
    for key in USAGE:
        for call in _counted(family, key):
            model, provider = call.reading.model, call.reading.provider
            entry = models.setdefault((model, provider), {"model": model, "provider": provider})
            entry[key] = entry.get(key, 0) + call.reading.usage[key]
    return list(models.values()) if len(models) > 1 else []


def offered_tools(calls: Sequence[Call]) -> list[Any]:
    """The tools that the calls' models were offered, each declaration once, in order of first use."""
    tools: list[Any] = []
    if not any(call.reading.tools for call in calls):
        return tools
    for call in Family(calls).calls:
        for tool in call.reading.tools:
            if len(tools) < MAX_TOOLS and tool not in tools:
                tools.append(tool)
    return tools


def first_chunk_s(carrier: Call, own: Sequence[Call]) -> float | None:
    """Seconds from the first start to the first piece of the answer; None when the call that answers tells of none.

    That of a model call further down is not taken: whether its pieces went on to the caller as they came, nobody knows.
    """
    own_first = carrier.reading.first_chunk_s
    if own_first is None:
        return None
    waited = carrier.span.start_ns - min(call.span.start_ns for call in own)
    return own_first + waited / 1e9 if 0 <= waited <= _YEAR_NS else own_first


def tool_calls(calls: Sequence[Call]) -> list[dict[str, Any]]:
    """The tool calls that the models asked for, in order, with their results; then those only tool spans tell of.

    What two instrumentations have seen is there once. Agents repeat what their models asked for, so they count only when
    no model call tells.
    """
    if not any(call.kind == "tool" or call.reading.tool_calls for call in calls):
        return []
    family = Family(calls)
    ordered = family.calls
    models = [call for call in ordered if call.kind == "llm" and call.reading.tool_calls]
    askers = [call for call in models if not any(above in models for above in around(family, call))]
    again = told_twice([*askers, *(call for call in ordered if call.kind == "tool")])
    askers = [call for call in askers if call.span.span_id not in again]
    askers = askers or [call for call in ordered if call.kind in ("agent", "chain")]
    entries: list[dict[str, Any]] = []
    results: dict[str, Any] = {}
    seen: set[str | None] = set()
    for call in ordered:
        for message in (
            *call.reading.messages,
            *call.reading.output_messages,
        ):  # an agent's whole run may be its output
            if message.get("role") == "tool" and message.get("tool_call_id"):
                results.setdefault(message["tool_call_id"], message.get("content"))
    for call in askers:
        for asked in call.reading.tool_calls:
            call_id = asked.get("id")
            if call_id is None or call_id not in seen:
                seen.add(call_id)
                entries.append(dict(asked))
    for call in ordered:
        if call.kind == "tool" and call.span.span_id not in again:
            _add_executed(entries, call)
    for entry in entries:
        if "result" not in entry and entry.get("id") in results:
            entry["result"] = results[entry["id"]]
    return entries[:MAX_TOOL_CALLS]


def _add_executed(entries: list[dict[str, Any]], call: Call) -> None:
    unnamed = {"name": call.span.name, "arguments": call.reading.input}
    named: Mapping[str, Any] = next(iter(call.reading.tool_calls), unnamed)
    done: dict[str, Any] = {key: value for key, value in named.items() if value is not None}
    if call.reading.output is not None:
        done["result"] = call.reading.output
    call_id = done.get("id")
    for entry in entries:
        same = entry.get("id") == call_id if call_id is not None else entry.get("name") == done.get("name")
        if same and "result" not in entry:
            entry.update({**done, **entry})
            return
    entries.append(done)


def _first(values: Iterable[Any]) -> Any:
    return next((value for value in values if value is not None), None)
