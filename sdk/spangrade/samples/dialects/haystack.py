"""Haystack: pipelines, components and agents, each with its inputs and outputs as one JSON text.

Source: haystack-ai 3.4.1 (haystack/core/pipeline, haystack/components/agents) with its OpenTelemetryTracer. What a component is,
its class's name says: ``InMemoryBM25Retriever``, ``OpenAIChatGenerator``. A pipeline's inputs are written down even where the
capture of content is off, as of 3.4.
"""

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any, Final

from spangrade.model.documents import read_documents
from spangrade.model.span import SpanData
from spangrade.samples import scalars
from spangrade.samples.arguments import by_name, executed
from spangrade.samples.dialects.base import EVALUATOR, NOT_A_CALL, KindMark, session_id, user_id
from spangrade.samples.exchanges import of_payloads
from spangrade.samples.jsontext import read_loose
from spangrade.samples.messages import Turn, as_messages, last_user_text, outcome, system_text
from spangrade.samples.payloads import Payload, facts
from spangrade.samples.reading import RETRIEVAL_KINDS, Reading
from spangrade.samples.turns import read_message

COMPONENT: Final = "haystack.component.type"
RUNS: Final = "haystack.pipeline.max_runs_per_component"
STEPS: Final = "haystack.agent.max_steps"
TOOL: Final = "haystack.tool.name"
#: What is known of a span by which pair it has: input and output.
_PAIRS: Final[Mapping[str, tuple[str, str]]] = {
    "component": ("haystack.component.input", "haystack.component.output"),
    "chain": ("haystack.pipeline.input_data", "haystack.pipeline.output_data"),
    "agent": ("haystack.agent.input", "haystack.agent.output"),
    "llm": ("haystack.agent.step.llm.input", "haystack.agent.step.llm.output"),
    "tool": ("haystack.agent.step.tool.input", "haystack.agent.step.tool.output"),
}
#: How a class's name ends → what such a component is. A joiner makes one list of what several retrievers found.
ENDINGS: Final = (
    ("retriever", "retriever"),
    ("websearch", "retriever"),
    ("ranker", "reranker"),
    ("documentjoiner", "reranker"),
    ("generator", "llm"),
    ("embedder", "embedding"),
    ("evaluator", EVALUATOR),
    ("promptbuilder", NOT_A_CALL),
)
_QUESTIONS: Final = ("query", "question", "text", "prompt")
_ANSWERS: Final = ("answer", "data", "text")

name: Final = "haystack"
capture: Final = "set HAYSTACK_CONTENT_TRACING_ENABLED=true in the application's environment"
kind_marks: Final[Mapping[str, KindMark]] = {
    COMPONENT: KindMark(suffixes=ENDINGS, default="chain"),
    RUNS: KindMark(present="chain"),
    STEPS: KindMark(present="agent"),
    TOOL: KindMark(present="tool"),
    **{key: KindMark(present=kind) for kind in ("chain", "agent", "llm", "tool") for key in _PAIRS[kind]},
}
content_keys: Final = frozenset(key for pair in _PAIRS.values() for key in pair)
content_prefixes: Final[tuple[str, ...]] = ()
_CLAIMS: Final = frozenset(kind_marks)


def claims(attributes: Mapping[str, Any]) -> bool:
    return not _CLAIMS.isdisjoint(attributes)


def read(span: SpanData) -> Reading:
    attributes = span.attributes
    kind, pair = _kind(attributes)
    given, given_cut = read_loose(attributes.get(pair[0]))
    result, result_cut = read_loose(attributes.get(pair[1]))
    cut = given_cut or result_cut
    if kind == "llm":
        found = _model(given, result, cut)
    elif kind == "agent":
        found = _agent(given, result, cut)
    elif kind == "tool":
        called = executed(scalars.first_name(attributes, TOOL), given)
        found = Reading(name, kind=kind, input=given, output=result, tool_calls=called, truncated=cut)
    elif kind in RETRIEVAL_KINDS:
        found = _retrieval(kind, given, result, cut)
    elif pair == _PAIRS["chain"]:
        found = Reading(name, kind=kind, input=_asked(given), output=_answered(result), truncated=cut)
    else:
        found = Reading(name, kind=kind, input=by_name(_given(given)), output=by_name(result), truncated=cut)
    return replace(found, session_id=session_id(attributes), user_id=user_id(attributes))


