"""The pass mark: error rates at one, and the one that people's verdicts would choose, measured on items that did not choose it."""

from collections import Counter
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from spangrade.errors import ConfigError
from spangrade.experiments.calibration.bootstrap import bootstrap, summed
from spangrade.experiments.defaults import CONFIDENCE, RESAMPLES, SEED
from spangrade.experiments.stats import Interval, need_numpy, rate_interval

if TYPE_CHECKING:
    from spangrade.experiments.stats import Floats

FOLDS: Final = 5
_LEAST_PER_FOLD: Final = 2  # passes and fails, each, in a fold: with fewer a fold says nothing


@dataclass(frozen=True, slots=True)
class Verdicts:
    """What a threshold is chosen on: judge scores (0 to 1), people's verdicts, and the unit of each, shape (n,)."""

    scores: tuple[float, ...]
    passes: tuple[bool, ...]
    units: tuple[Hashable, ...]

    def only(self, units: frozenset[Hashable]) -> "Verdicts":
        """Those of some units."""
        kept = [i for i, unit in enumerate(self.units) if unit in units]
        return Verdicts(
            tuple(self.scores[i] for i in kept), tuple(self.passes[i] for i in kept), tuple(self.units[i] for i in kept)
        )


@dataclass(frozen=True, slots=True)
class Rates:
    """How a pass mark errs against people.

    Attributes:
        threshold: a score of at least that passes.
        true_positive, false_negative, false_positive, true_negative: gradings; positive is pass.
        passed_units, failed_units: items (or clusters) with a grading that people passed, or failed: the sizes of the samples
            that the rates rest on.
        true_positive_interval, false_positive_interval: of the two rates.
        held_out: whether every grading was judged by a threshold that it did not help to choose.
    """

    threshold: float
    true_positive: int
    false_negative: int
    false_positive: int
    true_negative: int
    passed_units: int
    failed_units: int
    true_positive_interval: Interval | None = None
    false_positive_interval: Interval | None = None
    held_out: bool = False

    @property
    def true_positive_rate(self) -> float | None:
        """Of what people passed, the share that the judge passed; None where they passed nothing."""
        return _share(self.true_positive, self.false_negative)

    @property
    def false_positive_rate(self) -> float | None:
        """Of what people failed, the share that the judge passed; None where they failed nothing."""
        return _share(self.false_positive, self.true_negative)


@dataclass(frozen=True, slots=True)
class Choice:
    """A pass mark chosen by a criterion.

    Attributes:
        threshold: chosen on all items; the one to ship.
        interval: of the chosen threshold, over resamples of the items.
        criterion: what was made as large as can be.
        by_fold: the threshold that the other folds chose, for each fold.
        held_out: the criterion over all items, each judged by the threshold of the folds that it is not in.
        held_out_interval: of that figure.
        shipped: the criterion at the judge's own threshold.
        rates: the error rates of the held-out verdicts.
    """

    threshold: float
    interval: Interval
    criterion: str
    by_fold: tuple[float, ...]
    held_out: float | None
    held_out_interval: Interval
    shipped: float | None
    rates: Rates


def _balanced(tp: Any, fn: Any, fp: Any, tn: Any) -> Any:
    return (tp / (tp + fn) + tn / (tn + fp)) / 2


def _accuracy(tp: Any, fn: Any, fp: Any, tn: Any) -> Any:
    return (tp + tn) / (tp + fn + fp + tn)


def _f1(tp: Any, fn: Any, fp: Any, tn: Any) -> Any:  # noqa: ARG001 - one signature for all criteria
    return 2 * tp / (2 * tp + fn + fp)


def _kappa(tp: Any, fn: Any, fp: Any, tn: Any) -> Any:
    return 2 * (tp * tn - fn * fp) / ((tp + fp) * (fp + tn) + (tp + fn) * (fn + tn))


