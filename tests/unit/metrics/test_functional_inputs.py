"""The inputs of a functional metric: one model from the signature, and what is said of inputs that do not fit it."""

from __future__ import annotations

import asyncio
import gc
import threading
import typing
import warnings
import weakref
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, Optional, Protocol, Union

import pydantic
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import BaseModel, Field, Strict

import spangrade as sg
from spangrade.metrics import functional_inputs

if TYPE_CHECKING:
    from decimal import Decimal


class Chunk(BaseModel):
    text: str
    score: float = 1.0


class Client:
    """What an application hands to its metrics."""


class Speaks(Protocol):
    def speak(self) -> str: ...


@dataclass
class Turn:
    role: str


def seen(fn: Callable[..., Any], **inputs: Any) -> Any:
    """What arrived in the function, as the returned result."""
    return sg.discrete_metric(name="seen", allowed_values=["x"])(fn).score(**inputs)


def arriving(fn: Callable[..., Any], /, **inputs: Any) -> dict[str, Any]:
    """The arguments with which the function was called."""
    got: dict[str, Any] = {}
    metric = sg.discrete_metric(name="arriving", allowed_values=["x"])(fn)
    args, kwargs = metric._inputs.arguments(inputs)
    import inspect

    bound = inspect.signature(fn).bind(*args, **kwargs)
    bound.apply_defaults()
    got.update(bound.arguments)
    return got


# --- the model -----------------------------------------------------------------------------------------------------------


def test_one_model_is_built_for_a_metric_and_not_for_a_call(monkeypatch: pytest.MonkeyPatch) -> None:
    made = []
    build = pydantic.create_model
    monkeypatch.setattr(functional_inputs, "create_model", lambda *a, **k: made.append(a) or build(*a, **k))

    @sg.discrete_metric
    def judged(text: str, n: int = 1) -> str:
        return "pass"

    for _ in range(50):
        judged.score(text="x")
    judged.batch_score([{"text": "x"}] * 50)
    assert len(made) == 1
    assert judged.inputs_model is judged.inputs_model
    assert set(judged.inputs_model.model_fields) == {"text", "n"}
    assert judged.inputs_model.model_json_schema()["required"] == ["text"]


def test_nested_models_arrive_as_models_given_as_models_or_as_dicts() -> None:
    def f(chunk: Chunk, chunks: list[Chunk], turn: Turn) -> None: ...

    one = Chunk(text="a")
    got = arriving(f, chunk=one, chunks=[one, {"text": "b", "score": "0.5"}], turn=Turn("user"))
    assert got["chunk"] is one
    assert got["chunks"][0] is one
    assert got["chunks"][1] == Chunk(text="b", score=0.5)
    assert got["turn"] == Turn("user")
    assert arriving(f, chunk={"text": "c"}, chunks=(), turn={"role": "user"})["chunk"] == Chunk(text="c")


def test_what_has_no_type_arrives_as_it_is() -> None:
    def f(anything, client: Client, either: Any = None) -> None:  # type: ignore[no-untyped-def]
        ...

    thing, client = [object()], Client()
    got = arriving(f, anything=thing, client=client, either=thing)
    assert got["anything"] is thing
    assert got["client"] is client
    assert got["either"] is thing


def test_defaults_are_the_functions_and_containers_are_fresh_each_time() -> None:
    class NoCopy:
        __hash__ = None  # type: ignore[assignment]

        def __deepcopy__(self, memo: Any) -> Any:
            raise RuntimeError("this holds a connection")

    connection = NoCopy()

    @sg.ranking_metric(allowed_values=2)
    def f(
        text: str,
        seen: list[str] = [],  # noqa: B006 - that is what is tested
        options: dict[str, Any] = {"held": connection},  # noqa: B006
        client: Any = connection,
        pair: tuple[Any, ...] = ([connection], connection),
        wrong: int = "not checked",  # type: ignore[assignment]
    ) -> list[Any]:
        assert options["held"] is connection
        assert client is connection
        assert pair[1] is connection
        assert wrong == "not checked"  # type: ignore[comparison-overlap]
        seen.append(text)
        return [text, len(seen)]

    assert f.score(text="a") == ["a", 1]
    assert f.score(text="b") == ["b", 1]


