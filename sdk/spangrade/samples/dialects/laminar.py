"""Laminar: ``lmnr.span.input`` and ``lmnr.span.output`` as JSON, beside OpenTelemetry GenAI. From its documentation and source
(lmnr-ai/lmnr-ts, packages/lmnr/src/opentelemetry-lib/tracing/attributes.ts); not run.
"""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Final

from spangrade._values import snapshot
from spangrade.model.span import SpanData
from spangrade.samples import scalars
from spangrade.samples.dialects.base import EVALUATOR, KindMark
from spangrade.samples.exchanges import read_exchange, read_run
from spangrade.samples.flat import under
from spangrade.samples.jsontext import read_value
from spangrade.samples.reading import Reading

TYPE: Final = "lmnr.span.type"
INPUT: Final = "lmnr.span.input"
OUTPUT: Final = "lmnr.span.output"
_PROPERTIES: Final = "lmnr.association.properties."
KINDS: Final[Mapping[str, str]] = {
    "default": "chain",
    "pipeline": "chain",
    "executor": "agent",
    "llm": "llm",
    "cached": "llm",
    "tool": "tool",
    "evaluator": EVALUATOR,
    "human_evaluator": EVALUATOR,
    "evaluation": EVALUATOR,
}

name: Final = "laminar"
capture: Final = "it is on unless @observe(ignore_input=True, ignore_output=True) leaves it out"
kind_marks: Final[Mapping[str, KindMark]] = {
    TYPE: KindMark(KINDS, default="chain"),
    INPUT: KindMark(present="chain"),
    OUTPUT: KindMark(present="chain"),
}
content_keys: Final = frozenset({INPUT, OUTPUT})
content_prefixes: Final[tuple[str, ...]] = ()
_CLAIMS: Final = frozenset(kind_marks)


def claims(attributes: Mapping[str, Any]) -> bool:
    return not _CLAIMS.isdisjoint(attributes)


def read(span: SpanData) -> Reading:
    attributes = span.attributes
    kind = KINDS.get((scalars.first_name(attributes, TYPE) or "").lower(), "chain")
    given, given_cut = read_value(attributes.get(INPUT))
    result, result_cut = read_value(attributes.get(OUTPUT))
    cut = given_cut or result_cut
    if kind == "llm":
        found = read_exchange(name, given, result, truncated=cut)
    else:
        found = read_run(name, span, kind, given, result, function=True, truncated=cut)
    properties = under(attributes, _PROPERTIES)
    return replace(
        found,
        session_id=scalars.first_name(properties, "session_id"),
        user_id=scalars.first_name(properties, "user_id"),
        metadata={key: snapshot(value) for key, value in under(properties, "metadata.").items()},
    )
