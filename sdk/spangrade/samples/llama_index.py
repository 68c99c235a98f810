"""LlamaIndex's objects as its instrumentation writes them: by Python's `repr`, inside JSON.

Seen with openinference-instrumentation-llama-index 4.6: messages of a request, a query, and the nodes that a retriever gave
back, whose text is lost (the flattened documents have it).
"""

import re
import sys
from collections.abc import Mapping
from typing import Any, Final

_LITERAL: Final = r"""'(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*\""""
_MESSAGE: Final = re.compile(r"ChatMessage\(role=<MessageRole\.\w+: '(\w+)'>")
# A literal that is no block's text is passed over whole, so that nothing written in a text is taken for a block.
_BLOCK: Final = re.compile(
    rf"\w+Block\(block_type='(?P<kind>\w+)'(?:, text=(?P<text>{_LITERAL}))?|{_LITERAL}", re.DOTALL
)
_ESCAPE: Final = re.compile(r"\\(?:x([0-9a-f]{2})|u([0-9a-f]{4})|U([0-9a-f]{8})|(.))", re.DOTALL)
_PLAIN: Final = {"n": "\n", "r": "\r", "t": "\t", "\\": "\\", "'": "'", '"': '"'}
_NODE: Final = re.compile(r"<NodeWithScore\(node=\w+\(id_=(?P<id>.*)\), score=(?P<score>[^()]*)\)>", re.DOTALL)


def unwrapped(given: Any) -> Any:
    """A request or a query whose objects are plain values; anything else as it is."""
    if not isinstance(given, Mapping):
        return given
    bundle = given.get("query_bundle")
    if len(given) == 1 and isinstance(bundle, Mapping) and isinstance(bundle.get("query_str"), str):
        return bundle["query_str"]
    messages = given.get("messages")
    if isinstance(messages, (list, tuple)) and any(isinstance(one, str) and _MESSAGE.match(one) for one in messages):
        return {**given, "messages": [_message(one) for one in messages]}
    return given


def documents(result: Any) -> list[dict[str, Any]] | None:
    """Ids and scores of a retriever's nodes; None where the value is no list of them."""
    if not isinstance(result, (list, tuple)) or not result:
        return None
    found = [_NODE.fullmatch(one) if isinstance(one, str) else None for one in result]
    return [_node(one) for one in found if one is not None] if all(found) else None


def _message(written: Any) -> Any:
    begun = _MESSAGE.match(written) if isinstance(written, str) else None
    if begun is None:
        return written
    parts: list[dict[str, Any]] = []
    for block in _BLOCK.finditer(written, begun.end()):
        if block["text"] is not None:
            parts.append({"type": "text", "text": _literal(block["text"])})
        elif block["kind"] is not None:
            parts.append({"type": block["kind"]})
    return {"role": begun[1], "content": parts}


def _literal(written: str) -> str:
    """What Python's literal says. Not by its parser, which warns on the application's standard error of what it does not
    like."""
    return _ESCAPE.sub(_unescaped, written[1:-1])


def _unescaped(found: re.Match[str]) -> str:
    code = found[1] or found[2] or found[3]
    if code is not None:
        number = int(code, 16)
        return chr(number) if number <= sys.maxunicode else found[0]
    return _PLAIN.get(found[4], found[0])


def _node(found: re.Match[str]) -> dict[str, Any]:
    try:
        return {"id": found["id"], "score": float(found["score"])}
    except ValueError:  # None: the store gives no scores
        return {"id": found["id"]}
