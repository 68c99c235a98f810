"""`tool_calls_valid`: whether the tool calls are ones that the declared tools allow.

What it measures: the share of tool calls whose name is declared and whose arguments are a JSON object that is valid against the declared
schema: required ones there, types right, and no name that the schema does not know (unless it allows others by
``additionalProperties``). The explanation says of the first bad calls what is wrong, with the JSON path. Passes at 1: every call is valid.

What it does not: whether it was the right tool, or the right moment, or true arguments. A call that only the tool's own span tells of
counts like the ones a model asked for. A tool declared without a schema is checked by name only.

Tools are read where they were traced (``gen_ai.tool.definitions``, OpenInference's ``llm.tools.*`` and the request's parameters) or
given (``sg.set_context(tools=[...])``, ``tools=`` here), in the shapes of OpenAI, Anthropic, OpenTelemetry, MCP, Gemini and Bedrock. No
call, or no declared tool: skipped. Arguments need ``pip install "spangrade[schema]"``.

Source: the providers' tool interfaces; JSON Schema Draft 2020-12.
"""

import functools
import json
from typing import Any, Final

from pydantic_core import from_json

from spangrade._text import bounded
from spangrade.errors import ConfigError
from spangrade.metrics.builtin.schemas import BadSchema, Validator
from spangrade.metrics.builtin.searching import TookTooLong
from spangrade.metrics.builtin.tool_declarations import NO_ARGUMENTS, Tool, ToolCall, calls, declared
from spangrade.metrics.local import LocalMetric
from spangrade.model.sample import Sample
from spangrade.model.score import ReturnError, Score, Skip

_MAX_FAULTS: Final = 5


def tool_calls_valid(
    tools: Any = None, *, allow_unknown: bool = False, name: str = "tool_calls_valid", target: str = "root"
) -> LocalMetric:
    """A metric of the share of tool calls that the declared tools allow; passes at 1.

    Args:
        tools: the declared tools; default: those that the sample tells of.
        allow_unknown: take arguments that the schema does not name, as JSON Schema itself does.
        name: of the score.
        target: what is scored, as in `LocalMetric`.

    Raises:
        ConfigError: nothing in ``tools`` is a declaration.
    """
    given = None if tools is None else declared(tools)
    if given is not None and not given:
        raise ConfigError(f"metric {name!r}: no tool with a name in tools={bounded(repr(tools), 200)}")

    def rule(sample: Sample) -> Score:
        called = calls(sample.context, sample.output)
        if not called:
            raise Skip("no tool call")
        known = given if given is not None else declared(sample.context.get("tools"))
        if not known:
            raise Skip(
                "no declared tools: neither traced (gen_ai.tool.definitions, llm.tools) nor given by set_context(tools=...)"
            )
        faults = [(number, call, _fault(call, known, allow_unknown)) for number, call in enumerate(called, 1)]
        bad = [f"call {number} {call.name[:60]!r}: {fault}" for number, call, fault in faults if fault]
        if not bad:
            return Score(1.0, explanation=f"{len(called)} of {len(called)} calls valid")
        more = f"; and {len(bad) - _MAX_FAULTS} more" if len(bad) > _MAX_FAULTS else ""
        return Score(1 - len(bad) / len(called), explanation="; ".join(bad[:_MAX_FAULTS]) + more)

    config: dict[str, Any] = {"version": 1, "allow_unknown": allow_unknown}
    if given is not None:
        config["tools"] = json.dumps({tool.name: tool.schema for tool in given.values()}, sort_keys=True, default=str)
    return LocalMetric(rule, name, 1.0, config, (), target, timeout=30.0)


def _fault(call: ToolCall, known: dict[str, Tool], allow_unknown: bool) -> str:
    """What is wrong with a call, or nothing."""
    tool = known.get(call.name)
    if tool is None:
        return f"no such tool; declared are {', '.join(repr(name[:40]) for name in list(known)[:8])}"
    arguments = {} if call.arguments is NO_ARGUMENTS else call.arguments
    if isinstance(arguments, str):
        if not arguments.strip():
            arguments = {}
        else:
            try:
                arguments = from_json(arguments)
            except ValueError as fault:
                return f"arguments are not JSON: {bounded(str(fault), 120)}"
    if not isinstance(arguments, dict):
        return f"arguments are {_kind(arguments)} and no JSON object"
    if tool.schema is None:
        return ""
    try:
        validator = _validator(json.dumps(tool.schema, sort_keys=True, default=str), allow_unknown)
        found, count = validator.faults(arguments)
    except (BadSchema, TookTooLong) as fault:
        raise ReturnError(f"the declaration of {call.name[:60]!r} cannot be used: {fault}") from None
    return "; ".join(found[:2]) + (f" and {count - 2} more" if count > 2 else "")


def _kind(value: Any) -> str:
    return {list: "a list", str: "text", bool: "a truth value", type(None): "null"}.get(type(value), "a number")


@functools.lru_cache(maxsize=256)
def _validator(schema: str, allow_unknown: bool) -> Validator:
    """Declarations come with every sample and hardly ever change: each is compiled once."""
    parsed = json.loads(schema)
    if (
        not allow_unknown
        and isinstance(parsed, dict)
        and not {"additionalProperties", "unevaluatedProperties", "$ref"} & parsed.keys()
    ):
        combined = {"allOf", "anyOf", "oneOf", "if"} & parsed.keys()
        parsed["unevaluatedProperties" if combined else "additionalProperties"] = False
    return Validator(parsed)
