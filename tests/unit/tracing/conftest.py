"""What tests of `trace` share."""

from typing import Any

import pytest

import spangrade as sg
from spangrade.otel import bootstrap
from spangrade.testing import CollectingExporter


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


@pytest.fixture
def traced(exporter: CollectingExporter) -> Spans:
    """Spangrade is on, without evaluators."""
    sg.configure(exporter=exporter)
    return Spans(exporter)
