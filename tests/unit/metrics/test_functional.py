"""Functional metrics by hand: decorators, results, allowed values, the function's own faults."""

import asyncio
import copy
import functools
import inspect
import math
import pickle
from collections.abc import Callable
from decimal import Decimal
from enum import Enum
from typing import Any

import numpy as np
import pytest
from pydantic import BaseModel

import spangrade as sg
from spangrade import ConfigError, MetricResult


@sg.discrete_metric(name="exact", allowed_values=["pass", "fail"])
def exact(predicted: str, expected: str) -> str:
    """Same but for case."""
    return "pass" if predicted.lower() == expected.lower() else "fail"


# --- the decorators ------------------------------------------------------------------------------------------------------


def test_the_decorators_signatures_are_those_of_the_contract() -> None:
    for decorator, allowed in (
        (sg.discrete_metric, ["pass", "fail"]),
        (sg.numeric_metric, (0.0, 1.0)),
        (sg.ranking_metric, 2),
    ):
        parameters = inspect.signature(decorator).parameters
        assert list(parameters)[:2] == ["name", "allowed_values"]
        assert parameters["name"].default is None
        assert parameters["allowed_values"].default == allowed
    assert str(inspect.signature(MetricResult)).startswith("(value: Any, reason: str | None = None)")


def test_a_decorator_is_used_bare_called_or_with_options() -> None:
    def shout(text: str) -> str:
        return "pass"

    assert sg.discrete_metric(shout).name == "shout"
    assert sg.discrete_metric()(shout).name == "shout"
    assert sg.discrete_metric("loud")(shout).name == "loud"
    assert sg.discrete_metric("loud", ["a", "b"])(shout).allowed_values == ["a", "b"]
    assert sg.discrete_metric(shout).allowed_values == ["pass", "fail"]
    assert sg.numeric_metric(shout).allowed_values == (0.0, 1.0)
    assert sg.ranking_metric(allowed_values=3)(shout).allowed_values == 3
    assert sg.discrete_metric(allowed_values=None)(shout).allowed_values == ["pass", "fail"]
    assert sg.numeric_metric(name="n")(functools.partial(shout, "x")).name == "n"


def test_the_default_categories_are_not_shared_between_metrics() -> None:
    first, second = sg.discrete_metric(lambda: "pass"), sg.discrete_metric(lambda: "maybe")
    first.allowed_values.append("maybe")
    assert second.score().value is None
    assert sg.discrete_metric(lambda: "pass").allowed_values == ["pass", "fail"]


def test_calling_the_metric_calls_the_function_sync_or_async() -> None:
    @sg.numeric_metric
    async def half(x: float) -> float:
        return x / 2

    assert exact("a", "A") == "pass"
    coroutine = half(1.0)
    assert inspect.iscoroutine(coroutine)
    assert asyncio.run(coroutine) == 0.5
    with pytest.raises(AttributeError):
        exact(1, 2)  # type: ignore[arg-type]


def test_a_metric_reads_like_its_function() -> None:
    assert (exact.__name__, exact.__doc__, exact.__module__) == ("exact", "Same but for case.", __name__)
    assert inspect.signature(exact) == inspect.signature(exact.fn)
    assert repr(exact) == "<discrete_metric exact(predicted, expected), allowed_values=['pass', 'fail']>"


def test_a_metric_is_pickled_by_its_place_and_copied_as_itself(monkeypatch: pytest.MonkeyPatch) -> None:
    import sys

    monkeypatch.setitem(sys.modules, __name__, inspect.getmodule(test_a_metric_reads_like_its_function))
    assert pickle.loads(pickle.dumps(exact)) is exact
    assert copy.deepcopy(exact) is exact
    assert copy.copy(exact) is exact
    with pytest.raises(pickle.PicklingError, match="top of a module"):
        pickle.dumps(sg.discrete_metric(lambda: "pass"))


