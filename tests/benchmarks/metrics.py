"""How good the built-in metrics are, on labelled sets, beside baselines that anybody could write, in one run.

    make bench-metrics                (python -m tests.benchmarks.metrics [--draws 1000])

Reads only ``../shared/data`` and says what is missing there. Figures of `groundedness` are never of data that it was
fitted on: *out of fold* is a fit on nine tenths of the clusters of both sets, *other set* a fit on the other set alone.
Intervals are 95 %, by a bootstrap over clusters (replies of one dialogue, knowledge or topic; claims of one article).
Everything but the times is the same in every run.
"""

import argparse
import itertools
import json
import time
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from spangrade.metrics.builtin import embedding
from spangrade.metrics.builtin.claims import pieces
from spangrade.metrics.builtin.groundedness import THRESHOLD, groundedness
from spangrade.metrics.builtin.overlap import overlap
from spangrade.metrics.builtin.relevance import answer_relevance, context_relevance
from spangrade.metrics.builtin.words import content_words, words
from spangrade.metrics.local import LocalMetric
from spangrade.model.sample import Sample
from tests.benchmarks import measures
from tests.benchmarks.fit_groundedness import FILE, Row, as_file, fit, read
from tests.benchmarks.labelled import DATA, Labelled, both, missing, q2
from tests.benchmarks.perturbed import perturbed

FOLDS = 10
SEED = 1
_TIMED = 40  # samples of each set

Array = Any


def length(row: Labelled) -> float:
    """The shorter the answer, the higher."""
    return -len(row.output)


def bigram_support(row: Labelled) -> float:
    """The share of neighbouring content words that stand so in the documents."""
    ours = content_words(row.output)
    theirs = content_words(_text(row))
    pairs = list(itertools.pairwise(ours)) or [(word, word) for word in ours]
    known = {*itertools.pairwise(theirs), *((word, word) for word in theirs)}
    return sum(pair in known for pair in pairs) / max(len(pairs), 1)


def rouge_l_precision(row: Labelled) -> float:
    """The longest common subsequence with the documents, by the answer's length (Lin 2004)."""
    ours, theirs = words(row.output), words(_text(row))
    before = [0] * (len(theirs) + 1)
    for word in ours:
        now = [0]
        for i, other in enumerate(theirs):
            now.append(before[i] + 1 if word == other else max(before[i + 1], now[i]))
        before = now
    return before[-1] / max(len(ours), 1)


def cosine(row: Labelled) -> float:
    """The answer's cosine with the nearest sentence of the documents."""
    ours, *theirs = embedding.embed([row.output, *pieces(_text(row))])
    return max((float(ours.vector @ one.vector) for one in theirs), default=0.0)


def _text(row: Labelled) -> str:
    return "\n".join(document["content"] for document in row.documents)


def _sample(row: Labelled) -> Sample:
    return Sample(input=row.input or None, output=row.output, documents=row.documents)


def _value(metric: LocalMetric, sample: Sample) -> float:
    verdict: Any = metric.evaluate(sample)
    return float(verdict.scores[0].value)


def out_of_fold(sets: Sequence[list[Row]], seed: int = SEED) -> list[Array]:
    """Each set's probabilities by models that saw none of the answer's cluster."""
    place = measures.folds([row.given.cluster for rows in sets for row in rows], FOLDS, seed)
    of = np.split(place, np.cumsum([len(rows) for rows in sets])[:-1])
    found = [np.zeros(len(rows)) for rows in sets]
    for fold in range(FOLDS):
        model = fit(
            *([row for row, f in zip(rows, fs, strict=True) if f != fold] for rows, fs in zip(sets, of, strict=True))
        )
        for rows, fs, values in zip(sets, of, found, strict=True):
            values[fs == fold] = model.probabilities([row for row, f in zip(rows, fs, strict=True) if f == fold])
    return found


