"""A calibration as plain text."""

from spangrade._values import cut
from spangrade.experiments.calibration.result import Annotators, Calibration, Figure
from spangrade.experiments.calibration.stability import Order, Retest
from spangrade.experiments.calibration.threshold import Choice, Rates
from spangrade.experiments.stats import Interval

_MESSAGE = 160


def table(found: Calibration) -> str:
    """One line for each figure; what could not be told says why."""
    lines = [
        f"judge {found.judge} ({', '.join(found.models) or 'no model answered'}), scale {found.scale}, passes at {found.threshold:g}",
        f"labels {found.labels}: {_labels(found)}",
        f"graded {found.n} of {found.gradings} ({found.coverage:.1%})" + (_errors(found)),
    ]
    lines += [f"  {kind}: {cut(message, _MESSAGE)}" for kind, message in found.error_messages.items()]
    if not found.n:
        return "\n".join([*lines, "nothing was graded, so nothing is known of the judge"])
    if found.input_tokens is not None and found.output_tokens is not None:
        lines.append(f"tokens {found.input_tokens:,} in, {found.output_tokens:,} out")
    lines += ["", *_agreement(found), "", *_confusion(found), ""]
    lines += [_order(one) for one in found.order] or [f"order stability       {found.order_note}"]
    lines.append(
        _retest(found.retest)
        if found.retest is not None
        else "test-retest           not asked for (--repeats 2 or more)"
    )
    if found.annotators is not None:
        lines += ["", *_annotators(found.annotators)]
    lines += ["", f"error rates at the shipped threshold {found.rates.threshold:g}", *_rates(found.rates)]
    if found.choice is not None:
        lines += _choice(found.choice)
    else:
        lines.append(f"chosen threshold      none: {found.choice_note}")
    if found.cached:
        lines.append(
            f"note: {found.cached} gradings came from the judge's cache, which tell nothing of how stable it is"
        )
    lines += [f"note: {caution}" for caution in _cautions(found)]
    return "\n".join(lines)


def _labels(found: Calibration) -> str:
    said = [f"{found.items} items on scale {found.label_scale}"]
    if found.label_scale != "pass-fail":
        mark = found.label_pass * 4 + 1 if found.label_scale == "1-5" else found.label_pass
        said.append(f"a label of {mark:g} or more is a pass")
    if found.unlabelled:
        said.append(f"{found.unlabelled} without a label left out")
    if found.split:
        said.append(f"{found.split} without a majority left out")
    if found.repeats > 1:
        said.append(f"graded {found.repeats} times each")
    return ", ".join(said)


def _errors(found: Calibration) -> str:
    if not found.errors:
        return ""
    kinds = ", ".join(f"{kind} {count}" for kind, count in found.errors.items())
    return f"; no score from {found.gradings - found.n} ({kinds}), which count nowhere below"


def _agreement(found: Calibration) -> list[str]:
    if found.weights == "quadratic":
        return [
            f"same level            {_figure(found.agreement, share=True)}",
            f"weighted kappa        {_figure(found.kappa)}  (Cohen, quadratic weights)",
            *([f"kappa of levels       {_figure(found.level_kappa)}"] if found.level_kappa is not None else []),
            *([f"judge minus people    {_figure(found.bias)}  (scores 0 to 1)"] if found.bias is not None else []),
            f"same verdict          {_figure(found.verdict_agreement, share=True)}",
            f"kappa of verdicts     {_figure(found.verdict_kappa)}",
        ]
    return [
        f"agreement             {_figure(found.agreement, share=True)}",
        f"Cohen's kappa         {_figure(found.kappa)}",
    ]


def _confusion(found: Calibration) -> list[str]:
    rows = [("people \\ judge", *found.confusion.judge)]
    for label, counts in zip(found.confusion.people, found.confusion.counts, strict=True):
        rows.append((label, *map(str, counts)))
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
    return [
        "  ".join(
            [row[0].ljust(widths[0]), *(cell.rjust(width) for cell, width in zip(row[1:], widths[1:], strict=True))]
        )
        for row in rows
    ]


