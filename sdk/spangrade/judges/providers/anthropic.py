"""Anthropic's messages, at Anthropic, behind a gateway, or as llama.cpp's server takes them.

Source: https://docs.anthropic.com/en/api/messages, and the recorded exchanges in ../shared/data/cassettes/anthropic.
"""

import json
from collections.abc import Mapping
from typing import Any, Final

import httpx

from spangrade.errors import JudgeError
from spangrade.judges.providers.base import JudgeReply, JudgeRequest
from spangrade.judges.providers.http_client import HttpJudgeClient
from spangrade.judges.providers.learned import TOOL, Learned
from spangrade.judges.providers.said import count, is_formed, json_or_none, mapping, text_of, word

_PATH: Final = "/messages"
_VERSION: Final = "2023-06-01"
#: Anthropic's words for why a reply ended, where the verdict's reader knows another.
_STOPPED: Final[Mapping[str, str]] = {"max_tokens": "length", "model_context_window_exceeded": "length"}
_INPUT: Final = ("input_tokens", "cache_creation_input_tokens", "cache_read_input_tokens")


class AnthropicMessages(HttpJudgeClient):
    """A server that speaks Anthropic's messages; see `HttpJudgeClient` for the arguments.

    A verdict is asked for by a schema (``output_config.format``); of models that are older than that, as a tool that they
    have to call, which some newer ones refuse.
    """

    usual = Learned(("json_schema", "tool", "text"), renames=False)

    def address(self, base: httpx.URL) -> httpx.URL:
        """``https://api.anthropic.com``, with or without ``/v1``, gives ``.../v1/messages``."""
        path = base.path.rstrip("/")
        if not path.endswith(_PATH):
            path += _PATH if path.endswith("/v1") else "/v1" + _PATH
        return base.copy_with(path=path)

    def authorization(self, key: str | None) -> Mapping[str, str]:
        """The key as ``x-api-key``, and the version of the interface."""
        version = {"anthropic-version": _VERSION}
        return version if key is None else {**version, "x-api-key": key}

    def body(self, request: JudgeRequest, how: Learned) -> dict[str, Any]:
        """A message's request."""
        body: dict[str, Any] = {
            "model": request.model,
            "system": "\n\n".join(m.content for m in request.messages if m.role == "system"),
            "messages": [{"role": m.role, "content": m.content} for m in request.messages if m.role != "system"],
            "max_tokens": request.max_tokens,
        }
        if how.temperature and request.temperature is not None:
            body["temperature"] = request.temperature
        if request.schema is None:
            return body
        if how.form == "tool":
            body["tools"] = [{"name": TOOL, "description": "Gives the verdict.", "input_schema": dict(request.schema)}]
            body["tool_choice"] = {"type": "tool", "name": TOOL}
        elif how.form == "json_schema":
            body["output_config"] = {"format": {"type": "json_schema", "schema": dict(request.schema)}}
        return body

    def reply(self, data: bytes, how: Learned) -> tuple[JudgeReply, bool]:
        """The parts of a message that a verdict needs; thinking is no part of it."""
        body = json_or_none(data)
        content = mapping(body).get("content")
        if not isinstance(content, list):
            if mapping(body).get("error"):
                raise JudgeError("http_status", "the endpoint answered 200 with an error instead of a message")
            raise JudgeError("unparseable", "the endpoint answered 200 with something that is no message")
        called = _called(content) if how.form == "tool" else None
        text = text_of(content) if called is None else called
        stopped, usage = word(body.get("stop_reason")), mapping(body.get("usage"))
        refused = stopped == "refusal"
        counts = [count(usage.get(name, 0)) for name in _INPUT]
        known = [one for one in counts if one is not None]
        reply = JudgeReply(
            text=text,
            model=word(body.get("model")),
            finish_reason=_STOPPED.get(stopped or "", stopped),
            refusal=(word(text) or "the model refused to answer") if refused else None,
            input_tokens=sum(known) if "input_tokens" in usage and len(known) == len(counts) else None,
            output_tokens=count(usage.get("output_tokens")),
        )
        return reply, called is not None or (how.form != "tool" and is_formed(reply)) or refused


def _called(content: list[Any]) -> str | None:
    """The input of the one call of the verdict's tool, as JSON; None where there is none.

    Raises:
        JudgeError: kind several_verdicts, for more than one.
    """
    blocks = [mapping(block) for block in content]
    said = [b.get("input") for b in blocks if b.get("type") == "tool_use" and b.get("name") == TOOL]
    if len(said) > 1:
        raise JudgeError("several_verdicts", f"the model called the verdict's tool {len(said)} times")
    return json.dumps(said[0], ensure_ascii=False) if said else None