def test_every_kind_of_parameter_is_given_by_name() -> None:
    def f(a: int, /, b: int, *rest: int, c: int, d: int = 4, **more: int) -> None: ...

    assert arriving(f, a="1", b=2, c=3) == {"a": 1, "b": 2, "rest": (), "c": 3, "d": 4, "more": {}}
    got = arriving(f, a=1, b=2, rest=["7", 8], c=3, e="9", more=5)
    assert got == {"a": 1, "b": 2, "rest": (7, 8), "c": 3, "d": 4, "more": {"e": 9, "more": 5}}
    with pytest.raises(TypeError, match="e: Input should be a valid integer"):
        arriving(f, a=1, b=2, c=3, e="x")
    with pytest.raises(TypeError, match="rest: Input should be a valid tuple"):
        arriving(f, a=1, b=2, c=3, rest=5)


def test_names_that_a_model_cannot_have_are_inputs_like_others() -> None:
    def f(
        _private: int, p0: int, json: str, schema: str, model_config: int, copy: int, self: str, cls: str, args: int
    ) -> None: ...

    given = {
        "_private": 1,
        "p0": 0,
        "json": "j",
        "schema": "s",
        "model_config": 2,
        "copy": 3,
        "self": "me",
        "cls": "c",
        "args": 4,
    }
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert arriving(f, **given) == given
    with pytest.raises(TypeError, match="_private: Input should be a valid integer"):
        arriving(f, **{**given, "_private": "x"})
    metric = sg.discrete_metric(lambda self, args=1, inputs=2: "pass")
    assert metric.score(self=1, inputs=3) == "pass"
    assert asyncio.run(metric.ascore(self=1)) == "pass"


def test_constraints_of_annotated_and_field_count() -> None:
    def f(
        n: Annotated[int, Field(gt=0, alias="count")],
        exact: Annotated[int, Strict()] = 1,
        m: int = Field(default=5, lt=10),
        k: int = Field(gt=2),
        kind: Literal["a", "b"] = "a",
    ) -> None: ...

    assert arriving(f, n=1, k=3)["m"] == 5
    for wrong in ({"n": 0}, {"exact": "1"}, {"m": 10}, {"k": 2}, {"kind": "c"}):
        name = next(iter(wrong))
        with pytest.raises(TypeError, match=rf"\b{name}: Input should be"):
            arriving(f, **{"n": 1, "k": 3, **wrong})
    with pytest.raises(TypeError, match="k: Field required"):
        arriving(f, n=1)


def test_a_parameter_that_may_be_none_is_optional() -> None:
    def f(text: str, a: str | None, b: Optional[str], c: Union[int, None], d: Annotated[str | None, "x"]) -> None: ...  # noqa: UP007, UP045

    assert arriving(f, text="x") == {"text": "x", "a": None, "b": None, "c": None, "d": None}
    assert arriving(f, text="x", a="y")["a"] == "y"


@pytest.mark.parametrize(
    ("hint", "value", "ok"),
    [
        (int, "5", True),
        (int, "five", False),
        (int, 5.5, False),
        (float, 1, True),
        (str, 5, False),
        (bool, "yes", True),
        (list, "text", False),
        (list[str], "text", False),
        (list[str], ["a", 1], False),
        (list[str], ("a", "b"), True),
        (Sequence[str], "text", False),
        (Iterable[str], "text", False),
        (Iterable[str], [1], False),
        (Iterable[str], iter(["a"]), True),
        (Iterable, "text", False),
        (typing.Iterable, [1], True),
        (Iterable[str] | None, "text", False),
        (Annotated[Iterable[str], "any"], "text", False),
        (Iterator[str], "text", False),
        (Callable[[str], int], len, True),
        (Callable[[str], int], 5, False),
        (type[BaseModel], Chunk, True),
        (type[BaseModel], Chunk(text="a"), False),
        (Speaks | None, "anything", True),
        (dict[str, int], {"a": "1"}, True),
        (dict[str, int], [("a", 1)], False),
        (Path, "a/b", True),
        (Client, "client", False),
        (Client, None, False),
        (Chunk, {"score": 1}, False),
        (Chunk, Turn("x"), False),
        (int | str, [1], False),
        (Speaks, "anything", True),
    ],
)
def test_pydantics_rules_decide_what_fits_a_type(hint: Any, value: Any, ok: bool) -> None:
    def f(given: Any) -> None: ...

    f.__annotations__["given"] = hint
    if ok:
        assert "given" in arriving(f, given=value)
    else:
        with pytest.raises(TypeError, match="Type validation errors for arriving: given: "):
            arriving(f, given=value)


