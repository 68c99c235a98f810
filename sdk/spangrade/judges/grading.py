"""One grading: the call, one more where the reply cannot be used, and what is known of how the grade came about."""

import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from spangrade import semconv
from spangrade._suppress import evaluator_scope
from spangrade.errors import JudgeError
from spangrade.judges.prices import Price, cost_of
from spangrade.judges.prompt import REPAIR, Prompt
from spangrade.judges.providers import JudgeClient, JudgeReply, JudgeRequest, Message
from spangrade.judges.scale import Scale
from spangrade.judges.verdict import read_verdict
from spangrade.model.sample import FrozenDict

MAX_TOKENS: Final = 1_024
MORE_TOKENS: Final = 4_096  # asked for once, after a reply that reached `MAX_TOKENS`
MENDABLE: Final = frozenset(
    {"unparseable", "empty", "several_verdicts", "out_of_range"}
)  # a second reply may be better
AROUND: Final = 512  # tokens that a provider puts around our texts, at most
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
    in_vain = False  # a call was sent and gave no reply: it may have been billed, so that the cost is not known

    def ask(room: int, *more: Message) -> Grading:
        left = max(deadline - time.monotonic(), 0.0)
        with evaluator_scope():
            reply = client.complete(JudgeRequest(model, (*messages, *more), scale.schema, temperature, room, left))
        replies.append(reply)
        reasoning, verdict = read_verdict(
            reply.text, reply.finish_reason, scale, refusal=reply.refusal, graded=prompt.user
        )
        return Grading(scale.value(verdict), reasoning, _details(replies, model, prompt, repairs, price))

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
                in_vain = len(replies) == 1 and cost_of(second) is None
                raise (second if truncated and second.kind != "timeout" else first) from None
    except JudgeError as fault:
        if replies:
            fault.details = _details(replies, model, prompt, repairs, None if in_vain else price)
        raise


def most(prompt: Prompt, scale: Scale, price: Price) -> float | None:
    """US dollars that `grade` can cost at most; None when the price is unknown. A text has no more tokens than bytes, a reply
    no more than it is given room for, and there are two calls at most."""
    size = len(f"{prompt.system}{prompt.user}{scale.schema}{REPAIR}{scale.form}".encode()) + AROUND
    costs = [price.cost(size, room) for room in (MAX_TOKENS, MORE_TOKENS)]
    return None if None in costs else sum(cost for cost in costs if cost is not None)


def _details(
    replies: list[JudgeReply], model: str, prompt: Prompt, repairs: int, price: Price | None
) -> Mapping[str, Any]:
    """Tokens and cost are the sum over all replies, and absent when one of them did not say."""
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
    if price is not None:
        costs = [
            price.cost(reply.input_tokens, reply.output_tokens)
            for reply in replies
            if reply.input_tokens is not None and reply.output_tokens is not None
        ]
        if len(costs) == len(replies) and None not in costs:
            details[semconv.JUDGE_COST] = sum(cost for cost in costs if cost is not None)
    return FrozenDict(details)