def _order(one: Order) -> str:
    if one.flips is None:
        return f"order of {one.what:<13}nothing was graded in both orders"
    failed = f"; {sum(one.errors.values())} failed in the other order" if one.errors else ""
    return (
        f"order of {one.what:<13}{_share(one.flips, one.flips_interval)} of {one.n} verdicts flip when reversed; kappa {_number(one.kappa)} "
        f"between the orders; with people {_number(one.kappa_given)} as given, {_number(one.kappa_reversed)} reversed, "
        f"{_number(one.kappa_both)} both{failed}"
    )


def _retest(one: Retest) -> str:
    if one.flips is None:
        return "test-retest           no item was graded twice"
    kappas = [kappa for kappa in one.kappas if kappa is not None]
    said = f"{min(kappas):.3f} to {max(kappas):.3f}" if kappas else "not defined"
    return (
        f"test-retest           {_share(one.flips, one.flips_interval)} of {one.n} verdicts change over {one.repeats} repeats; "
        f"kappa between repeats {said}; spread {_number(one.spread)}"
    )


def _annotators(found: Annotators) -> list[str]:
    lines = [
        f"annotators            {len(found.names)}: Krippendorff's alpha {_number(found.alpha)} ({found.level}), "
        f"with the judge as one more {_number(found.alpha_with_judge)}; mean kappa of two {_number(found.kappa_among)}"
    ]
    lines += [
        f"  judge and {name:<10}  kappa {_number(kappa)} over {n} items"
        for name, (kappa, n) in found.kappa_judge.items()
    ]
    return lines


def _rates(rates: Rates) -> list[str]:
    passed, failed = rates.true_positive + rates.false_negative, rates.false_positive + rates.true_negative
    true, false = rates.true_positive_rate, rates.false_positive_rate
    return [
        f"  true positive rate  {_rate(true, rates.true_positive_interval)}  of {passed} that people passed",
        f"  false positive rate {_rate(false, rates.false_positive_interval)}  of {failed} that people failed",
    ]


def _choice(choice: Choice) -> list[str]:
    low, high = choice.interval.low, choice.interval.high
    ends = f" [{low:g}, {high:g}]" if low is not None and high is not None else ""
    criterion = choice.criterion.replace("_", " ") + (" (Youden)" if choice.criterion == "balanced_accuracy" else "")
    return [
        f"chosen threshold      {choice.threshold:g}{ends} by {criterion}; by fold {', '.join(f'{mark:g}' for mark in choice.by_fold)}",
        f"  held out            {_figure(Figure(choice.held_out, choice.held_out_interval))}  (shipped threshold {_number(choice.shipped)})",
        "error rates of the held-out verdicts",
        *_rates(choice.rates),
    ]


def _cautions(found: Calibration) -> list[str]:
    figures = (found.agreement, found.kappa, found.verdict_kappa)
    return list(dict.fromkeys(f.interval.caution for f in figures if f.interval is not None and f.interval.caution))


def _figure(figure: Figure, *, share: bool = False) -> str:
    if figure.value is None:
        return "not defined"
    ends = figure.interval
    if ends is None or ends.low is None or ends.high is None:
        return f"{figure.value:.1%}" if share else f"{figure.value:.3f}"
    return (
        f"{figure.value:.1%} [{ends.low:.1%}, {ends.high:.1%}]"
        if share
        else f"{figure.value:.3f} [{ends.low:.3f}, {ends.high:.3f}]"
    )


def _rate(value: float | None, ends: Interval | None) -> str:
    return _figure(Figure(value, ends), share=True) if value is not None else "not known"


def _share(value: float, ends: Interval | None) -> str:
    return _figure(Figure(value, ends), share=True)


def _number(value: float | None) -> str:
    return "not defined" if value is None else f"{value:.3f}"
