"""How a Sample becomes a function's arguments: by name, by alias, whole, or as (item, output)."""

# ruff: noqa: A006 - a parameter named like the field that it is filled with

import functools
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from spangrade.errors import ConfigError
from spangrade.metrics.binding import binding, is_async, name_of
from spangrade.metrics.local import metric
from spangrade.model.sample import FrozenDict, Sample

SAMPLE = Sample(input="q", output="a", documents=[{"content": "d"}], context={"c": 1}, metadata={"m": 1}, trace_id="t")


def given(fn: Callable[..., Any]) -> Any:
    """What ``fn`` returns when it is called with what it takes of the sample."""
    return binding(fn, "metric 'm'")(SAMPLE)


def positional_only(output: str, extra: int = 1, documents: Any = (), /, later: int = 2) -> Any:
    return output, extra, len(documents), later


@pytest.mark.parametrize(
    ("fn", "gets"),
    [
        (lambda output: output, "a"),
        (lambda question, answer: (question, answer), ("q", "a")),
        (lambda *, output, input: (input, output), ("q", "a")),
        (lambda contexts, *, metadata: (len(contexts), metadata["m"]), (1, 1)),
        (lambda question, input: (question, input), ("q", "q")),
        (lambda anything: anything is SAMPLE, True),
        (lambda *, anything: anything is SAMPLE, True),
        (lambda anything, extra=3: (anything is SAMPLE, extra), (True, 3)),
        (lambda anything=None: anything is SAMPLE, True),
        (lambda sample, documents: (sample is SAMPLE, len(documents)), (True, 1)),
        (lambda anything, documents=(): (anything is SAMPLE, len(documents)), (True, 1)),
        (lambda item, output: (item["input"], item["expected"], output), ("q", None, "a")),
        (lambda example, prediction: (example["metadata"]["m"], prediction), (1, "a")),
        (lambda item, output, documents=(): (type(item), output, len(documents)), (FrozenDict, "a", 1)),
        (lambda item: item is SAMPLE, True),  # one parameter is one parameter
        (lambda output, expected="default": (output, expected), ("a", "default")),  # the Sample has none
        (lambda output, context=None: (output, context["c"]), ("a", 1)),
        (lambda output, **rest: (output, rest["documents"][0]["content"], "output" in rest), ("a", "d", False)),
        (lambda **rest: sorted(rest)[:3], ["context", "documents", "expected"]),
        (functools.partial(lambda output, expected: (output, expected), expected="bound"), ("a", "bound")),
        (functools.partial(lambda limit, output: (limit, output), 3), (3, "a")),
        (functools.partial(functools.partial(lambda a, b, output: (a, b, output), b=2), 1), (1, 2, "a")),
        (positional_only, ("a", 1, 1, 2)),
    ],
)
def test_a_function_gets_what_it_asks_for(fn: Callable[..., Any], gets: Any) -> None:
    assert given(fn) == gets


def test_a_parameter_annotated_sample_is_the_sample_whatever_its_name() -> None:
    def by_type(call: Sample, output: str) -> Any:
        return call is SAMPLE, output

    def by_text(call: "Sample", output: str) -> Any:
        return call is SAMPLE, output

    assert given(by_type) == given(by_text) == (True, "a")


def test_a_default_gives_way_to_what_the_sample_has() -> None:
    fn = binding(lambda output, expected="default": expected, "metric 'm'")
    assert fn(Sample(output="a", expected="given")) == "given"
    assert fn(Sample(output="a", expected="")) == ""


def test_a_wrapper_that_takes_anything_is_asked_for_what_it_wraps() -> None:
    def inner(output: str, *, question: str) -> Any:
        return output, question

    @functools.wraps(inner)
    def wrapper(*args: Any, **kwargs: Any) -> Any:
        return "wrapped", *inner(*args, **kwargs)

    assert given(wrapper) == ("wrapped", "a", "q")


def test_a_wrapper_with_parameters_of_its_own_gets_those() -> None:
    def inner(output: str) -> str:
        return output

    @functools.wraps(inner)
    def wrapper(sample: Sample) -> Any:
        return "wrapped", inner(sample.output)

    assert given(wrapper) == ("wrapped", "a")


def test_methods_and_callable_objects_get_their_parameters_without_self() -> None:
    class Length:
        def __call__(self, output: str) -> int:
            return len(output)

        def method(self, output: str, documents: Any) -> Any:
            return output, len(documents)

        @classmethod
        def of_class(cls, question: str) -> str:
            return question

        @staticmethod
        def of_none(answer: str) -> str:
            return answer

    one = Length()
    assert (given(one), given(one.method), given(Length.of_class), given(one.of_none)) == (1, ("a", 1), "q", "a")
    assert (name_of(one), name_of(one.method)) == ("Length", "method")
    assert name_of(functools.partial(functools.partial(one.method))) == "method"


def test_a_metric_of_a_metric_takes_what_the_function_takes() -> None:
    @metric
    def inner(answer: str) -> str:
        return answer

    assert given(inner) == "a"
    assert metric(threshold=1.0)(inner).name == "inner"


def generator(output: str) -> Iterator[float]:
    yield 0.5


async def async_generator(output: str) -> Any:
    yield 0.5


class Generates:
    def __call__(self, output: str) -> Iterator[float]:
        yield 0.5


@pytest.mark.parametrize(
    ("fn", "sentence"),
    [
        (lambda: 1, "cannot be filled"),
        (lambda *args, **kwargs: 1, r"cannot be filled \(a decorator without functools.wraps hides them\)"),
        (lambda output, tenant: 1, "parameters tenant cannot be filled"),
        (lambda a, b, c: 1, "parameters a, b, c cannot be filled"),
        (lambda output, x: 1, "parameters x cannot be filled"),
        (lambda x, input: 1, "parameters x cannot be filled"),  # a misspelt field, not the item
        (lambda *, x, y: 1, "parameters x, y cannot be filled"),
        (lambda a=1, b=2: 1, "cannot be filled"),
        (lambda self, output: 1, "it is a method"),
        (lambda self: 1, "it is a method"),
        (int, "int is a class"),
        (functools.partial(Generates), "Generates is a class"),
        (generator, "is a generator function"),
        (async_generator, "is a generator function"),
        (functools.partial(generator), "is a generator function"),
        (Generates(), "is a generator function"),
    ],
)
def test_what_cannot_be_called_or_gives_no_score_is_refused(fn: Callable[..., Any], sentence: str) -> None:
    with pytest.raises(ConfigError, match=sentence):
        binding(fn, "metric 'm'")


async def plainly_async(output: str) -> float:
    return 0.5


class Async:
    async def __call__(self, output: str) -> float:
        return 0.5

    async def method(self, output: str) -> float:
        return 0.5


@functools.wraps(plainly_async)
def decorated(*args: Any, **kwargs: Any) -> Any:
    return plainly_async(*args, **kwargs)


@pytest.mark.parametrize(
    "fn",
    [plainly_async, functools.partial(plainly_async), decorated, Async(), functools.partial(Async()), Async().method],
)
def test_an_async_function_is_known_as_one_however_it_is_wrapped(fn: Callable[..., Any]) -> None:
    assert is_async(fn)
    assert not is_async(lambda output: 1)
