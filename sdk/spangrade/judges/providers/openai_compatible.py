"""Chat completions as OpenAI, Azure, vLLM, Ollama, LiteLLM, llama.cpp, Groq, Together and OpenRouter take them.

Source: https://platform.openai.com/docs/api-reference/chat/create, and the servers' own replies.
"""

from collections.abc import Mapping
from typing import Any, Final

import httpx

from spangrade.errors import JudgeError
from spangrade.judges.providers.base import JudgeReply, JudgeRequest
from spangrade.judges.providers.http_client import HttpJudgeClient
from spangrade.judges.providers.learned import TOOL, Learned
from spangrade.judges.providers.said import count, is_formed, json_or_none, mapping, text_of, word

_PATH: Final = "/chat/completions"
_AZURE: Final = (".openai.azure.com", ".services.ai.azure.com", ".cognitiveservices.azure.com")


class OpenAICompatible(HttpJudgeClient):
    """A server that speaks OpenAI's chat completions; see `HttpJudgeClient` for the arguments.

    ``base_url`` usually ends in ``/v1``. An Azure resource's address gets ``/openai/v1`` where it names no path, and its key
    goes as ``api-key``; one that names a deployment needs its ``?api-version=...``.
    """

    usual = Learned(("json_schema", "tool", "json_object", "text"))
    _is_azure = False

    def address(self, base: httpx.URL) -> httpx.URL:
        """The base URL, with ``/chat/completions`` where it does not end so."""
        self._is_azure = base.host.endswith(_AZURE)
        path = base.path.rstrip("/") or ("/openai/v1" if self._is_azure else "")
        return base.copy_with(path=path if path.endswith(_PATH) else path + _PATH)

    def authorization(self, key: str | None) -> Mapping[str, str]:
        """A bearer token, or Azure's ``api-key``."""
        if key is None:
            return {}
        return {"api-key": key} if self._is_azure else {"Authorization": f"Bearer {key}"}

    def body(self, request: JudgeRequest, how: Learned) -> dict[str, Any]:
        """A chat completion's request."""
        body: dict[str, Any] = {
            "model": request.model,
            "messages": [{"role": m.role, "content": m.content} for m in request.messages],
            how.tokens_name: request.max_tokens,
        }
        if how.temperature and request.temperature is not None:
            body["temperature"] = request.temperature
        if request.schema is None:
            return body
        if how.form == "json_schema":
            schema = {"name": TOOL, "strict": True, "schema": dict(request.schema)}
            body["response_format"] = {"type": "json_schema", "json_schema": schema}
        elif how.form == "tool":
            function = {"name": TOOL, "description": "Gives the verdict.", "parameters": dict(request.schema)}
            body["tools"] = [{"type": "function", "function": function}]
            body["tool_choice"] = {"type": "function", "function": {"name": TOOL}}
        elif how.form == "json_object":
            body["response_format"] = {"type": "json_object"}
        return body

    def reply(self, data: bytes, how: Learned) -> tuple[JudgeReply, bool]:
        """The parts of a chat completion that a verdict needs."""
        body = json_or_none(data)
        if not isinstance(body, dict):
            raise JudgeError("unparseable", "the endpoint answered 200 with something that is no chat completion")
        choices = body.get("choices")
        if not isinstance(choices, list) or not choices:
            if body.get("error"):  # some gateways answer 200 for an upstream's error
                raise JudgeError("http_status", "the endpoint answered 200 with an error instead of a completion")
            raise JudgeError("empty", "the endpoint answered 200 without choices")
        if len(choices) > 1:
            raise JudgeError("several_verdicts", f"the endpoint answered with {len(choices)} choices")
        choice = mapping(choices[0])
        message, usage = mapping(choice.get("message")), mapping(body.get("usage"))
        called = _called(message) if how.form == "tool" else None
        reply = JudgeReply(
            text=text_of(message.get("content")) if called is None else called,
            model=word(body.get("model")),
            finish_reason=word(choice.get("finish_reason")),
            refusal=word(message.get("refusal")),
            input_tokens=count(usage.get("prompt_tokens")),
            output_tokens=count(usage.get("completion_tokens")),
        )
        return reply, called is not None or (how.form != "tool" and is_formed(reply)) or reply.refusal is not None


def _called(message: Mapping[str, Any]) -> str | None:
    """The arguments of the one call of the verdict's tool; None where there is none.

    Raises:
        JudgeError: kind several_verdicts, for more than one.
    """
    calls = message.get("tool_calls")
    functions = [mapping(mapping(call).get("function")) for call in calls] if isinstance(calls, list) else []
    said = [f.get("arguments") for f in functions if f.get("name") == TOOL and isinstance(f.get("arguments"), str)]
    if len(said) > 1:
        raise JudgeError("several_verdicts", f"the model called the verdict's tool {len(said)} times")
    return said[0] if said else None
