"""What a vector store found, as OpenLLMetry writes it: an event a hit, ``db.query.result`` or ``db.search.result``.

Source: opentelemetry-semantic-conventions-ai 0.5.1, and its instrumentations of Chroma, Pinecone, Milvus and Qdrant. A hit's
text is ``document`` (Chroma); else it stands in its fields: ``metadata`` (Pinecone) or ``entity`` (Milvus), as JSON or as
Python's own spelling of a dict. ``score`` is passed through, and where only a distance is told, that: no order is assumed.
"""

import ast
import re
from collections.abc import Mapping
from typing import Any, Final

from spangrade.model.documents import read_documents
from spangrade.model.span import SpanData
from spangrade.samples.jsontext import read_object

EVENTS: Final[Mapping[str, str]] = {"db.query.result": "db.query.result.", "db.search.result": "db.search.result."}
_FIELDS: Final = ("metadata", "entity")
_TEXTS: Final = ("text", "content", "page_content", "document", "chunk", "passage", "body", "_node_content")
_MAX_LITERAL: Final = 100_000  # characters; Python's own spelling is read only within them
# What `repr` makes of plain values, token by token. Anything else is not handed to Python's parser: that warns of some
# code on the application's standard error.
_LITERALS: Final = re.compile(
    r"(?:[\[\]{}(),: ]|True|False|None|-?\d+(?:\.\d+)?(?:e[+-]?\d+)?(?![\w'\"])"
    r"|'(?:[^'\\\n]|\\(?:[\\'\"nrt]|x[0-9a-f]{2}|u[0-9a-f]{4}|U[0-9a-f]{8}))*+'"
    r'|"(?:[^"\\\n]|\\(?:[\\\'"nrt]|x[0-9a-f]{2}|u[0-9a-f]{4}|U[0-9a-f]{8}))*+")*+'
)


def hits(span: SpanData) -> tuple[dict[str, Any], ...] | None:
    """The documents that the span's events tell of; None where there are none."""
    found = [_hit(event.attributes, EVENTS[event.name]) for event in span.events if event.name in EVENTS]
    return read_documents(found) if found else None


def _hit(attributes: Mapping[str, Any], prefix: str) -> dict[str, Any]:
    named = {key[len(prefix) :]: value for key, value in attributes.items() if key.startswith(prefix)}
    if not named:  # Milvus on query: the row's own fields
        return dict(attributes)
    fields = next((_fields(named[key]) for key in _FIELDS if key in named), {})
    document: dict[str, Any] = {"id": named.get("id")}
    text = named.get("document")
    if text is None:
        key = next((key for key in _TEXTS if isinstance(fields.get(key), str)), None)
        text = fields.pop(key) if key is not None else None
    score = named.get("score") if named.get("score") is not None else named.get("distance")
    document |= {"content": text, "score": score, "metadata": fields}
    return {key: value for key, value in document.items() if value not in (None, {})}


def _fields(value: Any) -> dict[str, Any]:
    """An object as JSON, as a value, or as ``str(dict)``."""
    found = dict(read_object(value))
    if found or not isinstance(value, str) or not value.startswith("{") or len(value) > _MAX_LITERAL:
        return found
    if _LITERALS.fullmatch(value):
        try:
            spelled = ast.literal_eval(value)
        except (ValueError, SyntaxError, MemoryError, RecursionError):
            return {}
        found = {str(key): held for key, held in spelled.items()} if isinstance(spelled, dict) else {}
    return found
