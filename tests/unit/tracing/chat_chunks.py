"""What clients stream of one answer, as dicts: each way the text is `It is late.`"""

from typing import Any

WORDS = ("It ", "is ", "late.")


def openai_chunk(index: int = 0, **delta: Any) -> dict[str, Any]:
    choice = {"index": index, "delta": delta, "finish_reason": None}
    return {"id": "c1", "object": "chat.completion.chunk", "created": 1, "model": "m", "choices": [choice]}


def anthropic_delta(kind: str, index: int = 0, **delta: Any) -> dict[str, Any]:
    return {"type": "content_block_delta", "index": index, "delta": {"type": kind, **delta}}


OPENAI = [
    openai_chunk(role="assistant", content=""),
    *(openai_chunk(content=word) for word in WORDS),
    {**openai_chunk(), "choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]},
    {**openai_chunk(), "choices": [], "usage": {"total_tokens": 7, "prompt_tokens": 3, "completion_tokens": 4}},
]
RESPONSES = [
    {"type": "response.created", "response": {"id": "r1", "output": []}},
    {"type": "response.output_item.added", "output_index": 0, "item": {"type": "message", "content": []}},
    {"type": "response.content_part.added", "part": {"type": "output_text", "text": ""}},
    *({"type": "response.output_text.delta", "output_index": 0, "delta": word} for word in WORDS),
    {"type": "response.output_text.done", "text": "It is late."},
    {"type": "response.completed", "response": {"id": "r1", "output": [{"type": "message"}]}},
]
ANTHROPIC = [
    {"type": "message_start", "message": {"id": "m1", "content": []}},
    {"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}},
    {"type": "ping"},
    *(anthropic_delta("text_delta", text=word) for word in WORDS),
    {"type": "content_block_stop", "index": 0},
    {"type": "message_delta", "delta": {"stop_reason": "end_turn"}, "usage": {"output_tokens": 3}},
    {"type": "message_stop"},
]
#: Anthropic's helper gives each text twice: as it came, and as an event of its own.
ANTHROPIC_HELPER = [
    event
    for word in WORDS
    for event in (anthropic_delta("text_delta", text=word), {"type": "text", "text": word, "snapshot": "It"})
]
LANGCHAIN = [{"type": "AIMessageChunk", "content": word, "tool_call_chunks": []} for word in (*WORDS, "")]
LANGCHAIN_PARTS = [{"type": "AIMessageChunk", "content": [{"type": "text", "text": word}]} for word in WORDS]
COMPLETIONS = [{"object": "text_completion", "choices": [{"index": 0, "text": word}]} for word in WORDS]
OLLAMA = [{"model": "m", "message": {"role": "assistant", "content": word}, "done": False} for word in WORDS]
GEMINI = [{"candidates": [{"content": {"role": "model", "parts": [{"text": word}]}}]} for word in WORDS]
BEDROCK = [
    {"messageStart": {"role": "assistant"}},
    *({"contentBlockDelta": {"delta": {"text": word}, "contentBlockIndex": 0}} for word in WORDS),
    {"contentBlockStop": {"contentBlockIndex": 0}},
    {"messageStop": {"stopReason": "end_turn"}},
    {"metadata": {"usage": {"totalTokens": 7}}},
]
MISTRAL = [{"data": openai_chunk(content=word)} for word in WORDS]
OPENAI_HELPER = [
    event
    for word in WORDS
    for event in (
        {"type": "chunk", "chunk": openai_chunk(content=word), "snapshot": {}},
        {"type": "content.delta", "delta": word, "snapshot": "It"},
    )
]
AGENTS = [
    {"type": "agent_updated_stream_event", "new_agent": {"name": "a"}},
    *({"type": "raw_response_event", "data": event} for event in RESPONSES),
    {"type": "run_item_stream_event", "name": "message_output_created", "item": {}},
]
TEXTS: dict[str, list[Any]] = {
    "OpenAI chat": OPENAI,
    "OpenAI Responses": RESPONSES,
    "OpenAI chat helper": OPENAI_HELPER,
    "OpenAI Agents": AGENTS,
    "OpenAI completions": COMPLETIONS,
    "Anthropic": ANTHROPIC,
    "Anthropic helper": ANTHROPIC_HELPER,
    "LangChain": LANGCHAIN,
    "LangChain parts": LANGCHAIN_PARTS,
    "Ollama": OLLAMA,
    "Gemini": GEMINI,
    "Bedrock": BEDROCK,
    "Mistral": MISTRAL,
}
