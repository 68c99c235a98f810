"""How two results are compared: items paired, scores matched, slices adjusted for their number."""

import os
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Literal

from spangrade.errors import ConfigError
from spangrade.experiments import mismatch
from spangrade.experiments.comparison import Comparison, ScoreComparison
from spangrade.experiments.contrast import Method, Series, contrast, shown, side
from spangrade.experiments.grouping import By, Key, clusters, name_of, named_keys, slices
from spangrade.experiments.pairing import SideScores, content
from spangrade.experiments.results import Results
from spangrade.experiments.significance import holm
from spangrade.experiments.stats import need_numpy


def compared(a: Any, b: Any, by: By, cluster: Key | None, confidence: float, resamples: int, seed: int) -> Comparison:
    """See `spangrade.experiments.compare.compare`."""
    if not 0 < confidence < 1:
        raise ConfigError(f"confidence {confidence!r} is not between 0 and 1; 0.95 is usual")
    if resamples < 100:
        raise ConfigError(f"resamples {resamples!r} is too few for an interval; take at least 100 (10,000 is usual)")
    keys = named_keys(by)
    need_numpy()
    results_a, results_b = _read(a, "a"), _read(b, "b")
    side_a, side_b = SideScores(results_a), SideScores(results_b)
    common = sorted(side_a.runs.keys() & side_b.runs.keys())
    changed = [i for i in common if content(side_a.item(i)) != content(side_b.item(i))]
    ids = sorted(set(common) - set(changed))
    items = [side_a.item(i) for i in ids]
    grouped = {name: slices(name, key, items) for name, key in keys.items()} if items else {}
    method = Method(confidence, resamples, seed, clusters(cluster, items) if cluster is not None and items else None)
    rows = list(_rows(side_a, side_b, ids, grouped, method))
    rows = [shown(row, confidence) for row in _adjusted(rows)]
    found = Comparison(
        rows=tuple(rows),
        only_in_a=tuple(sorted(side_a.runs.keys() - side_b.runs.keys())),
        only_in_b=tuple(sorted(side_b.runs.keys() - side_a.runs.keys())),
        changed=tuple(changed),
        items=len(ids),
        clusters=None if method.clusters is None else len(set(method.clusters.values())),
        cluster=None if cluster is None else name_of(cluster, "by a function"),
        confidence=confidence,
        resamples=resamples,
        seed=seed,
        a=results_a,
        b=results_b,
    )
    return replace(found, warnings=tuple(_warnings(found)))


def _read(given: Any, which: str) -> Results:
    if isinstance(given, Results):
        return given
    if isinstance(given, (str, os.PathLike)):
        return Results.load(Path(given))
    raise ConfigError(
        f"compare: {which} is {type(given).__name__}; give the Results of spangrade.evaluate, or the path of saved ones"
    )


def _rows(
    a: SideScores, b: SideScores, ids: Sequence[str], grouped: dict[str, dict[str, list[str]]], method: Method
) -> Iterator[ScoreComparison]:
    names_a, names_b = a.names(), b.names()
    for name in dict.fromkeys([*names_a, *names_b]):
        for place, (key_a, key_b) in enumerate(_partners(names_a.get(name, []), names_b.get(name, []))):
            record = (b.record(key_b, name) if key_b else None) or a.record(key_a or "", name)
            label = name if place == 0 else f"{name}@{record.config_hash}"
            row = ScoreComparison(label, lower_is_better=record.lower_is_better, verdict=record.verdict)
            if key_a is None or key_b is None:
                yield _one_sided(row, name, a, b, key_a, key_b)
                continue
            series_a, series_b = (
                Series({i: side.score(name, key, i) for i in ids}) for side, key in ((a, key_a), (b, key_b))
            )
            reason = mismatch.mismatch(name, a, key_a, b, key_b)
            if reason:
                measure = _measure(series_a, series_b)
                first, second = side(series_a, measure), side(series_b, measure)
                yield replace(row, status="config mismatch", reason=reason, measure=measure, a=first, b=second)
                continue
            mine = a.record(key_a, name)
            row = replace(row, verdict=row.verdict and mine.verdict, cautions=tuple(mismatch.cautions(mine, record)))
            yield contrast(row, series_a, series_b, method)
            plain = replace(row, cautions=())
            for by, groups in grouped.items():
                for group, members in groups.items():
                    part = replace(plain, by=by, slice=group)
                    yield contrast(part, series_a.among(members), series_b.among(members), method)


