"""Every test starts without a configured Spangrade, and fails when a fault of ours was swallowed in it."""

import gc
from collections.abc import Iterator

import hypothesis
import pytest
from opentelemetry import trace as trace_api
from opentelemetry.util._once import Once

from spangrade import _frozen, _log
from spangrade.delivery import exporter_lines
from spangrade.otel import bootstrap, said
from spangrade.testing import CollectingExporter, no_swallowed_faults
from spangrade.tracing import call

# How long an example takes says what else the machine does, not whether it holds.
hypothesis.settings.register_profile(
    "untimed", hypothesis.settings(), deadline=None, suppress_health_check=[hypothesis.HealthCheck.too_slow]
)
hypothesis.settings.load_profile("untimed")


def pytest_collection_finish() -> None:
    """What importing the tests left is looked at no more: a test's `gc.collect` took half a second in a whole run."""
    gc.collect()
    gc.freeze()


@pytest.fixture(autouse=True)
def swallowed_faults() -> Iterator[list[tuple[str, BaseException]]]:
    """The guard's catch; a test that injects a fault clears it."""
    with no_swallowed_faults() as faults:
        yield faults


@pytest.fixture(autouse=True)
def fresh_process(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """No provider, no engine, no environment of the developer's."""
    import os

    for name in list(os.environ):
        if name.startswith(("OTEL_", "SPANGRADE_")) and name not in (
            "SPANGRADE_CACHE",
            "SPANGRADE_REQUIRE_INTEGRATION",
        ):
            monkeypatch.delenv(name)
    # A metric that a loaded machine starts a second late must not decide what a test sees. Tests of the hold give their own.
    monkeypatch.setattr(said, "METRIC_HOLD_S", said.JUDGE_HOLD_S)
    _forget_global_provider()
    _log.forget_said()
    monkeypatch.setattr(_frozen, "_wary", 0)
    exporter_lines.forget_lines()
    yield
    bootstrap.shutdown()
    call.use_provider(None)
    _forget_global_provider()


def _forget_global_provider() -> None:
    # OpenTelemetry has no public way to set a second global provider, and every test wants its own.
    trace_api._TRACER_PROVIDER = None
    trace_api._TRACER_PROVIDER_SET_ONCE = Once()


@pytest.fixture
def exporter() -> CollectingExporter:
    """Where the spans of a test end."""
    return CollectingExporter()
