"""The smallest difference that so many items could show."""

import math
from collections.abc import Callable, Hashable, Sequence
from statistics import NormalDist
from typing import TYPE_CHECKING, Final

from spangrade.experiments.significance import binomial_p
from spangrade.experiments.stats import all_equal, need_numpy, standard_error, t_quantile, unit_sums

if TYPE_CHECKING:
    from spangrade.experiments.stats import Floats

ALPHA: Final = 0.05
POWER: Final = 0.8
_NORMAL: Final = NormalDist()


def smallest_difference(
    differences: "Floats",
    clusters: Sequence[Hashable] | None = None,
    *,
    alpha: float = ALPHA,
    power: float = POWER,
) -> float | None:
    """The smallest true difference of means that pairs like these would show in ``power`` of such experiments (two-sided at ``alpha``).

    A comparison that shows no difference says only that there is none much larger than this. In the score's own unit:

    - in general (t quantile at 1 - alpha/2 + t quantile at power) * standard error, with units - 1 degrees of freedom and the
      clustered standard error where there are clusters (J. M. Bland, An Introduction to Medical Statistics, chapter 18; E. Miller,
      arXiv:2411.00640, section 5);
    - for outcomes of 0 and 1 from the share of discordant pairs psi: the solution d of
      d * sqrt(n) = z(1 - alpha/2) * sqrt(psi) + z(power) * sqrt(psi - d^2) (R. J. Connor, Biometrics 43, 1987), and never less than
      what the exact test could show if all discordant pairs went one way, so that no discordant pair at all does not read as 0.

    Returns:
        None where it cannot be told: fewer units than could show anything at ``alpha`` (6 at 0.05), or differences that are all equal.
    """
    np = need_numpy()
    sums, sizes = unit_sums(differences, clusters)
    units = len(sums)
    fewest = fewest_discordant(alpha)
    if units < fewest:
        return None
    if (sizes == 1).all() and np.isin(differences, (-1.0, 0.0, 1.0)).all():
        return _binary(units, float(np.abs(differences).mean()), alpha, power)
    error = standard_error(differences, clusters)
    if error is None or all_equal(differences):
        return None
    return (t_quantile(1 - alpha / 2, units - 1) + t_quantile(power, units - 1)) * error


def fewest_discordant(alpha: float = ALPHA) -> int:
    """How many pairs must differ, all one way, before the exact test shows anything: 6 at 0.05."""
    count = 1
    while binomial_p(0, count) > alpha:
        count += 1
    return count


def _binary(n: int, psi: float, alpha: float, power: float) -> float | None:
    floor = _one_sided_floor(n, alpha, power)
    if floor is None:
        return None
    z_alpha, z_power = _NORMAL.inv_cdf(1 - alpha / 2), _NORMAL.inv_cdf(power)

    def short_by(d: float) -> float:
        return z_alpha * math.sqrt(psi) + z_power * math.sqrt(psi - d * d) - d * math.sqrt(n)

    # A difference cannot be larger than the share of pairs that differ; where even that is not enough, more would have to differ.
    by_share = _root(short_by, psi) if psi and short_by(psi) < 0 else psi
    return max(floor, by_share)


def _one_sided_floor(n: int, alpha: float, power: float) -> float | None:
    """The share of pairs that must differ, all one way, for ``power`` of samples to hold enough of them for the exact test."""
    k = fewest_discordant(alpha)
    if n < k:
        return None

    def short_by(share: float) -> float:
        fewer = sum(math.comb(n, j) * share**j * (1 - share) ** (n - j) for j in range(k))
        return power - (1 - fewer)

    return _root(short_by, 1.0)


def _root(falling: Callable[[float], float], high: float) -> float:
    """Where a falling function crosses 0 between 0 and ``high``, by halving."""
    low = 0.0
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (middle, high) if falling(middle) > 0 else (low, middle)
    return high