def test_an_iterable_is_checked_before_the_function_runs_and_can_be_read_twice() -> None:
    def f(texts: Iterable[str]) -> None: ...

    assert arriving(f, texts=(t for t in ("a", "b")))["texts"] == ["a", "b"]


# --- annotations that are text -------------------------------------------------------------------------------------------


def test_names_of_the_enclosing_function_are_found() -> None:
    class Local(BaseModel):
        x: int

    def f(local: Local) -> None: ...

    @sg.numeric_metric(allowed_values=(0, 100))
    def g(local: Local, locals_: list[Local]) -> int:
        return local.x + len(locals_)

    @sg.numeric_metric
    def h(local: Local) -> int:
        return Local(x=local.x).x

    assert g.score(local={"x": 7}, locals_=[{"x": 1}]) == 8
    assert h.score(local={"x": 1}) == 1


def test_what_stands_around_a_metric_is_not_kept_alive_by_it() -> None:
    def make() -> tuple[Any, weakref.ref[Client]]:
        large = Client()

        @sg.numeric_metric
        def of(client: Client) -> float:
            return 1

        return of, weakref.ref(large)

    metric, large = make()
    gc.collect()
    assert large() is None
    assert metric.score(client=Client()) == 1


@sg.numeric_metric
def early(later: Later) -> float:
    return later.x


class Later(BaseModel):
    x: float


def test_a_name_that_is_defined_after_the_metric_is_found_at_the_first_use() -> None:
    assert early.score(later={"x": 0.25}) == 0.25


def test_a_name_that_is_never_known_is_said_once_and_its_input_is_not_checked() -> None:
    @sg.numeric_metric
    def priced(price: Decimal, times: int = 1) -> float:
        return float(price) * times

    with pytest.warns(UserWarning, match="annotation 'Decimal' of 'price' cannot be used") as said:
        assert priced.score(price="0.5") == 0.5
    assert said[0].filename == __file__
    assert priced.score(price=0.25) == 0.25
    with pytest.raises(TypeError, match="times: Input should be a valid integer"):
        priced.score(price=1, times="x")


def test_an_annotation_that_is_no_type_is_said_and_the_others_are_checked() -> None:
    def f(text: str, n: int) -> None: ...

    f.__annotations__["text"] = 5
    with pytest.warns(UserWarning, match="5 is not a Python type"):  # pydantic's own words
        assert arriving(f, text=object, n="3")["n"] == 3


# --- what is said --------------------------------------------------------------------------------------------------------


@sg.discrete_metric(name="quality")
def quality(predicted: str, expected: str, context: str = "") -> str:
    return "pass"


def test_positional_inputs_are_refused_with_the_call_that_was_meant() -> None:
    with pytest.raises(TypeError) as refused:
        quality.score("a", "b")
    said = str(refused.value)
    assert "quality.score() requires keyword arguments, not positional" in said
    assert "You provided: score('a', 'b')" in said
    assert "Correct usage: score(predicted='a', expected='b')" in said
    with pytest.raises(TypeError, match=r"Correct usage: score\(expected='a', predicted='b'\)"):
        quality.score("a", predicted="b")
    with pytest.raises(TypeError, match=r"ascore\(predicted='a', expected=\.\.\.\)"):
        asyncio.run(quality.ascore("a"))
    with pytest.raises(TypeError, match="it has 3 more inputs, not 4"):
        quality.score(1, 2, 3, 4)


