"""`Calibration`: how far a judge agrees with people, and the error rates that correct what it counts."""

import os
from collections.abc import Mapping
from dataclasses import dataclass, fields, is_dataclass
from pathlib import Path
from typing import Any, Final

from spangrade.errors import ConfigError
from spangrade.experiments.calibration.agreement import Level, Weights
from spangrade.experiments.calibration.correction import ErrorRates
from spangrade.experiments.calibration.labels import LabelScale
from spangrade.experiments.calibration.stability import Order, Retest
from spangrade.experiments.calibration.threshold import Choice, Rates
from spangrade.experiments.format import to_text
from spangrade.experiments.stats import Interval

FORMAT: Final = 1
KIND: Final = "spangrade.judge_calibration"
#: Fewer labelled passes, or fails, than this, and error rates are not written: at 10 a rate of 0.8 is known to within 0.25.
LEAST_EACH: Final = 10
LEAST: Final = 30


@dataclass(frozen=True, slots=True)
class Figure:
    """A figure with its interval; None where it is not defined."""

    value: float | None
    interval: Interval | None = None


@dataclass(frozen=True, slots=True)
class Annotators:
    """How far people agree with each other, which is what a judge can be asked for.

    Attributes:
        names: the annotators.
        alpha: Krippendorff's alpha of them, at ``level``.
        alpha_with_judge: the same with the judge as one more annotator.
        level: ``nominal`` for pass and fail, ``ordinal`` for 1 to 5, ``interval`` for numbers.
        kappa_among: the mean kappa of each two annotators who share items.
        kappa_judge: the judge's with each annotator, and on how many items.
    """

    names: tuple[str, ...]
    alpha: float | None
    alpha_with_judge: float | None
    level: Level
    kappa_among: float | None
    kappa_judge: Mapping[str, tuple[float | None, int]]


@dataclass(frozen=True, slots=True)
class Calibration:
    """A judge held against people's labels. ``print`` it, or ``to_dict``; ``save`` writes the error rates.

    Attributes:
        judge, config_hash, scale, threshold: the judge.
        models: those that answered.
        labels, labels_hash, label_scale: the labels' file, a hash of what is in it, and its scale.
        label_pass: the least label, 0 to 1, that is a pass.
        items: rows in the labels' file; ``unlabelled`` and ``split`` (no majority) of them have no label that counts.
        repeats: how often each item was asked for.
        gradings, n: asked for, and those that gave a score; all figures are over these n.
        errors: why the others gave none, by kind; no number stands for them.
        error_messages: the first message of each kind.
        clusters: units that are drawn again for intervals.
        input_tokens, output_tokens: of all gradings; None where a reply did not tell.
        agreement: the share on which judge and people say exactly the same: the level, or the verdict.
        kappa: Cohen's, with ``weights``: quadratic where both are on levels, else None (of verdicts).
        level_kappa: the same without weights, where both are on levels; else None.
        verdict_agreement, verdict_kappa: of pass and fail at the shipped threshold.
        bias: the mean of judge minus people on scores 0 to 1, where people gave levels or numbers.
        confusion: people's labels (rows), the judge's (columns), and counts.
        order: what another order of documents or examples changes; ``order_note`` says why there is none.
        cached: gradings that came from a cache of the judge's, which tell nothing of how stable it is.
        retest: what asking again changes; None with one repeat.
        annotators: None without several.
        choice: the pass mark that the labels choose; ``choice_note`` says why there is none.
        rates: the error rates at the shipped threshold.
    """

    judge: str
    config_hash: str
    scale: str
    threshold: float
    models: tuple[str, ...]
    labels: str
    labels_hash: str
    label_scale: LabelScale
    label_pass: float
    items: int
    unlabelled: int
    split: int
    repeats: int
    gradings: int
    n: int
    errors: Mapping[str, int]
    error_messages: Mapping[str, str]
    clusters: int
    input_tokens: int | None
    output_tokens: int | None
    agreement: Figure
    kappa: Figure
    weights: Weights
    level_kappa: Figure | None
    verdict_agreement: Figure
    verdict_kappa: Figure
    bias: Figure | None
    confusion: "Confusion"
    order: tuple[Order, ...]
    order_note: str | None
    cached: int
    retest: Retest | None
    annotators: Annotators | None
    choice: Choice | None
    choice_note: str | None
    rates: Rates

    @property
    def coverage(self) -> float:
        """The share of gradings that gave a score."""
        return self.n / self.gradings if self.gradings else 0.0

    def to_dict(self) -> dict[str, Any]:
        """Everything, as plain values."""
        return {"format": FORMAT, "kind": KIND, **_plain(self), "coverage": self.coverage}

    def __str__(self) -> str:
        from spangrade.experiments.calibration.table import table

        return table(self)

    def error_rates(self) -> dict[str, ErrorRates]:
        """What corrects a pass rate: at the ``shipped`` threshold and, where there is one, at the ``chosen`` one.

        Raises:
            ConfigError: too few labels, or the judge is no better than a coin.
        """
        at = {"shipped": self.rates, **({"chosen": self.choice.rates} if self.choice is not None else {})}
        passed, failed = self.rates.passed_units, self.rates.failed_units
        if passed < LEAST_EACH or failed < LEAST_EACH or passed + failed < LEAST:
            raise ConfigError(
                f"error rates from so few labels would correct nothing: of the items (or clusters of them) that judge {self.judge!r} graded people "
                f"passed {passed} and failed {failed}; it takes {LEAST_EACH} of each and {LEAST} together, so label more "
                f"(and more of what people {'pass' if passed < failed else 'fail'})"
            )
        found = {name: _error_rates(rates) for name, rates in at.items()}
        useful = {name: rates for name, rates in found.items() if rates.informs}
        if not useful:
            rates = found["shipped"]
            raise ConfigError(
                f"judge {self.judge!r} passes {rates.true_positive_rate:.0%} of what people pass and "
                f"{1 - rates.true_negative_rate:.0%} of what they fail: such verdicts cannot be corrected; mend the judge's criteria"
            )
        return useful

    def save(self, path: "str | os.PathLike[str]") -> None:
        """Write the figures, and the error rates that correct a pass rate (`read_calibration` reads them).

        Raises:
            ConfigError: as `error_rates`; or the file cannot be written.
        """
        rates = {name: found.to_plain() for name, found in self.error_rates().items()}
        plain = {**self.to_dict(), "error_rates": rates}
        try:
            Path(path).write_text(to_text(plain, indent=2) + "\n", encoding="utf-8")
        except OSError as fault:
            raise ConfigError(f"calibration {str(path)!r} cannot be written: {fault.strerror or fault}") from fault


