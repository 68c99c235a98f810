"""One grading: the call, a longer one where the reply was cut off, and what is known of how the grade came about."""

import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from spangrade import semconv
from spangrade._suppress import evaluator_scope
from spangrade.errors import JudgeError
from spangrade.judges.prompt import Prompt
from spangrade.judges.providers import JudgeClient, JudgeReply, JudgeRequest, Message
from spangrade.judges.scale import Scale
from spangrade.judges.verdict import read_verdict
from spangrade.model.sample import FrozenDict

MAX_TOKENS: Final = 1_024
MORE_TOKENS: Final = 4_096  # asked for once, after a reply that reached `MAX_TOKENS`
SHARE: Final = 0.95  # of the judge's limit: the call ends a little before the pipeline's own limit, and can say why


@dataclass(frozen=True, slots=True)
class Grading:
    """``score`` is 0 to 1; ``details`` are wire attributes: model as answered, prompt hash, tokens of all calls."""

    score: float
    reasoning: str
    details: Mapping[str, Any]


def grade(
    prompt: Prompt, client: JudgeClient, *, model: str, scale: Scale, temperature: float | None, timeout: float
) -> Grading:
    """Ask ``client``, and read the verdict. Nothing that happens inside is traced or scored (promise 8).

    A reply that reached the token limit is asked for once more with room for `MORE_TOKENS`; when that does not come in
    time, the error is the first one: ``truncated``.

    Raises:
        JudgeError: the client's, or `read_verdict`'s.
    """
    deadline = time.monotonic() + timeout * SHARE
    messages = (Message("system", prompt.system), Message("user", prompt.user))
    replies: list[JudgeReply] = []

    def ask(room: int) -> Grading:
        left = max(deadline - time.monotonic(), 0.0)
        with evaluator_scope():
            reply = client.complete(JudgeRequest(model, messages, scale.schema, temperature, room, left))
        replies.append(reply)
        reasoning, verdict = read_verdict(
            reply.text, reply.finish_reason, scale, refusal=reply.refusal, graded=prompt.user
        )
        return Grading(scale.value(verdict), reasoning, _details(replies, model, prompt))

    try:
        return ask(MAX_TOKENS)
    except JudgeError as first:
        if first.kind != "truncated":
            raise
        try:
            return ask(MORE_TOKENS)
        except JudgeError as second:
            raise (first if second.kind == "timeout" else second) from None


def _details(replies: list[JudgeReply], model: str, prompt: Prompt) -> Mapping[str, Any]:
    """Tokens are the sum over all replies, and absent when one of them did not say."""
    details: dict[str, Any] = {semconv.JUDGE_MODEL: replies[-1].model or model, semconv.JUDGE_PROMPT_HASH: prompt.hash}
    for name, counts in (
        (semconv.JUDGE_INPUT_TOKENS, [reply.input_tokens for reply in replies]),
        (semconv.JUDGE_OUTPUT_TOKENS, [reply.output_tokens for reply in replies]),
    ):
        known = [count for count in counts if count is not None]
        if len(known) == len(counts):
            details[name] = sum(known)
    return FrozenDict(details)