#: By name. Balanced accuracy is (J + 1) / 2 of Youden's J = tpr + tnr - 1 (W. J. Youden, Cancer 3, 1950): the same choice.
CRITERIA: Final[dict[str, Callable[[Any, Any, Any, Any], Any]]] = {
    "balanced_accuracy": _balanced,
    "accuracy": _accuracy,
    "f1": _f1,
    "kappa": _kappa,
}


def rates_at(verdicts: Verdicts, threshold: float, *, held_out: Sequence[bool] | None = None, **how: Any) -> Rates:
    """The error rates of a threshold; ``held_out``: the judge's verdicts, where each item has a threshold of its own."""
    judged = [score >= threshold for score in verdicts.scores] if held_out is None else list(held_out)
    cells = Counter(zip(verdicts.passes, judged, strict=True))
    by_human = {
        human: [
            (float(j), unit) for j, p, unit in zip(judged, verdicts.passes, verdicts.units, strict=True) if p is human
        ]
        for human in (True, False)
    }
    intervals = {
        human: rate_interval([j for j, _ in pairs], [unit for _, unit in pairs], **how) if pairs else None
        for human, pairs in by_human.items()
    }
    return Rates(
        threshold=threshold,
        true_positive=cells[True, True],
        false_negative=cells[True, False],
        false_positive=cells[False, True],
        true_negative=cells[False, False],
        passed_units=len({unit for _, unit in by_human[True]}),
        failed_units=len({unit for _, unit in by_human[False]}),
        true_positive_interval=intervals[True],
        false_positive_interval=intervals[False],
        held_out=held_out is not None,
    )