def test_missing_and_mistyped_inputs_are_all_named_with_the_way_out() -> None:
    with pytest.raises(TypeError) as refused:
        quality.score(expected=5)
    said = str(refused.value)
    assert "predicted: Field required" in said
    assert "expected: Input should be a valid string, got 5" in said
    assert "context" not in said
    assert "Give inputs by name: (predicted=<str>, expected=<str>)" in said


def test_a_misspelt_name_is_pointed_at() -> None:
    with pytest.raises(TypeError, match=r"predicted: Field required \(you gave 'predictd': is it meant\?\)"):
        quality.score(predictd="a", expected="b")


def test_an_unknown_name_warns_where_it_was_written_and_is_left_out() -> None:
    with pytest.warns(UserWarning, match="quality received unknown arguments: mood, tone") as said:
        assert quality.score(predicted="a", expected="b", tone=1, mood=2) == "pass"
    assert said[0].filename == __file__
    assert len(said) == 1

    async def main() -> None:
        await quality.ascore(predicted="a", expected="b", tone=1)

    with pytest.warns(UserWarning, match="Valid arguments: predicted, expected, context") as said:
        asyncio.run(main())
    assert said[0].filename == __file__


def test_a_place_inside_an_input_is_named() -> None:
    def f(chunks: list[Chunk]) -> None: ...

    with pytest.raises(TypeError, match=r"chunks: Field required \(in 1\.text\)"):
        arriving(f, chunks=[{"text": "a"}, {}])


def test_a_metric_without_inputs_is_scored() -> None:
    metric = sg.discrete_metric(allowed_values=["always"])(lambda: "always")
    assert metric.score() == "always"
    with pytest.warns(UserWarning, match="Valid arguments: none"):
        metric.score(text="x")


def test_a_builtin_without_a_signature_is_refused() -> None:
    with pytest.raises(sg.ConfigError, match="wrap it in a def"):
        sg.numeric_metric(name="m")(min)


# --- properties ----------------------------------------------------------------------------------------------------------


@sg.discrete_metric(allowed_values=["pass"])
def typed(n: int, texts: list[str], chunk: Chunk | None = None, ratio: float = 0.5) -> str:
    assert type(n) is int
    assert type(texts) is list
    assert all(type(t) is str for t in texts)
    assert chunk is None or type(chunk) is Chunk
    assert isinstance(ratio, float)
    return "pass"


WILD = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text() | st.binary(max_size=5) | st.just(object()),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3) | st.tuples(inner)
    ),
    max_leaves=6,
)


@given(st.dictionaries(st.sampled_from(["n", "texts", "chunk", "ratio"]), WILD))
def test_whatever_comes_the_function_gets_its_types_or_the_caller_a_type_error(inputs: dict[str, Any]) -> None:
    try:
        found = typed.score(**inputs)
        said = (found.value, found.reason)
    except TypeError as fault:
        said = str(fault).startswith("Type validation errors for typed: ")
    assert said in (True, ("pass", None))


@given(st.text(min_size=1, max_size=20).filter(lambda name: name not in ("predicted", "expected", "context")))
def test_any_other_name_warns_and_changes_nothing(name: str) -> None:
    with pytest.warns(UserWarning, match="received unknown arguments"):
        assert quality.score(**{"predicted": "a", "expected": "b", name: 1}) == "pass"


def test_inputs_are_checked_on_many_threads_at_once_without_mixing_them() -> None:
    @sg.ranking_metric(allowed_values=2)
    def pair(a: int, b: list[int]) -> list[int]:
        return [a, b[0]]

    start = threading.Barrier(8)
    wrong: list[Any] = []

    def run(n: int) -> None:
        start.wait(10)
        for i in range(200):
            found = pair.score(a=n * 1000 + i, b=[n * 1000 + i])
            if found != [n * 1000 + i, n * 1000 + i]:
                wrong.append(found)

    threads = [threading.Thread(target=run, args=(n,)) for n in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(30)
    assert wrong == []
