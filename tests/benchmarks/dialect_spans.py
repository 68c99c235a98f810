"""One model call of a small conversation (system turn, question, a tool call with its result, answer) as the libraries of
each dialect write it, and documents where a dialect has its own way for them. The text is ours; keys and encodings are
those that the integration tests see."""

import json
from collections.abc import Mapping
from typing import Any, Final

from spangrade.model.span import EventData, SpanData

SYSTEM: Final = (
    "You help travellers with plugs and sockets. Answer from the documents that you are given, in two or three sentences, and "
    "say so when they do not tell. Voltage and frequency belong to an answer when somebody asks for an appliance that heats."
)
ASKED: Final = (
    "I fly to Lisbon on Friday with a hair dryer (230 V, 2000 W) and a laptop, both with a British plug. Which adapter do I "
    "need, and may the hair dryer run on it for ten minutes? The hotel says that its rooms have sockets with earth pins."
)
FOUND: Final = (
    "Portugal uses sockets of type F, 230 V at 50 Hz; type C plugs fit, too. Adapters from type G to type F are sold for 10 A "
    "and for 13 A. An adapter of 10 A carries 2300 W, for a short time; one of 13 A carries 2990 W."
)
ANSWER: Final = (
    "You need an adapter from type G to type F, since sockets in Portugal are of type F with 230 V at 50 Hz, as at home. The "
    "hair dryer takes 2000 W, so an adapter of 10 A carries it for ten minutes; one of 13 A leaves more room. The laptop runs "
    "on either. Do not run both on one adapter at the same time: together they may take more than 2300 W."
)
CALL: Final = {"city": "Lisbon", "appliance": "hair dryer"}
TOOL: Final = "plugs"

#: As OpenAI's chat API has it.
CHAT: Final[list[dict[str, Any]]] = [
    {"role": "system", "content": SYSTEM},
    {"role": "user", "content": ASKED},
    {"role": "assistant", "content": None, "tool_calls": [
        {"id": "call_1", "type": "function", "function": {"name": TOOL, "arguments": json.dumps(CALL)}}]},
    {"role": "tool", "tool_call_id": "call_1", "content": FOUND},
]  # fmt: skip
CHOICE: Final = {"index": 0, "finish_reason": "stop", "message": {"role": "assistant", "content": ANSWER}}
REQUEST: Final = {"model": "gpt-x", "messages": CHAT}
RESPONSE: Final = {
    "id": "r1",
    "model": "gpt-x-1",
    "choices": [CHOICE],
    "usage": {"prompt_tokens": 310, "completion_tokens": 90},
}
#: As the GenAI conventions have it.
PARTS: Final[list[dict[str, Any]]] = [
    {"role": "system", "parts": [{"type": "text", "content": SYSTEM}]},
    {"role": "user", "parts": [{"type": "text", "content": ASKED}]},
    {"role": "assistant", "parts": [{"type": "tool_call", "id": "call_1", "name": TOOL, "arguments": CALL}]},
    {"role": "tool", "parts": [{"type": "tool_call_response", "id": "call_1", "response": FOUND}]},
]
SAID: Final = [{"role": "assistant", "parts": [{"type": "text", "content": ANSWER}], "finish_reason": "stop"}]
USAGE: Final = {"gen_ai.usage.input_tokens": 310, "gen_ai.usage.output_tokens": 90}
MODEL: Final = {"gen_ai.request.model": "gpt-x", "gen_ai.response.model": "gpt-x-1", "gen_ai.response.id": "r1"}
LANGCHAIN: Final = [
    {"lc": 1, "type": "constructor", "id": ["langchain", "schema", "messages", kind],
     "kwargs": {"type": role, "content": text}}
    for kind, role, text in (("SystemMessage", "system", SYSTEM), ("HumanMessage", "human", ASKED),
                             ("ToolMessage", "tool", FOUND))
]  # fmt: skip
DOCUMENTS: Final = [
    {"page_content": f"{FOUND} Page {n}.", "metadata": {"source": f"guide-{n}.pdf", "page": n}, "id": f"d{n}"}
    for n in range(6)
]


def _flat(
    prefix: str, role: str, content: str, call: str, argument: str, name: str, extra: Mapping[str, str]
) -> dict[str, Any]:
    """The conversation, flattened; the parameters are what the dialect calls its fields."""
    found: dict[str, Any] = {}
    for n, message in enumerate(CHAT):
        found[f"{prefix}.{n}.{role}"] = message["role"]
        if message["content"] is not None:
            found[f"{prefix}.{n}.{content}"] = message["content"]
        for k, asked in enumerate(message.get("tool_calls", ())):
            found |= {
                f"{prefix}.{n}.{call}.{k}.{extra['id']}": asked["id"],
                f"{prefix}.{n}.{call}.{k}.{name}": asked["function"]["name"],
                f"{prefix}.{n}.{call}.{k}.{argument}": asked["function"]["arguments"],
            }
        if "tool_call_id" in message:
            found[f"{prefix}.{n}.{extra['answers']}"] = message["tool_call_id"]
    return found


