"""`compare`: the same items, two results, what differs and how surely. What does the work is imported when it is called."""

import os
from typing import TYPE_CHECKING

from spangrade.experiments.defaults import CONFIDENCE, RESAMPLES, SEED

if TYPE_CHECKING:
    from spangrade.experiments.comparison import Comparison
    from spangrade.experiments.grouping import By, Key
    from spangrade.experiments.results import Results


def compare(
    a: "Results | str | os.PathLike[str]",
    b: "Results | str | os.PathLike[str]",
    *,
    by: "By" = None,
    cluster: "Key | None" = None,
    confidence: float = CONFIDENCE,
    resamples: int = RESAMPLES,
    seed: int = SEED,
) -> "Comparison":
    """What differs between two results over the same items, and how surely.

    Items are paired by id; repeats of an item are averaged first, so the item is the unit. For each score name: both means over
    the pairs, delta (b - a), its interval by a paired bootstrap, whether it shows b to be better or worse, and the smallest
    difference that so many pairs could have shown. An item that failed or was skipped on one side has no number there: it is
    counted, not compared. Items that only one side has, or whose input or expected answer has changed, are named.

    Where the evaluators behind one name differ in version or configuration, or other judge models answered, there is a *config
    mismatch* in place of a delta.

    Args:
        a: the baseline: `Results`, or the path of saved ones.
        b: what is compared with it.
        by: slices, each with its own figures: a metadata key, a path (``input.topic``), a function of the `ItemResult`, a list of
            these, or a dict of name to these. Read from a's items. p values of slices are adjusted for their number (Holm); the rows
            over all items are not, so with many scores one of 20 is taken for a difference by chance.
        cluster: items that stand or fall together (questions on one document, turns of one conversation): a key, path or function
            in the same forms. Whole clusters are then resampled, which widens the interval where they move together.
        confidence: of the intervals, default 0.95; a difference is shown at 1 - confidence.
        resamples: default 10,000; above 5,000 items fewer are drawn, at least 1,000, and each interval says how many.
        seed: of the bootstrap; the same results and seed give the same comparison.

    Returns:
        A `Comparison`: iterate it, ``print`` it, or ``to_json``, ``to_pandas``, ``to_html`` it.

    Raises:
        ConfigError: a or b is neither results nor their file; a key is not there in any item; a function failed; numpy is missing.
    """
    from spangrade.experiments.comparing import compared

    return compared(a, b, by, cluster, confidence, resamples, seed)
