"""Spangrade: quality scores on LLM calls in production, inside the OpenTelemetry pipeline that you already run.

import spangrade as sg

@sg.metric
def short(sample):
    return len(str(sample.output)) < 500

sg.configure(service_name="support", metrics=["overlap", short])

@sg.trace
def answer(question): ...
"""

from spangrade._version import __version__
from spangrade.errors import ConfigError, SpangradeError
from spangrade.experiments.compare import compare
from spangrade.experiments.run import aevaluate, evaluate
from spangrade.judges.cascade import Cascade
from spangrade.judges.judge import LlmJudge
from spangrade.judges.live import live
from spangrade.metrics.base import BaseMetric
from spangrade.metrics.composite import CompositeMetric
from spangrade.metrics.functional import MetricResult, discrete_metric, numeric_metric, ranking_metric
from spangrade.metrics.local import LocalMetric, metric
from spangrade.metrics.registry import Catalog, MetricsCatalog, register_metric
from spangrade.metrics.schema import DefaultSchema, config_schema
from spangrade.model.sample import Sample
from spangrade.model.score import Score
from spangrade.otel.bootstrap import configure, flush, shutdown
from spangrade.otel.exporter import ScoringExporter
from spangrade.otel.processor import SpangradeProcessor
from spangrade.tracing.decorator import trace
from spangrade.tracing.setters import (
    set_context,
    set_input,
    set_metadata,
    set_output,
    set_retrieval_documents,
    set_session,
)

__all__ = [
    "BaseMetric",
    "Cascade",
    "Catalog",
    "CompositeMetric",
    "ConfigError",
    "DefaultSchema",
    "LlmJudge",
    "LocalMetric",
    "MetricResult",
    "MetricsCatalog",
    "Sample",
    "Score",
    "ScoringExporter",
    "SpangradeError",
    "SpangradeProcessor",
    "__version__",
    "aevaluate",
    "compare",
    "config_schema",
    "configure",
    "discrete_metric",
    "evaluate",
    "flush",
    "live",
    "metric",
    "numeric_metric",
    "ranking_metric",
    "register_metric",
    "set_context",
    "set_input",
    "set_metadata",
    "set_output",
    "set_retrieval_documents",
    "set_session",
    "shutdown",
    "trace",
]