@pytest.mark.parametrize(
    ("make", "sentence"),
    [
        (lambda: sg.discrete_metric(allowed_values=[]), "allowed_values is empty"),
        (lambda: sg.discrete_metric(allowed_values="pass"), "'pass' is no list"),
        (lambda: sg.discrete_metric(allowed_values=3), "3 is no list"),
        (lambda: sg.discrete_metric(allowed_values=["a", "a"]), "'a' twice"),
        (lambda: sg.discrete_metric(allowed_values=[1, True]), "True twice"),
        (lambda: sg.discrete_metric(allowed_values=["a", None]), "None, which stands for no result"),
        (lambda: sg.discrete_metric(allowed_values=["a", ["b"]]), "is no category"),
        (lambda: sg.discrete_metric(allowed_values=[math.nan]), "equals nothing"),
        (lambda: sg.numeric_metric(allowed_values=(1, 0)), "wrong way round"),
        (lambda: sg.numeric_metric(allowed_values=(0, 1, 2)), "is no range"),
        (lambda: sg.numeric_metric(allowed_values=5), "5 is no range"),
        (lambda: sg.numeric_metric(allowed_values=("0", "1")), "'0', which is no number"),
        (lambda: sg.numeric_metric(allowed_values=(False, True)), "False, which is no number"),
        (lambda: sg.numeric_metric(allowed_values=(0, math.nan)), "nan, which is no number"),
        (lambda: sg.numeric_metric(allowed_values=range(0)), "is empty"),
        (lambda: sg.numeric_metric((0, 10)), r"write allowed_values=\(0, 10\)"),
        (lambda: sg.ranking_metric(allowed_values=0), "0 is no length"),
        (lambda: sg.ranking_metric(allowed_values=-1), "-1 is no length"),
        (lambda: sg.ranking_metric(allowed_values=True), "True is no length"),
        (lambda: sg.ranking_metric(allowed_values=[1, 2]), "is no length"),
        (lambda: sg.ranking_metric(allowed_values=2.0), "2.0 is no length"),
        (lambda: sg.discrete_metric(int), "is not a function"),
        (lambda: sg.discrete_metric(name=" ")(exact.fn), "is empty"),
        (lambda: sg.numeric_metric(threshold="high"), "threshold 'high' is not a number"),  # type: ignore[call-overload]
        (lambda: sg.numeric_metric(threshold=True), "threshold True is not a number"),
        (lambda: sg.numeric_metric(timeout=0), "timeout 0 is not a number of seconds"),
        (lambda: sg.numeric_metric(target="planet"), "target 'planet' is not one of"),
        (lambda: sg.numeric_metric(requires=["answers"]), "requires 'answers'"),
        (lambda: sg.numeric_metric(config=[1]), "is not a dict of settings"),  # type: ignore[call-overload]
        (lambda: sg.numeric_metric(inputs=["a"]), "is no dict of parameter to path"),  # type: ignore[call-overload]
    ],
)
def test_what_cannot_work_is_refused_where_the_decorator_stands(make: Callable[[], Any], sentence: str) -> None:
    with pytest.raises(ConfigError, match=sentence) as refused:
        make()
    assert isinstance(refused.value, ValueError)


def test_a_generator_is_refused_with_what_would_be_right() -> None:
    with pytest.raises(ConfigError, match="return one value"):

        @sg.discrete_metric
        def drip(text: str) -> Any:
            yield text


# --- results -------------------------------------------------------------------------------------------------------------


def test_a_plain_return_is_wrapped_and_a_result_kept_as_it_is() -> None:
    mine = MetricResult("fail", reason="not the same")

    @sg.discrete_metric
    def said(text: str) -> MetricResult:
        return mine

    assert said.score(text="x") is mine
    assert exact.score(predicted="a", expected="b") == MetricResult("fail")
    assert exact.score(predicted="a", expected="b").reason is None


def test_a_returned_result_outside_the_allowed_values_loses_its_value_and_keeps_its_reason() -> None:
    @sg.discrete_metric
    def said(text: str) -> MetricResult:
        return MetricResult("perhaps", "the judge was unsure")

    found = said.score(text="x")
    assert found.value is None
    assert "'perhaps'" in str(found.reason)
    assert "expected one of ['pass', 'fail']" in str(found.reason)
    assert "the judge was unsure" in str(found.reason)


def test_a_returned_result_without_a_value_is_kept_for_its_reason() -> None:
    nothing = MetricResult(None, "the text is empty")
    assert sg.numeric_metric(lambda: nothing).score() is nothing
    unexplained = sg.numeric_metric(lambda: MetricResult(None)).score()
    assert unexplained.value is None
    assert "returned None" in str(unexplained.reason)


