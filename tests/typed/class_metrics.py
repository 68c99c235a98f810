"""What a type checker must see of class metrics. Checked by `test_types.py`, never run."""

from collections.abc import Awaitable
from typing import Any, Generic, TypeVar, assert_type

from pydantic import BaseModel

import spangrade as sg

T = TypeVar("T")


class Config(BaseModel):
    n: int = 1


@sg.register_metric
@sg.config_schema(Config)
class Words(sg.BaseMetric[int]):
    config: Config
    threshold = 3

    def evaluate(self, text: str | None) -> dict[str, int]:
        return self.result(len(text or "") + self.config.n)


@sg.register_metric(name="later")
class Later(sg.BaseMetric[list[str]]):
    result_key = "l"
    requires = ("output",)

    async def evaluate(self, sample: sg.Sample) -> dict[str, list[str]]:
        return self.result([str(sample.output)])


class Listed(sg.BaseMetric[list[T]], Generic[T]):
    def evaluate(self, text: str) -> dict[str, list[T]]:
        return self.result([])


class Numbers(Listed[float]): ...


class Mine:
    def register(self, cls: Any, name: str | None = None) -> None: ...
    def get(self, name: str) -> Any: ...
    def names(self) -> list[str]:
        return []

    def __contains__(self, name: object) -> bool:
        return False


@sg.register_metric(catalog=Mine())
class Own(Words): ...


class Safety(sg.CompositeMetric):
    def __init__(self) -> None:
        super().__init__(children=[Words()], aggregate=max)


async def main() -> None:
    words = Words({"n": 2}, result_key="w", threshold=0.5)
    assert_type(words.evaluate("a"), dict[str, int])
    assert_type(words.result(3), dict[str, int])
    assert_type(words.config.n, int)
    assert_type(Words.from_config({"n": 1}), Words)
    assert_type(await Later().evaluate(sg.Sample()), dict[str, list[str]])
    assert_type(Numbers().evaluate(""), dict[str, list[float]])
    tree = sg.CompositeMetric("q", [words, "overlap"], weights={"w": 2}, aggregate="mean", threshold=0.5)
    assert_type(tree.children, tuple[sg.BaseMetric[Any], ...])
    assert_type(tree.add(Later(), weight=0), sg.BaseMetric[Any])
    found = tree.evaluate("text")
    assert not isinstance(found, Awaitable)
    assert_type(found["w"], Any)
    assert_type("x" in sg.MetricsCatalog, bool)
    catalog: sg.Catalog = sg.MetricsCatalog()
    assert_type(catalog.get("x"), Any)


Words().result("x")  # type: ignore[arg-type]
Words(nothing=3)  # type: ignore[call-arg]
sg.config_schema(int)  # type: ignore[arg-type]
sg.CompositeMetric("q", aggregate="avg")  # type: ignore[arg-type]
