"""atheris on the verdict's reader: whatever a judge replies gives a grade on the scale or a `JudgeError`.

python -m tests.fuzz.verdict -atheris_runs=200000 [a corpus folder]

`make fuzz` runs it for ten minutes. What it finds is written to ``crash-*`` in the working directory.
"""

import sys

import atheris

with atheris.instrument_imports(include=["spangrade.judges.verdict", "spangrade.judges.scale"]):
    from spangrade.errors import JudgeError
    from spangrade.judges.scale import SCALES
    from spangrade.judges.verdict import read_verdict

FINISH = ("stop", "length", "content_filter", None, "tool_calls", "end_turn")
KINDS = {"truncated", "refused", "content_filter", "unparseable", "several_verdicts", "out_of_range", "empty"}
WORDS = (
    '{"reasoning": "r", "score": 4}', '{"verdict": "pass"}', '"score": ', "```json\n", "<think>", "</think>", "Score: 4/5", "pass.",
    "[THINK]", '{"score": 1, "score": 5}', "NaN", "\\u0000", "٤", "４", "{", "}",
)  # fmt: skip


def one(data: bytes) -> None:
    """Read one reply made of words that mean something and of anything else."""
    given = atheris.FuzzedDataProvider(data)
    scale = SCALES["1-5" if given.ConsumeBool() else "binary"]
    finish, refusal = given.PickValueInList(list(FINISH)), given.PickValueInList([None, "", "no"])
    parts = []
    for _ in range(given.ConsumeIntInRange(0, 12)):
        word = given.ConsumeBool()
        parts.append(
            given.PickValueInList(list(WORDS)) if word else given.ConsumeUnicode(given.ConsumeIntInRange(0, 40))
        )
    graded = given.ConsumeUnicode(40)
    try:
        reasoning, grade = read_verdict("".join(parts), finish, scale, refusal=refusal, graded=graded)
    except JudgeError as fault:
        if fault.kind not in KINDS:
            raise AssertionError(f"a kind that nobody knows: {fault.kind}") from fault
        return
    if scale is SCALES["binary"]:
        if type(grade) is not bool:
            raise AssertionError(f"no verdict: {grade!r}")
    elif type(grade) is not int or not 1 <= grade <= 5:
        raise AssertionError(f"no grade: {grade!r}")
    if not 0 <= scale.value(grade) <= 1:
        raise AssertionError(f"no score: {grade!r}")
    reasoning.encode()


if __name__ == "__main__":
    atheris.Setup(sys.argv, one)
    atheris.Fuzz()
