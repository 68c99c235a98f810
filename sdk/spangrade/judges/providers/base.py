"""The seam between a judge and whoever runs its model."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, Protocol, runtime_checkable


@dataclass(frozen=True, slots=True)
class Message:
    """One chat message. Its text stays out of ``repr``, since it is the application's."""

    role: Literal["system", "user"]
    content: str = field(repr=False)


@dataclass(frozen=True, slots=True)
class JudgeRequest:
    """One judge call.

    Attributes:
        model: the model's name, as the endpoint knows it.
        messages: the system message, then the user message.
        schema: JSON schema of the reply; the client asks for it in the strongest way that the endpoint takes.
        temperature: None leaves it to the endpoint.
        max_tokens: the reply's limit, thinking included.
        timeout: seconds for everything: connecting, waiting, retries.
        again: asked before a try is made once more that gave nothing and may have been billed; False: it is not. None: it may.
    """

    model: str
    messages: tuple[Message, ...]
    schema: Mapping[str, Any] | None = None
    temperature: float | None = None
    max_tokens: int = 1024
    timeout: float = 60.0
    again: Callable[[], bool] | None = field(default=None, repr=False, compare=False)


@dataclass(frozen=True, slots=True)
class JudgeReply:
    """What came back. Nothing of it is judged here: an empty or cut text is for the verdict's reader to refuse.

    Attributes:
        text: the reply's text, thoughts not included where the endpoint keeps them apart.
        model: the model as answered, where the endpoint says.
        finish_reason: as the endpoint gave it: ``stop``, ``length``, ``content_filter``, ...
        refusal: the model's refusal, where the endpoint gives one.
        input_tokens: None when unknown, never 0 for unknown.
        output_tokens: likewise.
        unanswered: tries before it that gave nothing and may have been billed.
    """

    text: str = field(repr=False)
    model: str | None = None
    finish_reason: str | None = None
    refusal: str | None = field(default=None, repr=False)
    input_tokens: int | None = None
    output_tokens: int | None = None
    unanswered: int = 0


@runtime_checkable
class JudgeClient(Protocol):
    """Sends one request. Called from several threads at once.

    Raises:
        JudgeError: kind http_status, timeout, connection, empty, content_filter, several_verdicts, unparseable or
            configuration, with a message that holds no key; with ``unanswered`` where money is counted.
    """

    def complete(self, request: JudgeRequest) -> JudgeReply: ...