@dataclass(frozen=True, slots=True)
class Confusion:
    """``counts[i][j]``: gradings where people said ``people[i]`` and the judge ``judge[j]``."""

    people: tuple[str, ...]
    judge: tuple[str, ...]
    counts: tuple[tuple[int, ...], ...]


def read_calibration(path: "str | os.PathLike[str]") -> dict[str, ErrorRates]:
    """The error rates in a file that `Calibration.save` wrote: ``shipped``, ``chosen``.

    Raises:
        ConfigError: the file cannot be read, is no calibration, or has a format that this version does not know.
    """
    import json

    what = f"calibration {str(path)!r}"
    try:
        raw = json.loads(Path(path).read_text(encoding="utf-8"))
    except OSError as fault:
        raise ConfigError(f"{what} cannot be read: {fault.strerror or fault}") from fault
    except ValueError as fault:
        raise ConfigError(f"{what} is not JSON: {fault}") from fault
    if not isinstance(raw, dict) or raw.get("kind") != KIND:
        raise ConfigError(f"{what} is no calibration; write one with spangrade judge calibrate --output FILE")
    if raw.get("format") != FORMAT:
        raise ConfigError(
            f"{what} has format {raw.get('format')!r}; this version of spangrade reads format {FORMAT}: calibrate again, or read it "
            "with the version that wrote it"
        )
    try:
        return {name: ErrorRates.of_plain(rates) for name, rates in raw["error_rates"].items()}
    except (KeyError, TypeError, ValueError, AttributeError) as fault:
        raise ConfigError(f"{what} is damaged: {fault}") from fault


def _error_rates(rates: Rates) -> ErrorRates:
    passed, failed = rates.true_positive_rate, rates.false_positive_rate
    assert passed is not None  # both are there: enough labels of each
    assert failed is not None
    return ErrorRates(rates.threshold, passed, 1 - failed, rates.passed_units, rates.failed_units, rates.held_out)


def _plain(value: Any) -> Any:
    if is_dataclass(value) and not isinstance(value, type):
        plain = {field.name: _plain(getattr(value, field.name)) for field in fields(value)}
        if isinstance(value, Rates):
            plain |= {name: getattr(value, name) for name in ("true_positive_rate", "false_positive_rate")}
        return plain
    if isinstance(value, Mapping):
        return {str(key): _plain(one) for key, one in value.items()}
    return [_plain(one) for one in value] if isinstance(value, (list, tuple)) else value