def test_a_result_stands_for_its_value_and_cannot_be_changed() -> None:
    half, one = MetricResult(0.5, "so so"), MetricResult(1.0)
    assert half == 0.5
    assert half == MetricResult(0.5, "another reason")
    assert half != one
    assert half < one
    assert one >= 1
    assert float(half) == 0.5
    assert int(one) == 1
    assert sum([half, one]) / 2 == 0.75
    assert (half + one, 2 - half, half * 4, 1 / half, half / one, one - half, 2 * half) == (
        1.5,
        1.5,
        2.0,
        2.0,
        0.5,
        0.5,
        1.0,
    )
    assert [list(MetricResult([3, 1])), MetricResult([3, 1])[0], len(MetricResult([3, 1]))] == [[3, 1], 3, 2]
    assert not MetricResult(None, "no result")
    assert hash(half) == hash(0.5)
    assert repr(half) == "MetricResult(value=0.5, reason='so so')"
    assert half.to_dict() == {"result": 0.5, "reason": "so so"}
    assert pickle.loads(pickle.dumps(half)).reason == "so so"
    with pytest.raises(AttributeError):
        half.value = 1.0  # type: ignore[misc]


def test_a_result_is_a_field_of_a_pydantic_model() -> None:
    class Row(BaseModel):
        grounded: MetricResult

    row = Row(grounded=MetricResult("pass", "why"))
    assert row.grounded.value == "pass"
    assert row.model_dump_json() == '{"grounded":{"value":"pass","reason":"why"}}'


# --- allowed values ------------------------------------------------------------------------------------------------------


class Colour(Enum):
    RED = "red"
    BLUE = "blue"


@pytest.mark.parametrize(
    ("allowed", "returned", "value"),
    [
        (["good", "bad"], "good", "good"),
        (["good", "bad"], "Good", None),
        (["good", "bad"], None, None),
        (["good", "bad"], ["good"], None),
        (["good", "bad"], np.str_("good"), "good"),
        (("good", "bad"), "bad", "bad"),
        ({"good", "bad"}, "bad", "bad"),
        ([1, 2, 3], 2, 2),
        ([1, 2, 3], "2", None),
        ([1, 2, 3], True, 1),
        ([1, 2, 3], np.int64(3), 3),
        ([1, 2, 3], 4, None),
        (["1", "2"], 1, None),
        ([True, False], False, False),
        ([Colour.RED, Colour.BLUE], Colour.RED, Colour.RED),
        ([Colour.RED, Colour.BLUE], "red", None),
        (["only"], "only", "only"),
        (["good", "bad"], np.array([1, 2]), None),
    ],
)
def test_a_category_is_one_of_the_set(allowed: Any, returned: Any, value: Any) -> None:
    found = sg.discrete_metric(allowed_values=allowed)(lambda: returned).score()
    assert found.value == value
    if value is None:
        assert found.value is None
        assert "expected one of" in str(found.reason)
    else:
        assert type(found.value) is type(value)
        assert found.reason is None


@pytest.mark.parametrize(
    ("allowed", "returned", "ok"),
    [
        ((0, 1), 0, True),
        ((0, 1), 1.0, True),
        ((0, 1), 1.0000001, False),
        ((0, 1), -0.0, True),
        ((0, 1), True, True),
        ((0, 1), "0.5", False),
        ((0, 1), None, False),
        ((0, 1), math.nan, False),
        ((0, 1), math.inf, False),
        ((0, math.inf), 10**6, True),
        ((0, math.inf), math.inf, False),
        ((-math.inf, math.inf), math.nan, False),
        ((0, 1), np.float32(0.5), True),
        ((0, 1), np.float64("nan"), False),
        ((0, 1), np.array([0.5, 0.6]), False),
        ((0, 1), Decimal("0.25"), True),
        ((0, 1), Decimal("NaN"), False),
        ((0, 1), 1j, False),
        ((0, 1), [0.5], False),
        ([0, 10], 10, True),
        ((5, 5), 5, True),
        ((0, 1), 10**400, False),
        (range(0, 11), 10, True),
        (range(0, 11), 11, False),
        (range(0, 11), 5.0, True),
        (range(0, 11), 5.5, False),
        (range(0, 11, 5), 4, False),
    ],
)
def test_a_number_is_finite_and_in_the_range(allowed: Any, returned: Any, ok: bool) -> None:
    found = sg.numeric_metric(allowed_values=allowed)(lambda: returned).score()
    if ok:
        assert found.value is returned
    else:
        assert found.value is None
        assert "expected value in range" in str(found.reason)


