"""What an endpoint and model do not take, learned from the 400 that says so and remembered for later calls."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Final, Literal

#: How a reply in a given shape is asked for, the strongest first: by a schema that the decoder keeps to; by a tool that the
#: model has to call, whose arguments are the reply; as any JSON; not at all.
Form = Literal["json_schema", "tool", "json_object", "text"]
_WORDS: Final[Mapping[Form, tuple[str, ...]]] = {
    "json_schema": ("response_format", "json_schema", "structured output", "grammar", "output_config", "output_format"),
    "tool": ("tool", "function"),
    "json_object": ("response_format", "json_object", "json mode"),
    "text": (),
}
_ASKED_BY: Final[Mapping[Form, tuple[str, ...]]] = {
    "json_schema": ("response_format", "output_config"),
    "tool": ("tools",),
    "json_object": ("response_format",),
    "text": (),
}
TOKENS_OLD: Final = "max_tokens"
TOKENS_NEW: Final = "max_completion_tokens"
TOOL: Final = "verdict"  # the tool's name, and the schema's


@dataclass(frozen=True, slots=True)
class Learned:
    """How one endpoint wants one model to be asked.

    Attributes:
        forms: those that it has not refused, the strongest first; ``text`` is the last.
        tokens_name: its name for the reply's limit.
        temperature: whether it takes one.
        renames: whether the limit may have another name here.
    """

    forms: tuple[Form, ...]
    tokens_name: str = TOKENS_OLD
    temperature: bool = True
    renames: bool = True

    @property
    def form(self) -> Form:
        """The form to ask in."""
        return self.forms[0]

    def weaker(self) -> "Learned":
        """Without the form that was asked in."""
        return replace(self, forms=self.forms[1:]) if len(self.forms) > 1 else self

    def after_refusal(self, sent: Mapping[str, Any], param: str, message: str) -> "Learned | None":
        """What is left when a 400 complains of something that was sent and can change; None when it does not.

        Each parameter changes once, and each form is left once, so this ends.

        Args:
            sent: the refused body.
            param: the parameter that the error names; empty when it names none, and then the message is read.
            message: the error's message.
        """
        words = (param or message).lower()
        if self.renames and TOKENS_OLD in sent and TOKENS_OLD in words:
            return replace(self, tokens_name=TOKENS_NEW, renames=False)
        if "temperature" in sent and "temperature" in words:
            return replace(self, temperature=False)
        asked = any(key in sent for key in _ASKED_BY[self.form])
        if asked and any(word in words for word in _WORDS[self.form]):
            return self.weaker()
        return None
