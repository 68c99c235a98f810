"""The report of a comparison."""

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any, Final

from spangrade.experiments.comparison_table import figure, interval, notes, signed
from spangrade.experiments.pairing import SideScores
from spangrade.experiments.report import differences, intervals
from spangrade.experiments.report.render import rendered
from spangrade.experiments.report.scores import score_line
from spangrade.experiments.report.texts import MAX_ITEMS, MAX_PAGE_CHARS, glance_of, moment, text_of

if TYPE_CHECKING:
    from spangrade.experiments.comparison import Comparison, Pair, ScoreComparison, Side
    from spangrade.experiments.records import ItemResult
    from spangrade.experiments.results import Results

_MOST_ROWS: Final = 300
_MOST_IDS: Final = 50


def page(comparison: "Comparison") -> str:
    """See `spangrade.experiments.report.html_of_comparison`."""
    a, b = comparison.a.run, comparison.b.run
    overall = [row for row in comparison.rows if row.by is None]
    items, left_out = _cards(comparison, overall)
    return rendered(
        "comparison.html",
        title=f"{b.name} against {a.name}: comparison",
        a=a,
        b=b,
        facts=list(_facts(comparison)),
        summary=summary(comparison),
        figures=[
            {"name": row.name, "picture": differences.differences(row), "said": differences.said(row)}
            for row in overall
            if row.pairs
        ],
        names=[row.name for row in overall],
        items=items,
        left_out=left_out,
        total=comparison.items,
        unpaired=[
            (words, ids[:_MOST_IDS], max(0, len(ids) - _MOST_IDS))
            for words, ids in (
                ("only in a", comparison.only_in_a),
                ("only in b", comparison.only_in_b),
                ("another input or expected answer in b", comparison.changed),
            )
            if ids
        ],
    )


def summary(comparison: "Comparison") -> dict[str, Any]:
    """The table of differences, and what to bear in mind."""
    shown = comparison.rows[:_MOST_ROWS]
    far = {name: intervals.reach(row for row in shown if row.name == name) for name in comparison.names()}
    return {
        "a": comparison.a.run.name,
        "b": comparison.b.run.name,
        "confidence": f"{100 * comparison.confidence:.4g} %",
        "rows": [_row(row, far[row.name]) for row in shown],
        "more_rows": len(comparison.rows) - len(shown),
        "warnings": comparison.warnings,
        "notes": [(row.name, note) for row in comparison.rows if row.by is None for note in notes(row)],
        "cautious": any(row.interval is not None and row.interval.caution for row in shown),
        "resamples": f"{comparison.resamples:,}",
        "seed": comparison.seed,
        "cluster": comparison.cluster,
    }


def _row(row: "ScoreComparison", far: float) -> dict[str, Any]:
    look = {"better": "pass", "worse": "fail"}.get(row.shows or "", "soft")
    mark = {"better": "▲ ", "worse": "▼ "}.get(row.shows or "", "")
    return {
        "name": row.name if row.by is None else f"{row.by} = {row.slice}",
        "slice": row.by is not None,
        "status": row.status,
        "compared": row.delta is not None,
        "reason": row.reason,
        "measure": row.measure,
        "a": figure(row.a.mean),
        "b": figure(row.b.mean),
        "delta": None if row.delta is None else signed(row.delta),
        "interval": interval(row),
        "strip": intervals.difference_strip(row, far),
        "n": row.n,
        "look": look,
        "shows": f"{mark}{row.shows}" if row.shows else "",
        "detectable": figure(row.smallest_difference),
        "pass_a": _pass_rate(row.a),
        "pass_b": _pass_rate(row.b),
        "labels": [
            (label, row.a.labels.get(label, 0), row.b.labels.get(label, 0))
            for label in {**row.a.labels, **row.b.labels}
        ]
        if row.status == "labels only"
        else [],
    }


def _pass_rate(side: "Side") -> str | None:
    """The pass rate, where it says more than the mean does."""
    return None if side.pass_rate in (None, side.mean) else f"{side.pass_rate:.1%}"


