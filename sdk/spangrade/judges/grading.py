"""One grading: the call, one more where the reply cannot be used, and what is known of how the grade came about."""

import time
from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any, Final

from spangrade import semconv
from spangrade._suppress import evaluator_scope
from spangrade.errors import JudgeError
from spangrade.judges.prices import Price
from spangrade.judges.prompt import REPAIR, Prompt
from spangrade.judges.providers import JudgeClient, JudgeReply, JudgeRequest, Message
from spangrade.judges.scale import Scale
from spangrade.judges.spending import MAX_TOKENS, MORE_TOKENS, Spending
from spangrade.judges.verdict import read_verdict
from spangrade.model.allowance import may_spend
from spangrade.model.sample import FrozenDict

MENDABLE: Final = frozenset(
    {"unparseable", "empty", "several_verdicts", "out_of_range"}
)  # a second reply may be better
SHARE: Final = 0.95  # of the judge's limit: the call ends a little before the pipeline's own limit, and can say why


@dataclass(frozen=True, slots=True)
class Grading:
    """``score`` is 0 to 1; ``details`` are wire attributes: model as answered, prompt hash, tokens of all calls."""

    score: float
    reasoning: str
    details: Mapping[str, Any]


def grade(
    prompt: Prompt,
    client: JudgeClient,
    *,
    model: str,
    scale: Scale,
    temperature: float | None,
    timeout: float,
    price: Price | None = None,
) -> Grading:
    """Ask ``client``, and read the verdict. Nothing that happens inside is traced or scored (promise 8).

    What cannot be used is asked for once more, and no more than that: a reply that reached the token limit with room for
    `MORE_TOKENS`; one that cannot be read with a sentence that says so, which is counted (``spangrade.judge.repairs``).
    Where the second does not come in time, or is no better, the error is the first one.

    Raises:
        JudgeError: the client's, or `read_verdict`'s. Its ``details`` are those of a `Grading`, as far as there are any.
    """
    deadline = time.monotonic() + timeout * SHARE
    messages = (Message("system", prompt.system), Message("user", prompt.user))
    replies: list[JudgeReply] = []
    repairs = 0
    spending = Spending(prompt, scale, price)

    def ask(room: int, *more: Message) -> Grading:
        left = max(deadline - time.monotonic(), 0.0)
        again = partial(may_spend, partial(spending.most, room))
        request = JudgeRequest(model, (*messages, *more), scale.schema, temperature, room, left, again)
        try:
            with evaluator_scope():
                reply = client.complete(request)
        except JudgeError as fault:
            spending.failed(fault, room)
            raise
        replies.append(reply)
        spending.replied(reply, room)
        reasoning, verdict = read_verdict(
            reply.text, reply.finish_reason, scale, refusal=reply.refusal, graded=prompt.user
        )
        return Grading(scale.value(verdict), reasoning, _details(replies, model, prompt, repairs, spending))

    try:
        try:
            return ask(MAX_TOKENS)
        except JudgeError as first:
            if not replies or first.kind not in (*MENDABLE, "truncated"):  # no reply, or one that says no
                raise
            truncated = first.kind == "truncated"
            repairs = 0 if truncated else 1
            try:
                return (
                    ask(MORE_TOKENS) if truncated else ask(MAX_TOKENS, Message("user", REPAIR.format(form=scale.form)))
                )
            except JudgeError as second:
                raise (second if truncated and second.kind != "timeout" else first) from None
    except JudgeError as fault:
        fault.details = _details(replies, model, prompt, repairs, spending) if replies else spending.details()
        raise


def _details(
    replies: list[JudgeReply], model: str, prompt: Prompt, repairs: int, spending: Spending
) -> Mapping[str, Any]:
    """Tokens are the sum over all replies, and absent when one of them did not say."""
    details: dict[str, Any] = {semconv.JUDGE_MODEL: replies[-1].model or model, semconv.JUDGE_PROMPT_HASH: prompt.hash}
    if repairs:
        details[semconv.JUDGE_REPAIRS] = repairs
    for name, counts in (
        (semconv.JUDGE_INPUT_TOKENS, [reply.input_tokens for reply in replies]),
        (semconv.JUDGE_OUTPUT_TOKENS, [reply.output_tokens for reply in replies]),
    ):
        known = [count for count in counts if count is not None]
        if len(known) == len(counts):
            details[name] = sum(known)
    details.update(spending.details())
    return FrozenDict(details)
