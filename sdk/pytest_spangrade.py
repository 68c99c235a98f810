"""What pytest loads in every run of everybody who has Spangrade installed: names only.

It stands beside the package and not in it, since to import anything of `spangrade` takes longer than all of pytest. What does
the work, and what it offers, is `spangrade.experiments.pytest_plugin`, imported when a test asks for it.
"""

from typing import Any

import pytest

_MARKER = (
    "spangrade(dataset, evaluators, min_pass_rate=1.0, fail_under=None, baseline=None, ...): the test function is the task: it "
    "is called with each item of the dataset, what it returns is graded, and the test passes if the results reach their limits"
)


def pytest_addoption(parser: pytest.Parser) -> None:
    """``--spangrade-results``."""
    group = parser.getgroup("spangrade")
    group.addoption(
        "--spangrade-results",
        metavar="FOLDER",
        default=None,
        help="save the results of each test marked with `spangrade` as JSON in this folder",
    )


def pytest_configure(config: pytest.Config) -> None:
    """The marker."""
    config.addinivalue_line("markers", _MARKER)


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Parameters of a marked test that are fields of its items are no fixtures."""
    if metafunc.definition.get_closest_marker("spangrade") is not None:
        from spangrade.experiments import pytest_plugin

        pytest_plugin.parametrize(metafunc)


@pytest.hookimpl(tryfirst=True)
def pytest_pyfunc_call(pyfuncitem: pytest.Function) -> bool | None:
    """A marked test is run over its dataset."""
    if pyfuncitem.get_closest_marker("spangrade") is None:
        return None
    from spangrade.experiments import pytest_plugin

    pytest_plugin.run(pyfuncitem)
    return True


@pytest.fixture
def spangrade(request: pytest.FixtureRequest) -> Any:
    """Grade samples and datasets in a test: ``score``, ``assert_score``, ``evaluate``, ``assert_results``."""
    from spangrade.experiments.pytest_grader import Grader

    return Grader(request)
