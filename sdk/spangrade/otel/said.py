"""What `configure` was told, checked: arguments over the file over the defaults."""

import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

from opentelemetry.sdk.trace.export import SpanExporter
from opentelemetry.trace import TracerProvider

from spangrade import config
from spangrade.delivery.content import ContentPolicy
from spangrade.errors import ConfigError
from spangrade.model.policy import Placed
from spangrade.samples.bounds import bounds_of
from spangrade.scoring.evaluators import placed_evaluators, redact_by_patterns
from spangrade.scoring.settings import Settings

METRIC_HOLD_S: Final = 1.0
JUDGE_HOLD_S: Final = 5.0


@dataclass(frozen=True)
class Arguments:
    """`configure`'s parameters, as given."""

    service_name: str | None = None
    endpoint: str | None = None
    metrics: Sequence[Any] = ()
    judges: Sequence[Any] = ()
    destinations: Sequence[Any] = ()
    exporter: SpanExporter | None = None
    tracer_provider: TracerProvider | None = None
    take_over: bool = False
    score: str = "here"
    hold: float | None = None
    redact: Callable[[str], str] | None = None
    export_content: bool = True
    instrument: Sequence[str] = ()
    config_file: str | os.PathLike[str] | None = None


@dataclass(frozen=True)
class Said:
    """The result. ``endpoints``: one per destination; ``[None]`` when nothing was said of it."""

    service_name: str | None
    endpoints: list[str | None]
    exporter: SpanExporter | None
    tracer_provider: TracerProvider | None
    take_over: bool
    instrument: Sequence[str]
    evaluators: list[Placed]
    settings: Settings
    policy: ContentPolicy


def check(given: Arguments) -> Said:
    """Read the file, merge, check.

    Raises:
        ConfigError: a setting that cannot work; the message names it and what would be right.
    """
    for key in ("metrics", "judges", "destinations", "instrument"):
        if isinstance(getattr(given, key), str):
            raise ConfigError(f"{key} is a list; for one of them write {key}=[{getattr(given, key)!r}]")
    for name in given.instrument:
        if not isinstance(name, str) or not name.strip():
            raise ConfigError(f"instrument: {name!r} is not the name of a library, such as 'openai'")
    if given.exporter is not None and not isinstance(given.exporter, SpanExporter):
        raise ConfigError(f"exporter {type(given.exporter).__name__} is not an opentelemetry.sdk SpanExporter")
    if given.score not in ("here", "agent"):
        raise ConfigError(f"score {given.score!r} is not 'here' or 'agent'")
    if given.redact is not None and not callable(given.redact):
        raise ConfigError(f"redact {given.redact!r} is not a function of a text that returns a text")
    path = given.config_file or os.environ.get("SPANGRADE_CONFIG")
    file = config.load(path, config.FileConfig) if path else config.FileConfig.model_construct()
    endpoint = given.endpoint or file.endpoint
    return Said(
        service_name=given.service_name or file.service_name,
        endpoints=_endpoints(endpoint, list(given.destinations) or list(file.destinations)),
        exporter=given.exporter,
        tracer_provider=given.tracer_provider,
        take_over=given.take_over or file.take_over,
        instrument=list(given.instrument) or list(file.instrument),
        evaluators=_evaluators(given, file),
        settings=replace(
            _settings(given.hold if given.hold is not None else file.hold),
            budget_store=file.budget_store,
            assembly=bounds_of(file.assembly),
        ),
        policy=ContentPolicy(
            given.redact or redact_by_patterns(file.redact),
            export_content=given.export_content and file.export_content,
            export_explanations=file.export_explanations,
        ),
    )


def _evaluators(given: Arguments, file: config.FileConfig) -> list[Placed]:
    metrics, judges = list(given.metrics) or list(file.metrics), list(given.judges) or list(file.judges)
    found = placed_evaluators(metrics, judges, file.judge_endpoints)
    elsewhere = given.score == "agent" or file.score == "agent"
    return [] if elsewhere else found


def _settings(hold: float | None) -> Settings:
    hold = JUDGE_HOLD_S if hold is None else hold
    if isinstance(hold, bool) or not isinstance(hold, (int, float)) or not 0 <= hold <= 600:
        raise ConfigError(f"hold {hold!r} is not a number of seconds from 0 to 600")
    return Settings(metric_hold=min(METRIC_HOLD_S, hold), judge_hold=float(hold))


def _endpoints(endpoint: str | None, destinations: Sequence[Any]) -> list[str | None]:
    found: list[str | None] = []
    for given in destinations:
        entry = given
        if not isinstance(given, config.DestinationEntry):
            try:
                entry = config.DestinationEntry.model_validate(given)
            except ValueError:
                raise ConfigError(
                    f"destinations: {given!r} is not like {{'preset': 'otlp', 'endpoint': 'http://localhost:4318'}}"
                ) from None
        found.append(entry.endpoint)
    if found and endpoint:
        raise ConfigError("give either endpoint or destinations, not both")
    return found or [endpoint]
