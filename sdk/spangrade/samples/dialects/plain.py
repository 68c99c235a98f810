"""Bare ``input`` and ``output`` attributes, as people write them by hand."""

from collections.abc import Mapping
from typing import Any, Final

from spangrade._values import bounded, snapshot
from spangrade.model.span import SpanData
from spangrade.samples.dialects.base import KindMark, session_id, user_id
from spangrade.samples.reading import Reading

name: Final = "plain"
capture: Final = "set the span attributes input and output"
kind_marks: Final[Mapping[str, KindMark]] = {"input": KindMark(present="chain"), "output": KindMark(present="chain")}
content_keys: Final = frozenset({"input", "output"})
content_prefixes: Final[tuple[str, ...]] = ()


def claims(attributes: Mapping[str, Any]) -> bool:
    return "input" in attributes or "output" in attributes


def read(span: SpanData) -> Reading:
    attributes = span.attributes
    return Reading(
        name,
        kind="chain",
        input=_value(attributes.get("input")),
        output=_value(attributes.get("output")),
        session_id=session_id(attributes),
        user_id=user_id(attributes),
    )


def _value(value: Any) -> Any:
    return bounded(value) if isinstance(value, str) else snapshot(value)