def _kind(attributes: Mapping[str, Any]) -> tuple[str, tuple[str, str]]:
    component = scalars.first_name(attributes, COMPONENT)
    if component is not None:
        lower = component.lower()
        kind = next((kind for ending, kind in ENDINGS if lower.endswith(ending)), "chain")
        return kind, _PAIRS["component"]
    if STEPS in attributes:
        return "agent", _PAIRS["agent"]
    if TOOL in attributes:
        return "tool", _PAIRS["tool"]
    for kind in ("llm", "tool", "agent"):
        if any(key in attributes for key in _PAIRS[kind]):
            return kind, _PAIRS[kind]
    return "chain", _PAIRS["chain"]


def _given(value: Any) -> Any:
    """The inputs that were given: every other is null."""
    return {key: one for key, one in value.items() if one is not None} if isinstance(value, Mapping) else value


# --- models and agents ---------------------------------------------------------------------------------------------------


def _model(given: Any, result: Any, cut: bool) -> Reading:
    asked = given if isinstance(given, Mapping) else {}
    request = Payload(_turns(asked.get("messages"), "user"))
    if isinstance(asked.get("prompt"), str):
        system = asked.get("system_prompt")
        before = [Turn("system", system)] if isinstance(system, str) and system else []
        request.turns = [*before, Turn("user", asked["prompt"])]
    request.known = bool(request.turns)
    response = _replies(result)
    found = of_payloads(name, _given(given), result, request, response, truncated=cut)
    return replace(found, tools=_tools(asked.get("tools")), usage=response.usage)


def _agent(given: Any, result: Any, cut: bool) -> Reading:
    asked = _turns(given.get("messages"), "user") if isinstance(given, Mapping) else []
    turns = _turns(result.get("messages"), "unknown") if isinstance(result, Mapping) else []
    ends = bool(turns) and turns[-1].role == "assistant"
    said = turns[-1:] if ends else []
    before = (turns[:-1] if ends else turns) or asked
    messages, long = as_messages(before)
    answered = outcome(turns)
    return Reading(
        name,
        kind="agent",
        input=last_user_text(asked) if asked else by_name(_given(given)),
        output=answered.text if turns else result,
        messages=messages,
        output_messages=as_messages(said)[0],
        system=system_text(before),
        tool_calls=answered.tool_calls,
        reasoning=answered.reasoning,
        truncated=cut or long,
    )


def _replies(result: Any) -> Payload:
    """``{"replies": [...]}``: messages, or texts with what is known of each beside them under ``meta``."""
    if not isinstance(result, Mapping) or not isinstance(result.get("replies"), (list, tuple)):
        return Payload()
    replies, beside = result["replies"], result.get("meta")
    metas = beside if isinstance(beside, (list, tuple)) else [_meta(reply) for reply in replies]
    known = [meta for meta in metas if isinstance(meta, Mapping)]
    found = facts(known[0]) if known else Payload()
    found.turns, found.known = _turns(replies, "assistant"), True
    for turn, meta in zip(found.turns, known, strict=False):
        turn.finish_reason = turn.finish_reason or scalars.first_name(meta, "finish_reason")
    return found


def _meta(message: Any) -> Any:
    return message.get("meta", message.get("_meta")) if isinstance(message, Mapping) else None


def _turns(messages: Any, role: str) -> list[Turn]:
    if isinstance(messages, str):
        return [Turn(role, messages)]
    if not isinstance(messages, (list, tuple)):
        return []
    return [turn for message in messages for turn in read_message(_plain(message), role)]


