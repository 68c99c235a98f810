"""Bare ``input`` and ``output`` attributes, as people write them by hand.

Text stays text, JSON text too: an answer that is JSON is graded as it was given (a structured attribute says more). Only a
conversation, a list of messages or an object with ``messages``, is the question and the answer in it.
"""

from collections.abc import Mapping
from typing import Any, Final

from spangrade._values import bounded, snapshot
from spangrade.model.span import SpanData
from spangrade.samples.dialects.base import KindMark, session_id, user_id
from spangrade.samples.jsontext import looks_json, read_value
from spangrade.samples.langchain import read_answered, read_asked
from spangrade.samples.messages import as_messages, system_text
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
    given, result = _value(attributes.get("input")), _value(attributes.get("output"))
    asked, answered = read_asked(_parsed(given)), read_answered(_parsed(result))
    messages, cut = as_messages(asked.turns)
    return Reading(
        name,
        kind="chain",
        input=asked.value if asked.turns else given,
        output=answered.value if answered.turns else result,
        messages=messages,
        system=system_text(asked.turns),
        session_id=session_id(attributes),
        user_id=user_id(attributes),
        truncated=cut,
    )


def _value(value: Any) -> Any:
    return bounded(value) if isinstance(value, str) else snapshot(value)


def _parsed(value: Any) -> Any:
    """A value in which a conversation may be found."""
    return read_value(value)[0] if isinstance(value, str) and looks_json(value) and '"content"' in value else value