def _events() -> list[EventData]:
    found = []
    for message in CHAT:
        held = {key: value for key, value in message.items() if key != "role" and value is not None}
        if "tool_calls" in held:
            held["tool_calls"] = json.dumps(held["tool_calls"])
        if "tool_call_id" in held:
            held["id"] = held.pop("tool_call_id")
        found.append(EventData(f"gen_ai.{message['role']}.message", held, len(found) + 1))
    choice = {"index": 0, "finish_reason": "stop", "message": json.dumps(CHOICE["message"])}
    return [*found, EventData("gen_ai.choice", choice, len(found) + 1)]


OI_FLAT: Final = {
    **_flat("llm.input_messages", "message.role", "message.content", "message.tool_calls", "tool_call.function.arguments",
            "tool_call.function.name", {"id": "tool_call.id", "answers": "message.tool_call_id"}),
    "llm.output_messages.0.message.role": "assistant",
    "llm.output_messages.0.message.content": ANSWER,
    "llm.token_count.prompt": 310,
    "llm.token_count.completion": 90,
    "llm.model_name": "gpt-x",
}  # fmt: skip
RAW: Final = {
    "input.value": json.dumps(REQUEST),
    "input.mime_type": "application/json",
    "output.value": json.dumps(RESPONSE),
    "output.mime_type": "application/json",
}

