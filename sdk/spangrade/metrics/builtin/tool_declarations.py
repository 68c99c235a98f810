"""Declared tools in any provider's shape → names and argument schemas; tool calls in any shape → name and arguments.

Declarations of OpenAI chat (``{"type": "function", "function": {...}}``), OpenAI Responses and OpenTelemetry (flat, ``parameters``),
Anthropic (``input_schema``), MCP (``inputSchema``), Gemini (``functionDeclarations``), Bedrock (``toolSpec``), LangChain (``args``), and
bare names.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

from pydantic_core import from_json

_GROUPS: Final = ("functionDeclarations", "function_declarations", "tools")
_NESTED: Final = ("function", "toolSpec", "tool_spec")
_SCHEMAS: Final = ("parameters", "input_schema", "inputSchema", "args_schema", "parametersJsonSchema", "json_schema")
_MAX_CALLS: Final = 256
NO_ARGUMENTS: Final = object()


@dataclass(frozen=True, slots=True)
class Tool:
    """A declared tool. ``schema`` is None where the declaration says nothing of its arguments."""

    name: str
    schema: Any = None


@dataclass(frozen=True, slots=True)
class ToolCall:
    """What was called. ``arguments`` is `NO_ARGUMENTS` where the call has none, and text where that is no JSON."""

    name: str
    arguments: Any


def declared(tools: Any) -> dict[str, Tool]:
    """The tools by name; of two declarations of one name the one with a schema, else the first."""
    found: dict[str, Tool] = {}
    for tool in _declared(tools, 0):
        known = found.get(tool.name)
        if known is None or (known.schema is None and tool.schema is not None):
            found[tool.name] = tool
    return found


def _declared(value: Any, depth: int) -> Iterator[Tool]:
    if depth > 4:
        return
    if isinstance(value, str):
        parsed = _json(value)
        if parsed is not None:
            yield from _declared(parsed, depth + 1)
        elif value.strip():
            yield Tool(value.strip())
    elif isinstance(value, (list, tuple)):
        for item in value:
            yield from _declared(item, depth + 1)
    elif isinstance(value, Mapping):
        yield from _one(value, depth)


def _one(value: Mapping[str, Any], depth: int) -> Iterator[Tool]:
    for key in _GROUPS:
        if isinstance(value.get(key), (list, tuple)):
            yield from _declared(value[key], depth + 1)
            return
    for key in _NESTED:
        if isinstance(value.get(key), Mapping):
            yield from _one(value[key], depth + 1)
            return
    name = value.get("name")
    if isinstance(name, str) and name.strip():
        yield Tool(name.strip(), _schema(value))
    elif name is None and value and all(isinstance(held, Mapping) and "name" not in held for held in value.values()):
        for key, held in value.items():  # {"search": {"type": "object", ...}}
            yield Tool(str(key), _schema(held) or (held if "type" in held or "properties" in held else None))


def _schema(value: Mapping[str, Any]) -> Any:
    for key in _SCHEMAS:
        held = value.get(key)
        if isinstance(held, str):
            held = _json(held)
        if isinstance(held, Mapping):
            inner = held.get("json")
            return _lower_types(inner if isinstance(inner, Mapping) and len(held) == 1 else held)
    args = value.get("args")
    return {"type": "object", "properties": dict(args)} if isinstance(args, Mapping) else None


def _lower_types(schema: Any, depth: int = 0) -> Any:
    """Gemini writes ``OBJECT`` for ``object`` and ``nullable`` for a second type."""
    if depth > 32:
        return schema
    if isinstance(schema, (list, tuple)):
        return [_lower_types(item, depth + 1) for item in schema]
    if not isinstance(schema, Mapping):
        return schema
    lowered = {key: _lower_types(held, depth + 1) for key, held in schema.items()}
    kind = lowered.get("type")
    if isinstance(kind, str) and kind.isupper():
        lowered["type"] = [kind.lower(), "null"] if lowered.get("nullable") is True else kind.lower()
    return lowered


def calls(context: Mapping[str, Any], output: Any) -> list[ToolCall]:
    """The tool calls of a sample: those of its context, else those in its output (a message, or a list of calls)."""
    given = context.get("tool_calls")
    if not isinstance(given, (list, tuple)) or not given:
        given = _in_output(output)
    return [_call(item) for item in given[:_MAX_CALLS] if isinstance(item, Mapping)]


def _in_output(output: Any) -> Any:
    if isinstance(output, str):
        output = _json(output)
    if isinstance(output, Mapping):
        held = output.get("tool_calls")
        return held if isinstance(held, (list, tuple)) else []
    if isinstance(output, (list, tuple)) and output and all(_looks_called(item) for item in output):
        return output
    return []


def _looks_called(item: Any) -> bool:
    return isinstance(item, Mapping) and (
        isinstance(item.get("function"), Mapping) or item.get("type") in ("tool_use", "tool_call", "function_call")
    )


def _call(item: Mapping[str, Any]) -> ToolCall:
    inner = next((item[key] for key in ("function", "functionCall") if isinstance(item.get(key), Mapping)), item)
    name = inner.get("name", item.get("name"))
    for holder in (inner, item):
        for key in ("arguments", "args", "input", "parameters"):
            if key in holder and holder[key] is not None:
                return ToolCall(name if isinstance(name, str) else "", holder[key])
    return ToolCall(name if isinstance(name, str) else "", NO_ARGUMENTS)


def _json(text: str) -> Any:
    """A JSON object or list in text, else None."""
    if text.lstrip()[:1] not in ("{", "["):
        return None
    try:
        return from_json(text)
    except ValueError:
        return None
