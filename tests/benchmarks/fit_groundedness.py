"""Fits `groundedness` on q2 and the development set of WiCE, and prints its numbers; the same every time.

    python -m tests.benchmarks.fit_groundedness            prints them beside the shipped ones
    python -m tests.benchmarks.fit_groundedness --write    writes sdk/spangrade/metrics/builtin/groundedness.json

A logistic regression on `support.FEATURES`, ridge on the standardised features, each set weighing the same whatever its
size. A feature whose weight would come out against sense (more support, lower score) gets none. The weight of `conflict`
(the evidence has a *not*, a number or a name that the claim has not) is not fitted, for the sets hold few: it is set so
that a sentence copied with one such falsehood falls below the threshold. Without it the AUROC out of fold is .003 lower
on q2 and .007 higher on WiCE, and nearly all such sentences pass.
"""

import argparse
import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from spangrade.metrics.builtin.evidence import examine
from spangrade.metrics.builtin.groundedness import THRESHOLD, shares
from spangrade.metrics.builtin.support import FEATURES
from tests.benchmarks.labelled import Labelled, missing, q2, wice

FILE = Path(__file__).resolve().parents[2] / "sdk/spangrade/metrics/builtin/groundedness.json"
RIDGE = 5.0
CONFLICT = -2.8
_ROUNDS = 6  # of choosing each answer's weakest sentence by the weights before

Array = Any


@dataclass(frozen=True)
class Row:
    """One labelled answer: its sentences' features and weights."""

    given: Labelled
    features: Array
    weights: Array


@dataclass(frozen=True)
class Model:
    """Weights in the order of `FEATURES`, and the intercept."""

    weights: Array
    intercept: float

    def logits(self, rows: list[Row]) -> Array:
        """The log-odds of each answer."""
        return self.intercept + _whole(rows, self.weights) @ self.weights

    def probabilities(self, rows: list[Row]) -> Array:
        """The score of each answer."""
        return 1 / (1 + np.exp(-self.logits(rows)))


def read(given: list[Labelled]) -> list[Row]:
    """Features of each answer's sentences; this is what takes the time (about 10 ms for each new sentence)."""
    rows = []
    for one in given:
        supports = examine(one.output, one.documents).supports
        rows.append(Row(one, np.array([s.features for s in supports]), np.array([s.weight for s in supports])))
    return rows


def _whole(rows: list[Row], weights: Array) -> Array:
    """Each answer's features: its sentences' by their shares, which depend on which is the weakest."""
    return np.array([np.array(shares(list(row.weights), list(row.features @ weights))) @ row.features for row in rows])


def fit(*sets: list[Row]) -> Model:
    """The model of these sets, each weighing the same."""
    rows = [row for each in sets for row in each]
    labels = np.array([row.given.grounded for row in rows], dtype=float)
    sizes = np.concatenate([np.full(len(each), len(rows) / len(sets) / len(each)) for each in sets])
    conflict = list(FEATURES).index("conflict")
    weights = np.array([1.0 if good else -1.0 for good in FEATURES.values()])
    intercept = 0.0
    for _ in range(_ROUNDS):
        whole = _whole(rows, weights)
        given = CONFLICT * whole[:, conflict]
        weights, intercept = _logistic(np.delete(whole, conflict, axis=1), labels, sizes, given)
        weights = np.insert(weights, conflict, CONFLICT)
    return Model(weights, intercept)


def _logistic(features: Array, labels: Array, sizes: Array, offset: Array) -> tuple[Array, float]:
    """Ridge logistic regression by Newton's method; weights of the wrong sign are taken out, worst first."""
    mean, spread = features.mean(axis=0), features.std(axis=0)
    spread[spread == 0] = 1.0
    signs = np.array([1.0 if good else -1.0 for name, good in FEATURES.items() if name != "conflict"])
    active = list(range(features.shape[1]))
    while True:
        design = np.column_stack([np.ones(len(labels)), ((features - mean) / spread)[:, active]])
        penalty = np.diag([1e-9] + [RIDGE] * len(active))
        beta = np.zeros(design.shape[1])
        for _ in range(100):
            p = 1 / (1 + np.exp(-(design @ beta + offset)))
            gradient = design.T @ (sizes * (p - labels)) + penalty @ beta
            step = np.linalg.solve((design * (sizes * p * (1 - p))[:, None]).T @ design + penalty, gradient)
            beta -= step
            if np.abs(step).max() < 1e-10:
                break
        wrong = [(beta[i + 1] * signs[a], a) for i, a in enumerate(active) if beta[i + 1] * signs[a] < 0]
        if not wrong:
            break
        active.remove(min(wrong)[1])
    weights = np.zeros(features.shape[1])
    weights[active] = beta[1:] / spread[active]
    return weights, float(beta[0] - mean @ weights)


def as_file(model: Model) -> dict[str, Any]:
    """What is shipped."""
    return {
        "fitted_on": "q2 (600 replies, orhonovich/q-squared @cab6027) and WiCE dev (1,043 claims, ryokamoi/wice @ddeb6c1)",
        "fitted_by": "python -m tests.benchmarks.fit_groundedness --write",
        "intercept": round(model.intercept, 4),
        "weights": {name: round(float(weight), 4) for name, weight in zip(FEATURES, model.weights, strict=True)},
    }


def main() -> None:
    """The command."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--write", action="store_true", help="write the file that is shipped")
    arguments = parser.parse_args()
    if missing():
        raise SystemExit(f"missing: {', '.join(missing())}")
    fitted = as_file(fit(read(q2()), read(wice())))
    text = json.dumps(fitted, indent=2) + "\n"
    if arguments.write:
        FILE.write_text(text, encoding="utf-8")
    shipped = json.loads(FILE.read_text(encoding="utf-8"))
    print(text, end="")
    print("the same as shipped" if fitted == shipped else f"shipped: {shipped}", f"(threshold {THRESHOLD})")


if __name__ == "__main__":
    main()