class Table:
    """A Markdown table, printed row by row."""

    def __init__(self, *head: str) -> None:
        print("\n| " + " | ".join(head) + " |\n|" + "---|" * len(head), flush=True)

    def row(self, *cells: str) -> None:
        """One more row."""
        print("| " + " | ".join(cells) + " |", flush=True)


def with_interval(value: float, bounds: tuple[float, float]) -> str:
    """``.805 (.770 to .838)``."""
    return f"{_short(value)} ({_short(bounds[0])} to {_short(bounds[1])})"


def _short(value: float) -> str:
    return f"{value:.3f}".replace("0.", ".", 1)


def supported(draws: int) -> None:
    """The main table, and what belongs to it."""
    sets = dict(both())
    rows = {name: read(given) for name, given in sets.items()}
    names = list(sets)
    folded = dict(zip(names, out_of_fold(list(rows.values())), strict=True))
    other = {name: fit(rows[next(n for n in names if n != name)]).probabilities(rows[name]) for name in names}
    table = Table(
        "set", "n (grounded)", "score", "AUROC (95 %)", "kappa", "true positives", "false positives", "CPU ms"
    )
    for name, given in sets.items():
        labels = np.array([row.grounded for row in given])
        clusters = [row.cluster for row in given]
        simple: list[tuple[str, Callable[[Labelled], float], float | None]] = [
            ("length alone", length, None),
            ("bigram support", bigram_support, None),
            ("ROUGE-L precision", rouge_l_precision, None),
            ("MiniLM cosine", cosine, None),
            ("`overlap`", lambda row: _value(overlap, _sample(row)), overlap.threshold),
        ]
        scored = [(what, np.array([one(row) for row in given]), at, _ms(one, given)) for what, one, at in simple]
        mean = _ms(lambda row: _value(groundedness, _sample(row)), given)
        scored += [
            ("`groundedness`, out of fold", folded[name], THRESHOLD, mean),
            ("`groundedness`, other set", other[name], THRESHOLD, ""),
        ]
        for what, values, threshold, cost in scored:
            area = measures.auroc(values, labels)
            bounds = measures.interval(measures.auroc, values, labels, clusters, draws)
            rates = ["", "", ""]
            if threshold is not None:
                passed = values >= threshold
                each = (measures.kappa, measures.true_positive_rate, measures.false_positive_rate)
                rates = [
                    with_interval(one(passed, labels), measures.interval(one, passed, labels, clusters, draws))
                    for one in each
                ]
            table.row(name, f"{len(given)} ({labels.sum()})", what, with_interval(area, bounds), *rates, cost)
    spread = [out_of_fold(list(rows.values()), seed) for seed in range(2, 5)]
    table = Table("set", "calibration error (10 bins)", "AUROC with other folds", "mean score by label")
    for index, (name, given) in enumerate(sets.items()):
        labels = np.array([row.grounded for row in given])
        by_label = {
            label: np.mean(folded[name][[row.label == label for row in given]])
            for label in dict.fromkeys(r.label for r in given)
        }
        table.row(
            name,
            _short(measures.calibration_error(folded[name], labels)),
            ", ".join(_short(measures.auroc(one[index], labels)) for one in spread),
            ", ".join(f"{label} {value:.2f}" for label, value in by_label.items()),
        )
    model = fit(*rows.values())
    made, shipped = as_file(model)["weights"], json.loads(FILE.read_text(encoding="utf-8"))["weights"]
    same = made.keys() == shipped.keys() and all(abs(made[name] - shipped[name]) < 0.02 for name in made)
    print(f"\nFitted on both: {made}; " + ("as shipped" if same else f"shipped: {shipped}"))
    falsified(model.probabilities, [row for given in sets.values() for row in perturbed(given)])


