"""What a type checker must see of functional metrics: the function as it was written, and a metric. Never run."""

from collections.abc import Coroutine
from typing import Any, assert_type

import spangrade as sg


@sg.discrete_metric
def bare(predicted: str, expected: str = "") -> str:
    return "pass"


@sg.discrete_metric()
def called(predicted: str) -> str:
    return "pass"


@sg.discrete_metric(name="tone", allowed_values=["warm", "cold"], inputs={"text": "output"}, version=2)
def named(text: str, *, n: int = 1) -> sg.MetricResult:
    return sg.MetricResult("warm", reason="it says please")


@sg.numeric_metric("share", (0, 1), threshold=0.5, lower_is_better=True)
async def later(x: float) -> float:
    return x


@sg.numeric_metric(allowed_values=range(11))
def whole(x: int) -> int:
    return x


@sg.ranking_metric(allowed_values=3)
def order(texts: list[str]) -> list[int]:
    return sorted(range(len(texts)), key=lambda i: len(texts[i]))


assert_type(bare("a", expected="b"), str)
assert_type(called("a"), str)
assert_type(named("a", n=2), sg.MetricResult)
assert_type(whole(1), int)
assert_type(order(["a"]), list[int])
assert_type(bare.score(predicted="a"), sg.MetricResult)
assert_type(bare.batch_score([{"predicted": "a"}]), list[sg.MetricResult])
assert_type(bare.batch_score(({"predicted": p} for p in "ab"), concurrency=2, progress=True), list[sg.MetricResult])
assert_type(bare.name, str)
assert_type(float(whole.score(x=1)), float)


async def main() -> None:
    coroutine: Coroutine[Any, Any, float] = later(0.5)
    assert_type(await coroutine, float)
    assert_type(await later.ascore(x=0.5), sg.MetricResult)
    assert_type(await later.abatch_score([{"x": 0.5}]), list[sg.MetricResult])


bare(1)  # type: ignore[arg-type]
bare("a", wanted="b")  # type: ignore[call-arg]
sg.ranking_metric(allowed_values=[0, 1])  # type: ignore[call-overload]
sg.discrete_metric(threshold=1)  # type: ignore[call-overload]
sg.configure(metrics=[bare, later, order])
