"""What the cases share: Spangrade on with metrics, and the samples they saw; a request as ASGI has it."""

import asyncio
from collections.abc import Callable
from typing import Any

import pytest
from opentelemetry.sdk.trace import ReadableSpan

import spangrade as sg
from spangrade import semconv as s
from spangrade.testing import CollectingExporter


class Product:
    """Spangrade with one metric that keeps its samples and scores each with 1."""

    def __init__(self, exporter: CollectingExporter) -> None:
        self.exporter = exporter
        self._samples: list[sg.Sample] = []

    def configure(self, *metrics: Any, **settings: Any) -> None:
        """As `sg.configure`, with the keeping metric before the others."""

        @sg.metric
        def seen(sample: sg.Sample) -> int:
            self._samples.append(sample)
            return 1

        sg.configure(metrics=[seen, *metrics], **{"exporter": self.exporter, **settings})

    @property
    def spans(self) -> list[ReadableSpan]:
        """Everything that was exported, what still waits included."""
        assert sg.flush(10)
        return self.exporter.spans

    def named(self, name: str) -> list[ReadableSpan]:
        """Those of a function of this name."""
        return [span for span in self.spans if span.name == name or span.name.endswith("." + name)]

    def only(self, name: str) -> Any:
        """The one span of that name."""
        (span,) = self.named(name)
        return span

    @property
    def samples(self) -> list[sg.Sample]:
        """What the metric saw, sorted by what was put out."""
        assert sg.flush(10)
        return sorted(self._samples, key=lambda sample: str(sample.output))


@pytest.fixture
def product(exporter: CollectingExporter) -> Product:
    """Configured; call `configure` again for more."""
    made = Product(exporter)
    made.configure()
    return made


@pytest.fixture
def parent_of() -> Callable[[Any], int | None]:
    """A span's parent's id."""
    return lambda span: span.parent.span_id if span.parent is not None else None


def output(span: Any) -> Any:
    """What a span recorded as output."""
    return span.attributes.get(s.OI_OUTPUT)


def scope_of(path: str, query: str = "") -> dict[str, Any]:
    """A GET request."""
    return {
        "type": "http",
        "asgi": {"version": "3.0", "spec_version": "2.3"},
        "http_version": "1.1",
        "method": "GET",
        "scheme": "http",
        "path": path,
        "raw_path": path.encode(),
        "query_string": query.encode(),
        "root_path": "",
        "headers": [(b"host", b"x")],
        "client": ("127.0.0.1", 1),
        "server": ("127.0.0.1", 80),
    }


async def endless() -> Any:
    """A client that stays and says nothing."""
    await asyncio.Event().wait()