def _partners(keys_a: Sequence[str], keys_b: Sequence[str]) -> Iterator[tuple[str | None, str | None]]:
    """Which evaluators of one score name belong together: those of one configuration, then what is left if it is one each."""
    both = [key for key in keys_a if key in keys_b]
    yield from ((key, key) for key in both)
    left_a, left_b = ([key for key in keys if key not in both] for keys in (keys_a, keys_b))
    if len(left_a) == len(left_b) == 1:
        yield left_a[0], left_b[0]
        return
    yield from ((key, None) for key in left_a)
    yield from ((None, key) for key in left_b)


def _one_sided(
    row: ScoreComparison, name: str, a: SideScores, b: SideScores, key_a: str | None, key_b: str | None
) -> ScoreComparison:
    where, scores, key = ("a", a, key_a) if key_a is not None else ("b", b, key_b)
    series = Series({i: scores.score(name, key or "", i) for i in scores.runs})
    measure = _measure(series, series)
    alone = side(series, measure)
    reason = f"the other side has no score {row.name!r}"
    if where == "a":
        return replace(row, status="only in a", reason=reason, measure=measure, a=alone)
    return replace(row, status="only in b", reason=reason, measure=measure, b=alone)


def _adjusted(rows: Sequence[ScoreComparison]) -> list[ScoreComparison]:
    """The slices' p values, adjusted for all of them together: every one of them is a chance to find something."""
    in_slices = [row for row in rows if row.by is not None]
    adjusted = iter(holm([row.p_value for row in in_slices]))
    return [row if row.by is None else replace(row, p_adjusted=next(adjusted)) for row in rows]


def _warnings(found: Comparison) -> Iterator[str]:
    if not found.items and found.a.items and found.b.items and not found.changed:
        first, second = found.a.items[0].item_id, found.b.items[0].item_id
        yield (
            f"no item is in both: a has ids such as {first!r}, b such as {second!r}; give the items of the dataset the same ids"
        )
    for side_name, ids in (("a", found.only_in_a), ("b", found.only_in_b)):
        if ids:
            yield f"only in {side_name}, not compared: {named(ids)}"
    if found.changed:
        yield f"another input or expected answer under the same id, not compared: {named(found.changed)}"
    for side_name, results in (("a", found.a), ("b", found.b)):
        if results.run.interrupted:
            yield f"{side_name} was interrupted before all of its items were done"
    if found.a.run.repeats != found.b.run.repeats:
        yield f"a has {found.a.run.repeats} runs of each item and b {found.b.run.repeats}; each item counts once all the same"
    slice_rows = sum(row.by is not None and row.p_value is not None for row in found.rows)
    if slice_rows > 1:
        yield (
            f"{slice_rows} figures of slices are {slice_rows} chances to find a difference that is none: what they show is by p values "
            "adjusted for that (Holm), while each interval stands for itself"
        )


def named(ids: Sequence[str], most: int = 5) -> str:
    """How many items, and the first of them by id."""
    more = f", and {len(ids) - most:,} more" if len(ids) > most else ""
    return f"{len(ids):,} item{'s' if len(ids) != 1 else ''} ({', '.join(ids[:most])}{more})"


def _measure(a: Series, b: Series) -> Literal["value", "pass rate"]:
    return "value" if a.has_values or b.has_values or not (a.has_verdicts or b.has_verdicts) else "pass rate"
