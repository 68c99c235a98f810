"""What an endpoint and model do not take, learned from the 400 that says so and remembered for later calls."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Final, Literal

from spangrade.judges.providers.base import JudgeRequest

Form = Literal["json_schema", "json_object", "text"]
_WEAKER: Final[Mapping[Form, Form]] = {"json_schema": "json_object", "json_object": "text"}
_FORM_WORDS: Final = ("response_format", "json_schema", "json_object", "structured output", "grammar")
_TOKENS_OLD: Final = "max_tokens"
_TOKENS_NEW: Final = "max_completion_tokens"


@dataclass(frozen=True, slots=True)
class Dialect:
    """How one endpoint wants one model to be asked. The default is what most take."""

    form: Form = "json_schema"
    tokens_name: str = _TOKENS_OLD
    temperature: bool = True

    def body(self, request: JudgeRequest) -> dict[str, Any]:
        """The request's JSON body."""
        body: dict[str, Any] = {
            "model": request.model,
            "messages": [{"role": m.role, "content": m.content} for m in request.messages],
            self.tokens_name: request.max_tokens,
        }
        if self.temperature and request.temperature is not None:
            body["temperature"] = request.temperature
        if request.schema is not None and self.form == "json_schema":
            schema = {"name": "verdict", "strict": True, "schema": dict(request.schema)}
            body["response_format"] = {"type": "json_schema", "json_schema": schema}
        elif request.schema is not None and self.form == "json_object":
            body["response_format"] = {"type": "json_object"}
        return body

    def after_refusal(self, sent: Mapping[str, Any], param: str, message: str) -> "Dialect | None":
        """The dialect without what a 400 complains of; None when it complains of nothing that was sent and can change.

        Each parameter is changed once (the reply's form twice, down to plain text), so this ends.

        Args:
            sent: the refused body.
            param: the parameter that the error names; empty when it names none, and then the message is read.
            message: the error's message.
        """
        words = (param or message).lower()
        if _TOKENS_OLD in sent and _TOKENS_OLD in words:
            return replace(self, tokens_name=_TOKENS_NEW)
        if "temperature" in sent and "temperature" in words:
            return replace(self, temperature=False)
        if "response_format" in sent and any(word in words for word in _FORM_WORDS):
            return replace(self, form=_WEAKER[self.form])
        return None
