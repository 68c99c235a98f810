"""What tests of `trace` share."""

from typing import Any

import pytest

import spangrade as sg
from spangrade.otel import bootstrap
from spangrade.testing import CollectingExporter
from spangrade.tracing import call
from spangrade.tracing.lazy import tracer


class Spans:
    """The spans of a test, once they have left."""

    def __init__(self, exporter: CollectingExporter) -> None:
        self._exporter = exporter

    def all(self) -> list[Any]:
        assert sg.flush(5)
        return list(self._exporter.spans)

    def only(self) -> Any:
        (span,) = self.all()
        return span

    def attributes(self) -> dict[str, Any]:
        return dict(self.only().attributes)

    @staticmethod
    def open() -> int:
        runtime = bootstrap._runtime
        assert runtime is not None
        return len(runtime.processor._open)


@pytest.fixture(autouse=True, params=["lazily", "publicly"])
def both_ways(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Every test of `trace` runs with lazily filled spans, and with those that any SDK gives through its public API."""
    if request.param == "publicly":
        by_public_api(monkeypatch)


def by_public_api(monkeypatch: pytest.MonkeyPatch) -> None:
    """From here on calls are traced as with an SDK that lazily filled spans were not tried with."""
    monkeypatch.setattr(tracer, "usable", lambda: False)
    call._State.tracer_of = None


@pytest.fixture
def traced(exporter: CollectingExporter) -> Spans:
    """Spangrade is on, without evaluators."""
    sg.configure(exporter=exporter)
    return Spans(exporter)
