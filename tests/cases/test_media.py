"""C042: images and files in messages that somebody else's instrumentation made, in every dialect that is read."""

import base64
import json
import threading
from typing import Any

import pytest
from opentelemetry import trace as trace_api
from tests.cases.conftest import Product

import spangrade as sg
from spangrade import semconv as s
from spangrade.testing import ScriptedJudgeClient

PNG = base64.b64encode(b"\x89PNG\r\n\x1a\n" + bytes(range(256)) * 15_000).decode()  # 5 MB as text
URL = f"data:image/png;base64,{PNG}"
QUESTION = "What is in this picture?"


def genai(part: Any) -> dict[str, Any]:
    said = [{"role": "user", "parts": [{"type": "text", "content": QUESTION}, part]}]
    return {s.OPERATION_NAME: "chat", s.INPUT_MESSAGES: json.dumps(said)}


def openinference(*parts: dict[str, Any]) -> dict[str, Any]:
    prefix = "llm.input_messages.0.message"
    found: dict[str, Any] = {f"{prefix}.role": "user"}
    for n, part in enumerate(({"type": "text", "text": QUESTION}, *parts)):
        found |= {f"{prefix}.contents.{n}.message_content.{key}": value for key, value in part.items()}
    return found


def raw_request(content: Any) -> dict[str, Any]:
    return {
        s.OI_INPUT: json.dumps({"model": "m", "messages": [{"role": "user", "content": content}]}),
        s.OI_INPUT_MIME: s.MIME_JSON,
    }


DIALECTS = {
    "blob": genai({"type": "blob", "modality": "image", "mime_type": "image/png", "content": PNG}),
    "uri": genai({"type": "uri", "modality": "image", "uri": URL}),
    "generic part": genai({"type": "screenshot", "content": URL}),
    "inside of the words": genai({"type": "text", "content": f"see {URL}"}),
    "tool result": genai({"type": "tool_call_response", "id": "c1", "response": {"image": PNG}}),
    "openinference contents": openinference({"type": "image", "image.image.url": URL}),
    "openai request": raw_request(
        [{"type": "text", "text": QUESTION}, {"type": "image_url", "image_url": {"url": URL}}]
    ),
    "anthropic request": raw_request(
        [{"type": "text", "text": QUESTION}, {"type": "image", "source": {"type": "base64", "data": PNG}}]
    ),
    "markdown request": raw_request(f"{QUESTION} ![cat]({URL})"),
    "openai request, written by PHP": {
        s.OI_INPUT: raw_request([{"type": "text", "text": f"{QUESTION} {URL}"}])[s.OI_INPUT].replace("/", "\\/"),
        s.OI_INPUT_MIME: s.MIME_JSON,
    },
    "the same with half a character beside": {
        s.OI_INPUT: raw_request([{"type": "text", "text": f"{QUESTION} {URL} \ud83d"}])[s.OI_INPUT].replace("/", "\\/"),
        s.OI_INPUT_MIME: s.MIME_JSON,
    },
    "structured values": {
        s.OPERATION_NAME: "chat",
        s.INPUT_MESSAGES: ({"role": "user", "parts": ({"type": "text", "content": f"{QUESTION} {URL}"},)},),
    },
    "plain text": {s.OI_INPUT: f"{QUESTION} {URL}"},
    "plain object": {s.OI_INPUT: json.dumps({"question": QUESTION, "image": PNG}), s.OI_INPUT_MIME: s.MIME_JSON},
}


def takes_structures() -> bool:
    span = trace_api.get_tracer("try").start_span("try")
    span.set_attribute("map", ({"a": 1},))  # type: ignore[arg-type]
    return bool((getattr(span, "attributes", None) or {}).get("map"))


@pytest.mark.parametrize("dialect", DIALECTS)
def test_c042_media_in_others_messages_are_named_before_a_metric_or_judge_sees_them(
    dialect: str, product: Product
) -> None:
    """And the span leaves as its maker made it."""
    client = ScriptedJudgeClient('{"reasoning": "it is", "verdict": "pass"}')
    judge = sg.LlmJudge(name="seen", criteria="it is seen", scale="binary", model="m").with_client(client)
    product.configure(judges=[sg.live(judge, rate=1.0)])
    if dialect == "structured values" and not takes_structures():
        pytest.skip("this SDK's attributes take no maps")
    given = {s.OI_KIND: "LLM", **DIALECTS[dialect], s.OI_OUTPUT: "Größe: ein Kätzchen"}
    with trace_api.get_tracer("others").start_as_current_span("chat", attributes=given):
        pass
    span = product.only("chat")
    assert {key: value for key, value in span.attributes.items() if key in given} == given
    (sample,) = product.samples
    shown = json.dumps([sample.input, sample.output, sample.context])
    assert QUESTION in shown
    assert PNG[:64] not in shown
    assert len(shown) < 10_000
    assert "image" in shown
    (request,) = client.requests
    assert PNG[:64] not in f"{request}"
    assert len(f"{request}") < 20_000


def test_c042_bytes_that_are_no_text_reach_no_description(product: Product) -> None:
    """A description helper that cannot read non-ASCII bytes must not fail the model call."""

    @sg.trace(kind="llm")
    def model(messages: Any) -> Any:
        return {"role": "assistant", "content": [{"type": "image", "data": b"\xff\xfe\x00"}], "name": "Größe"}

    given = [{"role": "user", "content": [b"\xe9\xff", {"type": "image", "source": {"data": bytearray(b"\x80")}}]}]
    assert model(given)["name"] == "Größe"
    assert len(product.named("model")) == 1
    assert threading.active_count() < 50
