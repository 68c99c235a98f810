"""What only Spangrade's own spans carry: ``spangrade.context``, the JSON object of `set_context`; and the mark of an
experiment's run, which its experiment scores and no pipeline does.

The rest of an own span is OpenInference (kind, ``input.value``, ``output.value``, ``metadata``) and OpenTelemetry GenAI
(messages, documents), and is read by those dialects.
"""

from collections.abc import Mapping
from typing import Any, Final

from spangrade import semconv
from spangrade.model.span import SpanData
from spangrade.samples.dialects.base import EVALUATOR, KindMark
from spangrade.samples.jsontext import read_object
from spangrade.samples.reading import Reading

name: Final = "spangrade"
capture: Final = "it is on unless @trace(capture_input=False, capture_output=False) or a setting of yours leaves it out"
kind_marks: Final[Mapping[str, KindMark]] = {semconv.EXPERIMENT_NAME: KindMark(prefixes=(("", EVALUATOR),))}
content_keys: Final = frozenset({semconv.CONTEXT})
content_prefixes: Final[tuple[str, ...]] = ()


def claims(attributes: Mapping[str, Any]) -> bool:
    return semconv.CONTEXT in attributes


def read(span: SpanData) -> Reading:
    return Reading(name, context=read_object(span.attributes.get(semconv.CONTEXT)))
