"""What a model in Gemini's shape answers: a tool call, and then the answer. Made for the test; no recording has any."""

from __future__ import annotations

from typing import Any, Final

PATH: Final = "/v1beta/models/gemini-3-flash:generateContent"


def _answer(part: dict[str, Any], response_id: str, tokens: tuple[int, int]) -> dict[str, Any]:
    return {
        "candidates": [{"content": {"role": "model", "parts": [part]}, "finishReason": "STOP", "index": 0}],
        "usageMetadata": {
            "promptTokenCount": tokens[0],
            "candidatesTokenCount": tokens[1],
            "totalTokenCount": sum(tokens),
        },
        "modelVersion": "gemini-3-flash-001",
        "responseId": response_id,
    }


ANSWERS: Final = (
    _answer({"functionCall": {"id": "c1", "name": "plugs", "args": {"city": "Lisbon"}}}, "r1", (20, 6)),
    _answer({"text": "Type F."}, "r2", (30, 4)),
)