def _facts(comparison: "Comparison") -> Iterator[tuple[str, str]]:
    for name, results in (("a", comparison.a), ("b", comparison.b)):
        run = results.run
        yield name, f"{run.name} ({run.dataset}{', ' + moment(run.started) if run.started else ''})"
    units = f"{comparison.items:,} in both"
    if comparison.clusters is not None:
        units += f", in {comparison.clusters:,} clusters ({comparison.cluster})"
    yield "Items", units


def _cards(comparison: "Comparison", overall: "Sequence[ScoreComparison]") -> tuple[list[dict[str, Any]], int]:
    """The items in both, those that lost most first, as many as fit; and how many are left out."""
    pairs = {row.name: {pair.item_id: pair for pair in row.pairs} for row in overall}
    far = {row.name: max((abs(pair.delta) for pair in row.pairs), default=0.0) or 1.0 for row in overall}
    side_a, side_b = SideScores(comparison.a), SideScores(comparison.b)
    ids = sorted((side_a.runs.keys() & side_b.runs.keys()) - set(comparison.changed))

    def gain(item_id: str) -> float:
        found = [(row, pairs[row.name].get(item_id)) for row in overall if row.verdict]
        return sum(_gain(row, pair) / far[row.name] for row, pair in found if pair is not None)

    cards: list[dict[str, Any]] = []
    room = MAX_PAGE_CHARS
    for item_id in sorted(ids, key=lambda one: (round(gain(one), 9), one)):
        if len(cards) == MAX_ITEMS or room <= 0:
            break
        first, second = side_a.runs[item_id], side_b.runs[item_id]
        changes = {row.name: _change(row, pairs[row.name].get(item_id)) for row in overall}
        outputs = [_outputs("a", first, comparison.a), _outputs("b", second, comparison.b)]
        fields = [(name, text_of(getattr(first[0], name.lower()))) for name in ("Input", "Expected")]
        room -= sum(len(text.shown) for _, text in fields if text is not None) + sum(side["chars"] for side in outputs)
        looks = [change["look"] for change in changes.values()]
        cards.append(
            {
                "id": item_id,
                "tone": "fail" if "fail" in looks else "pass" if "pass" in looks else "",
                "tokens": " ".join(f"{place}:{change['outcome']}" for place, change in enumerate(changes.values())),
                "glance": glance_of(first[0].input) or glance_of(first[0].output),
                "fields": [(name, text) for name, text in fields if text is not None],
                "sides": outputs,
                "changes": [changes[row.name] for row in overall if row.pairs],
            }
        )
    return cards, len(ids) - len(cards)


def _gain(row: "ScoreComparison", pair: "Pair") -> float:
    return -pair.delta if row.lower_is_better and row.measure == "value" else pair.delta


def _change(row: "ScoreComparison", pair: "Pair | None") -> dict[str, str]:
    if pair is None:
        return {
            "name": row.name,
            "look": "soft",
            "outcome": "unpaired",
            "said": "not paired",
        }
    gain = _gain(row, pair)
    said = f"{figure(pair.a)} → {figure(pair.b)}"
    if gain == 0:
        return {"name": row.name, "look": "soft", "outcome": "same", "said": f"{figure(pair.a)} in both"}
    if not row.verdict:
        return {"name": row.name, "look": "soft", "outcome": "up" if pair.delta > 0 else "down", "said": said}
    better = gain > 0
    return {
        "name": row.name,
        "look": "pass" if better else "fail",
        "outcome": "better" if better else "worse",
        "said": f"{'▲ better' if better else '▼ worse'} {said}",
    }


def _outputs(name: str, runs: "Sequence[ItemResult]", results: "Results") -> dict[str, Any]:
    """One side's outputs of an item (of several repeats the first), with what was said of it."""
    records = {record.key: record for record in results.evaluators}
    run = runs[0]
    output = text_of(run.output)
    lines = [score_line(score, records.get(score.evaluator)) for score in run.scores]
    chars = len(output.shown) if output else 0
    return {
        "name": f"{name}: {results.run.name}" + (f", run 1 of {len(runs)}" if len(runs) > 1 else ""),
        "output": output,
        "error": None if run.error is None else f"{run.error.type}: {run.error.message}",
        "lines": lines,
        "chars": chars + sum(len(line.why.shown) for line in lines if line.why is not None),
    }
