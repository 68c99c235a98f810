"""Results and comparisons as one HTML file each, with plots, that loads nothing."""

from typing import TYPE_CHECKING

from spangrade.errors import ConfigError

if TYPE_CHECKING:
    from spangrade.experiments.comparison import Comparison
    from spangrade.experiments.results import Results


def html_of(results: "Results") -> str:
    """The report of one experiment: scores with intervals, distributions, and its items, the worst first.

    Raises:
        ConfigError: what makes it is not installed.
    """
    _need_jinja()
    from spangrade.experiments.report.results_page import page

    return page(results)


def html_of_comparison(comparison: "Comparison") -> str:
    """The report of a comparison: differences with intervals, pair by pair, and the items that lost most first.

    Raises:
        ConfigError: what makes it is not installed.
    """
    _need_jinja()
    from spangrade.experiments.report.comparison_page import page

    return page(comparison)


def _need_jinja() -> None:
    try:
        import jinja2  # noqa: F401 - whether it is there
    except ImportError as missing:
        raise ConfigError('to_html needs jinja2: pip install "spangrade[experiments]"') from missing