#: Dialect → what its libraries write → attributes.
ATTRIBUTES: Final[dict[str, dict[str, dict[str, Any]]]] = {
    "spangrade": {
        "traced function": {
            "openinference.span.kind": "CHAIN", "input.value": ASKED, "output.value": ANSWER,
            "spangrade.context": json.dumps({"plan": "gold", "attempt": 1}), "metadata": json.dumps({"tenant": "acme"}),
            "gen_ai.retrieval.documents": json.dumps([{"id": d["id"], "content": d["page_content"], "score": 0.5} for d in DOCUMENTS]),
        },
    },
    "openinference": {
        "openai": {"openinference.span.kind": "LLM", **OI_FLAT, **RAW},
        "raw only": {"openinference.span.kind": "LLM", **RAW},
        "retriever": {
            "openinference.span.kind": "RETRIEVER", "input.value": ASKED,
            **{f"retrieval.documents.{n}.document.{key}": value for n, d in enumerate(DOCUMENTS)
               for key, value in (("id", d["id"]), ("content", d["page_content"]), ("score", 0.5), ("metadata", json.dumps(d["metadata"])))},
        },
    },
    "otel_genai": {
        "chat": {
            "gen_ai.operation.name": "chat", "gen_ai.provider.name": "openai", **MODEL, **USAGE,
            "gen_ai.input.messages": json.dumps(PARTS), "gen_ai.output.messages": json.dumps(SAID),
        },
        "tool": {
            "gen_ai.operation.name": "execute_tool", "gen_ai.tool.name": TOOL, "gen_ai.tool.call.id": "call_1",
            "gen_ai.tool.call.arguments": json.dumps(CALL), "gen_ai.tool.call.result": FOUND,
        },
    },
    "otel_genai_events": {"openai": {"gen_ai.operation.name": "chat", "gen_ai.system": "openai", **MODEL, **USAGE}},
    "traceloop": {
        "flattened": {
            "llm.request.type": "chat", "gen_ai.system": "OpenAI", **MODEL, **USAGE,
            **_flat("gen_ai.prompt", "role", "content", "tool_calls", "arguments", "name", {"id": "id", "answers": "tool_call_id"}),
            "gen_ai.completion.0.role": "assistant", "gen_ai.completion.0.content": ANSWER,
            "gen_ai.completion.0.finish_reason": "stop",
        },
        "workflow": {
            "traceloop.span.kind": "workflow", "traceloop.entity.name": "answer",
            "traceloop.entity.input": json.dumps({"args": [ASKED], "kwargs": {"documents": DOCUMENTS}}),
            "traceloop.entity.output": json.dumps(ANSWER),
        },
    },
    "langfuse": {
        "generation": {
            "langfuse.observation.type": "generation", "langfuse.observation.model.name": "gpt-x",
            "langfuse.observation.input": json.dumps(CHAT), "langfuse.observation.output": json.dumps(CHOICE["message"]),
            "langfuse.observation.usage_details": json.dumps({"input": 310, "output": 90, "total": 400}), "session.id": "s1",
        },
        "retriever": {
            "langfuse.observation.type": "retriever", "langfuse.observation.input": json.dumps({"args": [ASKED], "kwargs": {}}),
            "langfuse.observation.output": json.dumps(DOCUMENTS),
        },
    },
    "logfire": {
        "openai": {
            "logfire.span_type": "span", "logfire.msg": "Chat Completion with 'gpt-x'", "request_data": json.dumps(REQUEST),
            "response_data": json.dumps({"message": CHOICE["message"], "usage": RESPONSE["usage"]}), "gen_ai.system": "openai",
            "gen_ai.operation.name": "chat", **MODEL, **USAGE,
        },
    },
    "pydantic_ai": {
        "agent": {
            "gen_ai.operation.name": "invoke_agent", "gen_ai.agent.name": "clerk", "model_name": "gpt-x", **USAGE,
            "pydantic_ai.all_messages": json.dumps([*PARTS, *SAID]), "final_result": ANSWER, "pydantic_ai.new_message_index": 0,
        },
    },
    "mlflow": {
        "openai": {
            "mlflow.spanType": '"CHAT_MODEL"', "mlflow.spanInputs": json.dumps(REQUEST), "mlflow.spanOutputs": json.dumps(RESPONSE),
            "mlflow.chat.tokenUsage": json.dumps({"input_tokens": 310, "output_tokens": 90, "total_tokens": 400}),
            "mlflow.llm.model": '"gpt-x"',
        },
        "retriever": {
            "mlflow.spanType": '"RETRIEVER"', "mlflow.spanInputs": json.dumps({"query": ASKED}),
            "mlflow.spanOutputs": json.dumps(DOCUMENTS),
        },
    },
    "langsmith": {
        "langchain": {
            "langsmith.span.kind": "llm", "gen_ai.operation.name": "chat", "gen_ai.prompt": json.dumps({"messages": [LANGCHAIN]}),
            "gen_ai.completion": json.dumps({"generations": [[{"text": ANSWER, "type": "ChatGeneration"}]]}),
            "langsmith.metadata.session_id": "s1", **MODEL, **USAGE,
        },
        "retriever": {
            "langsmith.span.kind": "retriever", "gen_ai.prompt": json.dumps({"query": ASKED}),
            "gen_ai.completion": json.dumps({"documents": DOCUMENTS}),
        },
    },
    "trulens": {
        "root": {
            "ai.observability.span_type": "record_root", "ai.observability.record_root.input": ASKED,
            "ai.observability.record_root.output": ANSWER, "ai.observability.call.kwargs.query": ASKED,
            "ai.observability.call.return": ANSWER,
        },
        "retrieval": {
            "ai.observability.span_type": "retrieval", "ai.observability.retrieval.query_text": ASKED,
            "ai.observability.retrieval.retrieved_contexts": tuple(d["page_content"] for d in DOCUMENTS),
        },
    },
    "haystack": {
        "generator": {
            "haystack.component.type": "OpenAIChatGenerator", "haystack.component.name": "llm",
            "haystack.component.input": json.dumps({"messages": [
                {"role": m["role"], "meta": {}, "name": None, "content": [{"text": m["content"] or ""}]} for m in CHAT]}),
            "haystack.component.output": json.dumps({"replies": [
                {"role": "assistant", "meta": {"model": "gpt-x", "finish_reason": "stop",
                                               "usage": {"prompt_tokens": 310, "completion_tokens": 90}},
                 "name": None, "content": [{"text": ANSWER}]}]}),
        },
        "retriever": {
            "haystack.component.type": "InMemoryBM25Retriever", "haystack.component.name": "retriever",
            "haystack.component.input": json.dumps({"query": ASKED}),
            "haystack.component.output": json.dumps({"documents": [
                {"id": d["id"], "content": d["page_content"], "score": 0.5, "source": "guide.pdf"} for d in DOCUMENTS]}),
        },
    },
    "semantic_kernel": {"chat": {"gen_ai.operation.name": "chat", "gen_ai.system": "openai", **MODEL, **USAGE}},
    "agent_framework": {
        "agent": {
            "gen_ai.operation.name": "invoke_agent", "gen_ai.provider.name": "microsoft.agent_framework", "gen_ai.agent.name": "clerk",
            "gen_ai.input.messages": json.dumps(PARTS), "gen_ai.output.messages": json.dumps(SAID), **USAGE,
        },
    },
    "google_adk": {
        "call_llm": {
            "gen_ai.system": "gcp.vertex.agent", "gen_ai.operation.name": "generate_content", "gen_ai.request.model": "gemini-x",
            "gcp.vertex.agent.llm_request": json.dumps({
                "model": "gemini-x", "config": {"system_instruction": SYSTEM}, "contents": [
                    {"role": "user", "parts": [{"text": ASKED}]},
                    {"role": "model", "parts": [{"function_call": {"name": TOOL, "args": CALL}}]},
                    {"role": "user", "parts": [{"function_response": {"name": TOOL, "response": {"result": FOUND}}}]}]}),
            "gcp.vertex.agent.llm_response": json.dumps({
                "content": {"role": "model", "parts": [{"text": ANSWER}]}, "finish_reason": "STOP",
                "usage_metadata": {"prompt_token_count": 310, "candidates_token_count": 90}}),
        },
    },
    "vercel": {
        "doGenerate": {
            "operation.name": "ai.generateText.doGenerate", "ai.operationId": "ai.generateText.doGenerate", "ai.model.id": "gpt-x",
            "ai.prompt.messages": json.dumps([
                {"role": "system", "content": SYSTEM}, {"role": "user", "content": [{"type": "text", "text": ASKED}]},
                {"role": "assistant", "content": [{"type": "tool-call", "toolCallId": "call_1", "toolName": TOOL, "input": CALL}]},
                {"role": "tool", "content": [{"type": "tool-result", "toolCallId": "call_1", "toolName": TOOL,
                                              "output": {"type": "text", "value": FOUND}}]}]),
            "ai.response.text": ANSWER, "ai.response.finishReason": "stop", "ai.usage.promptTokens": 310,
            "ai.usage.completionTokens": 90, **MODEL, **USAGE,
        },
        "generateText": {
            "operation.name": "ai.generateText", "ai.operationId": "ai.generateText", "ai.model.id": "gpt-x",
            "ai.prompt": json.dumps({"system": SYSTEM, "messages": [{"role": "user", "content": ASKED}]}), "ai.response.text": ANSWER,
        },
    },
    "spring_ai": {
        "tool": {
            "spring.ai.kind": "tool_call", "spring.ai.tool.definition.name": TOOL,
            "spring.ai.tool.call.arguments": json.dumps(CALL), "spring.ai.tool.call.result": FOUND,
        },
        "vector store": {
            "db.operation.name": "query", "db.system": "pg_vector", "db.vector.query.content": ASKED,
            "db.vector.query.response.documents": json.dumps([d["page_content"] for d in DOCUMENTS]),
        },
    },
    "genkit": {
        "model": {
            "genkit:metadata:subtype": "model", "genkit:name": "googleai/gemini-x",
            "genkit:input": json.dumps({"messages": [
                {"role": "system", "content": [{"text": SYSTEM}]}, {"role": "user", "content": [{"text": ASKED}]}]}),
            "genkit:output": json.dumps({"message": {"role": "model", "content": [{"text": ANSWER}]}, "finishReason": "stop"}),
        },
    },
    "laminar": {
        "llm": {
            "lmnr.span.type": "LLM", "lmnr.span.input": json.dumps(CHAT), "lmnr.span.output": json.dumps([CHOICE["message"]]),
            **MODEL, **USAGE,
        },
    },
    "livekit": {"turn": {"lk.user_input": ASKED, "lk.response.text": ANSWER, "lk.chat_ctx": json.dumps({"items": [
        {"type": "message", "role": m["role"], "content": [m["content"] or ""]} for m in CHAT]})}},
    "claude_code": {"request": {"span.type": "claude_code.llm_request", "new_context": ASKED, "response.model_output": ANSWER, "input_tokens": 310}},
    "langchain4j": {
        "chat": {
            "gen_ai.operation.name": "chat", "gen_ai.system": "openai", **MODEL, **USAGE,
            "gen_ai.prompt": json.dumps(CHAT), "gen_ai.completion": json.dumps([CHOICE["message"]]),
        },
    },
    "plain": {"by hand": {"input": ASKED, "output": ANSWER, "session.id": "s1"}},
}  # fmt: skip
_EVENTS: Final = {("otel_genai_events", "openai"): _events(), ("semantic_kernel", "chat"): [
    EventData(event.name, {"body": json.dumps({**event.attributes}), "event.name": event.name}, event.time_ns) for event in _events()
]}  # fmt: skip

_SCOPES: Final = {"semantic_kernel": "semantic_kernel.utils.telemetry", "agent_framework": "agent_framework"}


def spans() -> dict[tuple[str, str], SpanData]:
    """Every span by dialect and what writes it."""
    return {
        (dialect, what): SpanData(
            0x5EED, 0xACE, None, what, 10**18, 10**18 + 10**9, attributes, _EVENTS.get((dialect, what), ()),
            {"service.name": "shop"}, _SCOPES.get(dialect, "bench"),
        )
        for dialect, written in ATTRIBUTES.items() for what, attributes in written.items()
    }  # fmt: skip