@pytest.mark.parametrize(
    ("returned", "said"),
    [
        ([0, 1], "expected 3 items, not 2"),
        ([0, 1, 2, 3], "expected 3 items, not 4"),
        ((0, 1, 2), r"return list\(...\)"),
        ("abc", r"return list\(...\)"),
        (None, "returned None"),
        (3, "returned 3"),
    ],
)
def test_a_ranking_is_a_list_of_exactly_that_length(returned: Any, said: str) -> None:
    metric = sg.ranking_metric(allowed_values=3)(lambda: returned)
    with pytest.raises(AssertionError, match=said):
        raise AssertionError(metric.score().reason)
    assert metric.score().value is None
    assert sg.ranking_metric(allowed_values=3)(lambda: ["b", "a", "c"]).score() == ["b", "a", "c"]


def test_a_reason_names_value_and_set_and_stays_short() -> None:
    class Rude:
        def __repr__(self) -> str:
            raise RuntimeError("no")

    long = sg.discrete_metric(lambda: "x" * 1_000_000).score()
    assert len(str(long.reason)) < 1_000
    assert "Rude" in str(sg.discrete_metric(lambda: Rude()).score().reason)  # noqa: PLW0108 - a class is no function
    assert sg.numeric_metric(lambda: 10**5_000).score().value is None
    many = sg.discrete_metric(allowed_values=[f"category {i}" for i in range(1_000)])(lambda: "?").score()
    assert "1000 in all" in str(many.reason)


# --- the function's own faults -------------------------------------------------------------------------------------------


def test_an_exception_of_the_function_is_a_result_with_its_type_and_message() -> None:
    @sg.discrete_metric(name="broken")
    def broken(text: str) -> str:
        raise ValueError("no such luck")

    @sg.discrete_metric(name="broken")
    async def later(text: str) -> str:
        raise ValueError("no such luck")

    for found in (broken.score(text="x"), later.score(text="x"), asyncio.run(later.ascore(text="x"))):
        assert found.value is None
        assert found.reason == "Error executing metric broken: ValueError: no such luck"
    with pytest.raises(ValueError, match="no such luck"):
        broken("x")


@pytest.mark.parametrize(
    "fault", [StopIteration("x"), asyncio.CancelledError("x"), ExceptionGroup("x", [ValueError()])]
)
def test_odd_exceptions_of_a_coroutine_function_are_results_too(fault: BaseException) -> None:
    @sg.discrete_metric
    async def odd() -> str:
        raise fault

    found = odd.score()
    assert found.value is None
    assert str(found.reason).startswith("Error executing metric odd: ")
    assert asyncio.run(odd.abatch_score([{}] * 3)) == [None] * 3


def test_an_exception_that_cannot_say_what_it_is_still_names_its_type() -> None:
    class Mute(Exception):
        def __str__(self) -> str:
            raise RuntimeError("no")

    def raises() -> str:
        raise Mute

    assert sg.discrete_metric(raises).score().reason == "Error executing metric raises: Mute"


@pytest.mark.parametrize("interruption", [KeyboardInterrupt, SystemExit, GeneratorExit])
def test_an_interruption_is_no_result(interruption: type[BaseException]) -> None:
    @sg.discrete_metric
    def stopped() -> str:
        raise interruption

    @sg.discrete_metric
    async def stopped_later() -> str:
        raise interruption

    for metric in (stopped, stopped_later):
        for run in (metric.score, lambda m=metric: m.batch_score([{}] * 4)):
            with pytest.raises(interruption):
                run()
    assert sg.numeric_metric(_half).score() == 0.5  # the loop that one was on still serves


async def _half() -> float:
    return 0.5