def _plain(message: Any) -> Any:
    """A ChatMessage with the kinds of its parts named: each is the key of a mapping of one."""
    if not isinstance(message, Mapping):
        return message
    content = message.get("content", message.get("_content"))
    parts = [_part(part) for part in content] if isinstance(content, (list, tuple)) else content
    role = message.get("role", message.get("_role"))
    return {"role": role, "name": message.get("name"), "content": parts}


def _part(part: Any) -> Any:
    if not isinstance(part, Mapping) or len(part) != 1:
        return part
    ((kind, held),) = part.items()
    if not isinstance(held, Mapping):
        return part
    if kind == "tool_call":
        return {**held, "type": kind}
    if kind == "tool_call_result":
        origin = held.get("origin")
        known = origin if isinstance(origin, Mapping) else {}
        found = {"type": "tool_result", "result": held.get("result")}
        return {**found, "id": known.get("id"), "name": known.get("tool_name")}
    if kind == "reasoning":
        return {"type": kind, "content": held.get("reasoning_text")}
    return {"type": kind, "mime_type": held.get("mime_type")}  # image, file


def _tools(value: Any) -> tuple[dict[str, Any], ...]:
    """``{"type": the class, "data": the declaration}``."""
    tools = value if isinstance(value, (list, tuple)) else []
    return scalars.declared_tools([_given(tool.get("data", tool)) for tool in tools if isinstance(tool, Mapping)])


# --- retrieval and pipelines ------------------------------------------------------------------------------------------------


def _retrieval(kind: str, given: Any, result: Any, cut: bool) -> Reading:
    query = given.get("query") if isinstance(given, Mapping) else None
    held = result.get("documents") if isinstance(result, Mapping) else None
    documents = None
    if isinstance(held, (list, tuple)):
        documents = read_documents([_given(document) for document in held])
    return Reading(
        name,
        kind=kind,
        input=query if query is not None else by_name(_given(given)),
        output=result,
        documents=documents,
        query=query if isinstance(query, str) else None,
        truncated=cut,
    )


def _asked(value: Any) -> Any:
    """A pipeline's question: the text that all its components are asked, else the only one under a question's name; else
    all that it was given, by component."""
    if not isinstance(value, Mapping):
        return value
    held = [inputs for inputs in value.values() if isinstance(inputs, Mapping)]
    turns = [turn for inputs in held for turn in _turns(_messages(inputs), "user")]
    texts = {text for inputs in held for text in inputs.values() if isinstance(text, str)}
    for candidates in (
        texts,
        {inputs[key] for inputs in held for key in _QUESTIONS if isinstance(inputs.get(key), str)},
    ):
        if len(candidates) == 1 and not turns:
            return next(iter(candidates))
    question = last_user_text(turns)
    return question if question is not None and not texts else value


def _messages(inputs: Mapping[str, Any]) -> Any:
    messages = inputs.get("messages")
    return messages if isinstance(messages, (list, tuple)) else None


def _answered(value: Any) -> Any:
    """A pipeline's answer: what its last component with an answer says; else all that came out, by component."""
    if not isinstance(value, Mapping):
        return value
    for outputs in reversed(list(value.values())):
        if isinstance(outputs, Mapping):
            text = next((text for text in _texts(outputs) if text is not None), None)
            if text is not None:
                return text
    return value


def _texts(outputs: Mapping[str, Any]) -> Iterator[str | None]:
    """The answers among a component's outputs: of an answer builder, of a model, of an agent."""
    for answered in outputs.get("answers") or () if isinstance(outputs.get("answers"), (list, tuple)) else ():
        if isinstance(answered, Mapping):
            inner = answered.get("init_parameters")
            yield scalars.text(_first(inner if isinstance(inner, Mapping) else answered, _ANSWERS))
    if "replies" in outputs:
        yield outcome(_replies(outputs).turns).text
    yield outcome(_turns(_messages(outputs), "unknown")).text


def _first(held: Mapping[str, Any], keys: tuple[str, ...]) -> Any:
    return next((held[key] for key in keys if held.get(key) is not None), None)
