"""The explanation as lines for a terminal."""

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Final

_VALUE_CHARS: Final = 110
_MARKS: Final = {
    "would_run": "would run",
    "would_grade": "would grade",
    "depends": "depends",
    "not_sampled": "not sampled",
    "over_budget": "over budget",
}


def lines(explained: Mapping[str, Any]) -> Iterator[str]:
    """Traces apart; under each its spans, indented by who called whom."""
    spans: Sequence[Mapping[str, Any]] = explained["spans"]
    for trace_id, members in _by_trace(spans).items():
        calls = sum(1 for span in members if span["kind"] is not None and not span["evaluator"])
        services = ", ".join(dict.fromkeys(span["service"] for span in members if span["service"]))
        yield (
            f"trace {trace_id}: {_many(len(members), 'span')}, {_many(calls, 'call')}"
            + (f", of {_plain(services)}" if services else "")
        )
        for depth, span in _in_tree(members):
            yield ""
            yield from (f"{'  ' * min(depth, 8)}{line}".rstrip() for line in _span(span))
        yield ""
    for note in explained.get("notes", ()):
        yield f"note: {_plain(note)}"


def _by_trace(spans: Iterable[Mapping[str, Any]]) -> dict[str, list[Mapping[str, Any]]]:
    found: dict[str, list[Mapping[str, Any]]] = {}
    for span in spans:
        found.setdefault(span["trace_id"], []).append(span)
    return found


def _in_tree(spans: Sequence[Mapping[str, Any]]) -> Iterator[tuple[int, Mapping[str, Any]]]:
    """Each span with its depth, children behind their parent; those whose parent is not here are at the top."""
    ids = {span["span_id"] for span in spans}
    below: dict[str, list[Mapping[str, Any]]] = {}
    for span in spans:
        parent = span["parent_span_id"]
        below.setdefault(parent if parent in ids and parent != span["span_id"] else "", []).append(span)
    todo = [(0, span) for span in reversed(below.get("", ()))]
    shown: set[int] = set()
    while todo:
        depth, span = todo.pop()
        shown.add(id(span))
        yield depth, span
        todo += [(depth + 1, child) for child in reversed(below.pop(span["span_id"], ()))]
    yield from ((0, span) for span in spans if id(span) not in shown)  # parents in a circle


def _span(span: Mapping[str, Any]) -> Iterator[str]:
    kind = "an evaluator's" if span["evaluator"] else span["kind"]
    what = f"{kind}, read as {' + '.join(span['dialects'])}" if kind and span["dialects"] else kind or "no call"
    scope = f", by {_plain(span['scope'])}" if span["scope"] else ""
    yield f"{_plain(span['name']) or '(unnamed)'}  [{what}{scope}]  span {span['span_id']}"
    said: set[str | None] = set()
    for finding in span["findings"]:
        yield from _said("  - " if finding["harmless"] else "  ! ", finding)
        said.add(finding["fix"])
    for sample in span["samples"]:
        yield f"  {sample['target']} sample{' (partial: its root is not here)' if sample['partial'] else ''}"
        for name in ("input", "output"):
            yield f"    {name + ':':<11}{_value(sample.get(name))}"
        yield f"    {'documents:':<11}{_documents(sample)}"
        context = _context(sample.get("context") or {})
        if context:
            yield f"    {'context:':<11}{context}"
        for pair in sample["pairs"]:
            yield from _pair(pair, said)
    yield from _not_seen(span["not_seen"])


def _said(mark: str, finding: Mapping[str, Any]) -> Iterator[str]:
    yield f"{mark}{_plain(finding['says'])}"
    if finding["fix"]:
        yield f"{' ' * len(mark)}→ {_plain(finding['fix'])}"


def _pair(pair: Mapping[str, Any], said: set[str | None]) -> Iterator[str]:
    """``said``: fixes that stand above already."""
    outcome = _MARKS.get(pair["outcome"], pair["outcome"])
    scores = "; ".join(map(_score, pair["scores"]))
    says = scores or pair["says"]
    yield f"    - {_plain(pair['evaluator'])}: {outcome}{f': {_plain(says)}' if says else ''}"
    if pair["fix"] and not scores:
        yield f"      → {'as above' if pair['fix'] in said else _plain(pair['fix'])}"
        said.add(pair["fix"])


def _score(score: Mapping[str, Any]) -> str:
    verdict = None if score["passed"] is None else ("pass" if score["passed"] else "fail")
    value = None if score["value"] is None else f"{score['value']:.4g}"
    label = score["label"] if score["label"] != verdict else None
    said = " ".join(str(part) for part in (score["error_type"], verdict, label, value) if part is not None)
    why = f" ({_cut(score['explanation'])})" if score["explanation"] else ""
    return f"{score['name']} {said}{why}"


def _not_seen(entries: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    """Evaluators that give the same reason share a line."""
    reasons: dict[str, list[Mapping[str, Any]]] = {}
    for entry in entries:
        reasons.setdefault(entry["says"], []).append(entry)
    for says, mine in reasons.items():
        names = ", ".join(_plain(entry["evaluator"]) for entry in mine)
        yield f"  not looked at by {names}: {_plain(says)}"
        if mine[0]["fix"]:
            yield f"    → {_plain(mine[0]['fix'])}"


def _value(value: Any) -> str:
    if value is None:
        return "none"
    if value == "":
        return '""'
    return _cut(value if isinstance(value, str) else json.dumps(value, ensure_ascii=False))


def _documents(sample: Mapping[str, Any]) -> str:
    documents = sample.get("documents") or ()
    if not documents:
        searched = (sample.get("context") or {}).get("searched") or sample.get("searched")
        return "none, searched and found nothing" if searched else "none, nobody searched"
    texts = [document.get("content") or "" for document in documents]
    return f"{len(documents)}: {_cut(' | '.join(texts))}"


def _context(context: Mapping[str, Any]) -> str:
    parts = []
    for name in ("model", "session_id", "status"):
        if context.get(name) not in (None, "ok"):
            parts.append(f"{name} {_cut(str(context[name]))}")
    for name in ("messages", "output_messages", "tool_calls", "retrievals", "tools"):
        if context.get(name):
            parts.append(_many(len(context[name]), name.removesuffix("s").replace("_", " ")))
    usage = context.get("usage") or {}
    if "input_tokens" in usage or "output_tokens" in usage:
        parts.append(f"tokens {usage.get('input_tokens', '?')} in, {usage.get('output_tokens', '?')} out")
    parts += [name for name in ("refusal", "truncated") if context.get(name)]
    return ", ".join(parts)


def _many(count: int, one: str) -> str:
    return f"{count} {one}{'' if count == 1 else 's'}"


def _cut(text: str) -> str:
    """One line of it."""
    short = " ".join(_plain(text).split())
    return short if len(short) <= _VALUE_CHARS else f"{short[: _VALUE_CHARS - 1]}…"


def _plain(text: Any) -> str:
    """Without what would drive the terminal: control characters and half characters become escapes."""
    return "".join(char if char.isprintable() or char in "\n\t" else ascii(char)[1:-1] for char in str(text))
