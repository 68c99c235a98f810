"""The report of one experiment."""

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from markupsafe import Markup

from spangrade.experiments.comparison import Comparison
from spangrade.experiments.comparison_table import figure
from spangrade.experiments.pairing import SideScores
from spangrade.experiments.records import ItemResult, RunRecord
from spangrade.experiments.report import comparison_page, histogram, intervals
from spangrade.experiments.report.render import rendered
from spangrade.experiments.report.scores import badness, places, score_line, tokens, tone
from spangrade.experiments.report.texts import MAX_ITEMS, MAX_PAGE_CHARS, Text, glance_of, moment, text_of
from spangrade.experiments.stats import mean_interval, rate_interval
from spangrade.model.outcome import Outcome

if TYPE_CHECKING:
    from spangrade.experiments.results import Results


@dataclass(frozen=True, slots=True)
class Field:
    """A part of an item: its name and text."""

    name: str
    text: Text


def page(results: "Results") -> str:
    """See `spangrade.experiments.report.html_of`."""
    names = results.names()
    side = SideScores(results)
    rows = [_row(results, side, name) for name in names]
    items, left_out = _cards(results)
    baseline = results.comparison if isinstance(results.comparison, Comparison) else None
    return rendered(
        "results.html",
        title=f"{results.run.name}: results",
        run=results.run,
        facts=list(facts(results.run, len(results.items))),
        rows=rows,
        cautious=any("?" in row["interval"] + row.get("rate_interval", "") for row in rows),
        figures=list(_figures(results, side, names)),
        names=names,
        items=items,
        left_out=left_out,
        total=len(results.items),
        failures=len(results.failures),
        baseline=comparison_page.summary(baseline) if baseline is not None else None,
    )


def facts(run: RunRecord, runs: int) -> Iterator[tuple[str, str]]:
    """What stands at the top: a word and what it is."""
    times = f", {runs:,} runs" if run.repeats > 1 else ""
    count = run.dataset_items or runs
    yield "Dataset", f"{run.dataset} ({count:,} item{'s' if count != 1 else ''}{times})"
    if run.task:
        yield "Task", run.task
    if run.started:
        yield "Started", moment(run.started)
    if run.duration_s:
        yield "Took", f"{run.duration_s:,.1f} s"
    for key, value in run.metadata.items():
        yield str(key), glance_of(value)
    if run.interrupted:
        yield "Interrupted", "before all items were done"


def _row(results: "Results", side: SideScores, name: str) -> dict[str, Any]:
    line = results.summary()[name]
    record = results.evaluator(name)
    scores = [side.score(line.score, record.key, item_id) for item_id in side.runs]
    numbers = [score.value for score in scores if score.value is not None]
    rates = [score.rate for score in scores if score.rate is not None]
    row: dict[str, Any] = {
        "name": name,
        "kind": "judge" if record.kind == "llm" else "metric",
        "version": record.version,
        "config": record.config_hash,
        "threshold": None if record.threshold is None else figure(record.threshold),
        "lower": record.lower_is_better,
        "n": line.n,
        "mean": figure(line.mean),
        "interval": intervals.plain(mean_interval(numbers)) if numbers else "",
        "rate": None,
        "strip": None,
        "skipped": line.skipped,
        "errors": line.errors + line.timeouts,
        "not_run": line.not_run,
    }
    if rates:
        within = rate_interval(rates)
        rate = sum(rates) / len(rates)
        row |= {
            "rate": f"{rate:.1%}",
            "rate_interval": intervals.percent(within),
            "strip": intervals.rate_strip(name, rate, within),
        }
    return row


def _figures(results: "Results", side: SideScores, names: Sequence[str]) -> Iterator[dict[str, Any]]:
    for name in names:
        record = results.evaluator(name)
        scores = [
            score for score in side.given(results.summary()[name].score, record.key) if score.outcome is Outcome.SCORED
        ]
        values = [(score.value, score.passed) for score in scores if score.value is not None]
        if values:
            spread = histogram.Spread(name, values, record.threshold, record.lower_is_better)
            yield {"name": name, "picture": histogram.histogram(spread), "said": histogram.said(spread)}
            continue
        labels = Counter(score.label for score in scores if score.label is not None)
        if labels:
            yield {
                "name": name,
                "labels": _labels(labels),
                "said": f"{sum(labels.values()):,} labels, {len(labels)} kinds",
            }


def _labels(labels: Counter[str]) -> list[tuple[str, int, Markup]]:
    total = sum(labels.values())
    return [(label, count, intervals.share_strip(label, count / total)) for label, count in labels.most_common(12)]


def _cards(results: "Results") -> tuple[list[dict[str, Any]], int]:
    """The items, the worst first, as many as fit; and how many are left out."""
    order = sorted(badness(results).items(), key=lambda pair: (pair[1], pair[0]))
    records = {record.key: record for record in results.evaluators}
    at = places(results)
    cards: list[dict[str, Any]] = []
    room = MAX_PAGE_CHARS
    for place, _ in order:
        if len(cards) == MAX_ITEMS or room <= 0:
            break
        item = results.items[place]
        lines = [score_line(score, records.get(score.evaluator)) for score in item.scores]
        fields = list(item_fields(item))
        room -= sum(len(field.text.shown) for field in fields)
        room -= sum(len(line.why.shown) for line in lines if line.why is not None)
        cards.append(
            {
                "id": item.item_id,
                "run": item.repeat + 1 if results.run.repeats > 1 else None,
                "tone": tone(item),
                "tokens": tokens(item, at),
                "glance": glance_of(item.input) or glance_of(item.output),
                "error": None if item.error is None else f"{item.error.type}: {item.error.message}",
                "fields": fields,
                "lines": lines,
                "trace": item.trace_id,
            }
        )
    return cards, len(results.items) - len(cards)


def item_fields(item: ItemResult) -> Iterator[Field]:
    """An item's own parts, without those that it does not have."""
    parts: dict[str, Any] = {"Input": item.input, "Output": item.output, "Expected": item.expected}
    for number, document in enumerate(item.documents, 1):
        content = document.get("content")
        parts[f"Document {number}"] = content if isinstance(content, str) else document
    parts |= {"Context": item.context or None, "Metadata": item.metadata or None}
    for name, value in parts.items():
        text = text_of(value)
        if text is not None:
            yield Field(name, text)