def falsified(score: Callable[[list[Row]], Array], given: list[Labelled]) -> None:
    """Sentences of the documents, copied, and falsified in one place."""
    values = score(read(given))
    cosines = np.array([cosine(row) for row in given])
    copies = {(row.cluster, str(row.documents)): i for i, row in enumerate(given) if row.label == "copy"}
    table = Table("a document's sentence", "n", "below its copy", "mean score", "passes", "mean cosine")
    for label in dict.fromkeys(row.label for row in given):
        at = [i for i, row in enumerate(given) if row.label == label]
        below = np.mean([values[i] < values[copies[given[i].cluster, str(given[i].documents)]] for i in at])
        passes = np.mean(values[at] >= THRESHOLD)
        table.row(
            label,
            str(len(at)),
            "" if label == "copy" else _short(below),
            f"{values[at].mean():.2f}",
            f"{passes:.2f}",
            f"{cosines[at].mean():.2f}",
        )


def relevance(draws: int) -> None:
    """Whether a question is nearer to its own document than to another's, and an answer that people preferred to one they did not."""
    given = [row for row in q2() if row.input.strip()]
    table = Table("score", "on", "n", "result (95 %)", "CPU ms")
    own = [_value(context_relevance, _sample(row)) for row in given]
    moved = [
        Labelled(**{**vars(row), "documents": given[(i + len(given) // 2) % len(given)].documents})
        for i, row in enumerate(given)
    ]
    foreign = [_value(context_relevance, _sample(row)) for row in moved]
    scores, labels = np.array(own + foreign), np.array([True] * len(own) + [False] * len(foreign))
    bounds = measures.interval(measures.auroc, scores, labels, [row.cluster for row in given] * 2, draws)
    cost = _ms(lambda row: _value(context_relevance, _sample(row)), given)
    area = with_interval(measures.auroc(scores, labels), bounds)
    table.row("`context_relevance`", "q2: own knowledge or another dialogue's, AUROC", str(len(given)), area, cost)
    for part in ("Natural", "Adversarial_Manual"):
        file = DATA / "llmbar" / f"{part}.GPT-4.Swap.json"
        if not file.is_file():
            print(f"missing: ../shared/data/llmbar/{file.name}")
            continue
        pairs = json.loads(file.read_text(encoding="utf-8"))
        right = np.array([_preferred(pair) for pair in pairs])
        bounds = measures.interval(
            lambda s, _: float(s.mean()), right, right, [str(i) for i in range(len(right))], draws
        )
        table.row(
            "`answer_relevance`",
            f"LLMBar {part}: nearer is preferred, share",
            str(len(pairs)),
            with_interval(right.mean(), bounds),
            "",
        )


def _preferred(pair: dict[str, Any]) -> float:
    """1 when the answer that people preferred has the higher score, half at a tie."""
    first, second = (
        _value(answer_relevance, Sample(input=pair["input"], output=pair[key] or "-"))
        for key in ("output_1", "output_2")
    )
    return 0.5 if first == second else float((first > second) == (int(pair["label"]) == 1))


def _ms(score: Callable[[Labelled], float], given: list[Labelled]) -> str:
    """Milliseconds of processor time a sample: the median, with nothing remembered, and where it differs with everything."""
    some = given[:: max(len(given) // _TIMED, 1)][:_TIMED]
    embedding.embed(["the model is loaded"])
    kept, embedding._shared._cache = embedding._shared._cache, type(embedding._shared._cache)()
    try:
        cold = _median(score, some)
        used = bool(embedding._shared._cache)
        warm = _median(score, some)
    finally:
        embedding._shared._cache = kept
    return f"{cold:.3g}" + (f" ({warm:.2g} when embedded before)" if used else "")


def _median(score: Callable[[Labelled], float], some: list[Labelled]) -> float:
    times = []
    for row in some:
        start = time.thread_time()
        score(row)
        times.append(1e3 * (time.thread_time() - start))
    return float(np.median(times))


def main() -> None:
    """The command."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--draws", type=int, default=1_000, help="bootstrap draws")
    arguments = parser.parse_args()
    if missing():
        raise SystemExit(f"missing, so nothing can be measured: {', '.join(missing())}")
    supported(arguments.draws)
    relevance(arguments.draws)


if __name__ == "__main__":
    main()