def choose(
    verdicts: Verdicts,
    shipped: float,
    criterion: str = "balanced_accuracy",
    folds: int = FOLDS,
    *,
    confidence: float = CONFIDENCE,
    resamples: int = RESAMPLES,
    seed: int = SEED,
) -> Choice | str:
    """The pass mark that makes ``criterion`` largest, and what it is worth on items that did not choose it.

    Candidates are the scores that the judge gave; of equally good ones the nearest to the shipped threshold. Folds are drawn
    from passes and fails alike, whole units at a time (R. Kohavi, IJCAI 1995: stratified cross-validation).

    Returns:
        the `Choice`, or a sentence that says why none can be made.

    Raises:
        ConfigError: no such criterion, or fewer than 2 folds.
    """
    if criterion not in CRITERIA:
        raise ConfigError(f"criterion {criterion!r} is not one of {', '.join(CRITERIA)}")
    if folds < 2:
        raise ConfigError(f"folds {folds!r}: held-out folds are at least 2")
    candidates = _candidates(verdicts, shipped)
    if len(set(verdicts.scores)) < 2:
        return "the judge gave one and the same score to all"
    strata = _strata(verdicts)
    fewest = min(len(units) for units in strata.values())
    folds = min(folds, fewest // _LEAST_PER_FOLD)
    if folds < 2:
        return (
            f"people passed {len(strata[True])} and failed {len(strata[False])} of them; it takes 4 of each to choose on some and "
            "measure on others"
        )
    parts = _folds(strata, folds, seed)
    chosen = []
    judged = [False] * len(verdicts.scores)
    for part in parts:
        rest = frozenset(verdicts.units) - part
        mark = _best(verdicts.only(rest), candidates, criterion)
        chosen.append(mark)
        for i, unit in enumerate(verdicts.units):
            if unit in part:
                judged[i] = verdicts.scores[i] >= mark
    best = _best(verdicts, candidates, criterion)
    how = {"confidence": confidence, "resamples": resamples, "seed": seed}
    measure = CRITERIA[criterion]
    cells = _cells(judged, verdicts.passes)
    return Choice(
        threshold=best,
        interval=_threshold_interval(verdicts, candidates, criterion, how),
        criterion=criterion,
        by_fold=tuple(chosen),
        held_out=_figure(measure, cells),
        held_out_interval=bootstrap(summed(cells, verdicts.units), lambda sums: _figures(measure, sums), **how),  # type: ignore[arg-type]
        shipped=_figure(measure, _cells([s >= shipped for s in verdicts.scores], verdicts.passes)),
        rates=rates_at(verdicts, best, held_out=judged, **how),
    )


def _candidates(verdicts: Verdicts, shipped: float) -> list[float]:
    """The scores given, and the shipped threshold itself; best first where they are equally good."""
    given = {*verdicts.scores, shipped} - {min(verdicts.scores, default=shipped)}  # the lowest passes all
    return sorted(given or {shipped}, key=lambda mark: (abs(mark - shipped), -mark))


def _strata(verdicts: Verdicts) -> dict[bool, list[Hashable]]:
    passes: dict[Hashable, list[bool]] = {}
    for unit, verdict in zip(verdicts.units, verdicts.passes, strict=True):
        passes.setdefault(unit, []).append(verdict)
    found: dict[bool, list[Hashable]] = {True: [], False: []}
    for unit, given in passes.items():
        found[2 * sum(given) >= len(given)].append(unit)
    return found


def _folds(strata: dict[bool, list[Hashable]], folds: int, seed: int) -> list[frozenset[Hashable]]:
    np = need_numpy()
    rng = np.random.default_rng(seed)
    parts: list[list[Hashable]] = [[] for _ in range(folds)]
    dealt = 0
    for verdict in (True, False):
        for index in rng.permutation(len(strata[verdict])):
            parts[dealt % folds].append(strata[verdict][int(index)])
            dealt += 1
    return [frozenset(part) for part in parts]


def _best(verdicts: Verdicts, candidates: Sequence[float], criterion: str) -> float:
    np = need_numpy()
    sums = np.array([_columns(verdicts, candidates)]).sum(axis=1)
    return candidates[int(_argbest(sums, len(candidates), criterion)[0])]


def _threshold_interval(
    verdicts: Verdicts, candidates: Sequence[float], criterion: str, how: dict[str, Any]
) -> Interval:
    np = need_numpy()
    marks = np.array(candidates)
    rows = summed(_columns(verdicts, candidates), verdicts.units)
    return bootstrap(rows, lambda sums: marks[_argbest(sums, len(candidates), criterion)], among=marks, **how)


def _columns(verdicts: Verdicts, candidates: Sequence[float]) -> list[list[float]]:
    """For each grading the four cells at each candidate, shape (n, 4 * candidates)."""
    return [
        [cell for mark in candidates for cell in _cell(score >= mark, human)]
        for score, human in zip(verdicts.scores, verdicts.passes, strict=True)
    ]


def _argbest(sums: "Floats", candidates: int, criterion: str) -> Any:
    np = need_numpy()
    cells = sums.reshape(len(sums), candidates, 4)
    with np.errstate(invalid="ignore", divide="ignore"):
        figures = CRITERIA[criterion](*np.moveaxis(cells, -1, 0))
    return np.argmax(np.nan_to_num(np.round(figures, 12), nan=-1.0), axis=1)  # rounded: the first of equals


def _cell(judged: bool, human: bool) -> tuple[float, float, float, float]:
    return (
        float(human and judged),
        float(human and not judged),
        float(judged and not human),
        float(not human and not judged),
    )


def _cells(judged: Sequence[bool], passes: Sequence[bool]) -> list[tuple[float, float, float, float]]:
    return [_cell(j, p) for j, p in zip(judged, passes, strict=True)]


def _figures(measure: Callable[..., Any], sums: "Floats") -> "Floats":
    np = need_numpy()
    with np.errstate(invalid="ignore", divide="ignore"):
        return measure(*sums.T)  # type: ignore[no-any-return]


def _figure(measure: Callable[..., Any], cells: Sequence[Sequence[float]]) -> float | None:
    np = need_numpy()
    found = float(_figures(measure, np.array(cells).sum(axis=0, keepdims=True))[0])
    return found if np.isfinite(found) else None


def _share(part: int, rest: int) -> float | None:
    return part / (part + rest) if part + rest else None
