"""`BaseMetric`: what is checked when a class is defined, and what an instance does."""

import asyncio
import datetime
import enum
import sys
import types
from abc import ABC
from collections.abc import Callable
from typing import Any, Generic, Literal, NotRequired, Optional, TypedDict, TypeVar

import pytest
from pydantic import BaseModel, JsonValue

import spangrade as sg

T = TypeVar("T")


class Words(sg.BaseMetric[int]):
    """How many words."""

    def evaluate(self, text: str | None) -> dict[str, int]:
        return self.result(len((text or "").split()))


class Report(TypedDict):
    total: int
    parts: NotRequired[list["Report"]]


class Mood(enum.StrEnum):
    GOOD = "good"


Json = None | bool | int | float | str | list["Json"] | dict[str, "Json"]


def define(body: str, given: Any = int, **more: Any) -> type[sg.BaseMetric[Any]]:
    """A metric's class with this ``evaluate``."""
    space: dict[str, Any] = {"__name__": __name__, "sg": sg, "T": given, "Sample": sg.Sample, **more}
    exec(f"class M(sg.BaseMetric[T]):\n    {body}", space)
    found: type[sg.BaseMetric[Any]] = space["M"]
    return found


# --- the type ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "given",
    [
        str, int, float, bool, None, list, dict, list[int], dict[str, list[float]], Optional[int], int | None, Any,  # noqa: UP045
        Literal["a", 1], tuple[int, str], tuple[float, ...], Report, list[Report], Mood, JsonValue, Json,
        dict[Literal["a", "b"], float], "Report",
    ],
)  # fmt: skip
def test_any_type_that_json_has_a_form_for_is_taken(given: Any) -> None:
    assert define("def evaluate(self, text): return self.result(None)", given, Report=Report)().evaluate("") == {
        "M": None
    }


@pytest.mark.parametrize(
    ("given", "named", "way_out"),
    [
        (set, "set", "use a list"),
        (set[str], "set", "use a list"),
        (list[set[int]], "set", "use a list"),
        (dict[str, bytes], "bytes", "use str"),
        (Optional[bytes], "bytes", "use str"),  # noqa: UP045
        (object, "object", "use float, str, bool"),
        (datetime.datetime, "datetime", "isoformat"),
        (complex, "complex", "list of two floats"),
        (dict[int, str], "dict", r"dict\[str, \.\.\.\]"),
        (BaseModel, "BaseModel", "model_dump"),
        (Callable, "Callable", "use str"),
        (type("Own", (), {}), "Own", "use str"),
        ("Nowhere", "Nowhere", "define it before"),
    ],
)
def test_a_type_that_json_has_no_form_for_is_refused_where_the_class_is_defined(
    given: Any, named: str, way_out: str
) -> None:
    with pytest.raises(TypeError, match=rf"BaseMetric\[.*{named}.*{way_out}"):
        define("def evaluate(self, text): return {}", given)


def test_the_type_goes_through_generic_bases() -> None:
    class Listed(sg.BaseMetric[list[T]], Generic[T]):
        def evaluate(self, text: str) -> dict[str, list[T]]:
            return self.result([])

    class Twice(Listed[tuple[T, T]], Generic[T]): ...

    class Numbers(Twice[float]): ...

    assert Numbers().evaluate("") == {"Numbers": []}
    with pytest.raises(TypeError, match="set is not JSON-serialisable"):

        class Sets(Twice[set]): ...  # type: ignore[type-arg]

    for open_class in (Listed, Listed[int], Twice):
        with pytest.raises(TypeError, match="base for others"):
            open_class()
    with pytest.raises(TypeError, match="does not say what its results are"):

        class Unsaid(Listed): ...  # type: ignore[type-arg]


def test_a_class_without_a_type_may_be_a_base_but_no_metric() -> None:
    class Base(sg.BaseMetric):  # type: ignore[type-arg]
        threshold = 3

    class Real(Base, sg.BaseMetric[int]):
        def evaluate(self, text: str) -> dict[str, int]:
            return self.result(1)

    assert Real().threshold == 3
    with pytest.raises(TypeError, match=r"does not say what its results are; write class M\(BaseMetric\[float\]\)"):

        class M(sg.BaseMetric):  # type: ignore[type-arg]
            def evaluate(self, text: str) -> dict[str, Any]:
                return {}


@pytest.mark.skipif(sys.version_info < (3, 12), reason="the syntax came with Python 3.12")
def test_type_aliases_and_type_parameters_in_the_new_syntax() -> None:
    space: dict[str, Any] = {"__name__": __name__, "sg": sg}
    exec(
        "type Tree = None | int | list[Tree] | dict[str, Tree]\n"
        "type Pair[A] = tuple[A, A]\n"
        "class Base[A](sg.BaseMetric[list[A]]):\n"
        "    def evaluate(self, text) -> dict[str, list[A]]: return self.result([])\n"
        "class Numbers(Base[float]): ...\n"
        "class Trees(sg.BaseMetric[Tree]):\n"
        "    def evaluate(self, text) -> dict[str, Tree]: return self.result([{'a': ['x']}])\n"
        "class Pairs(sg.BaseMetric[Pair[int]]):\n"
        "    def evaluate(self, text) -> dict[str, Pair[int]]: return self.result((1, 2))\n",
        space,
    )
    assert space["Numbers"]().evaluate("") == {"Numbers": []}
    assert grade(space["Pairs"]).scores[0].structured == [1, 2]
    assert "none of" in grade(space["Trees"]).failures[0].message
    with pytest.raises(TypeError, match="set is not JSON-serialisable"):
        exec("class Sets(sg.BaseMetric[Pair[set]]):\n    def evaluate(self, text): ...", space)


# --- evaluate's signature ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("body", "said"),
    [
        ("x = 1", "has no evaluate; write def evaluate"),
        ("evaluate = 3", "is int, not a method"),
        ("def evaluate(self): ...", "takes nothing to evaluate"),
        ("def evaluate(self, *texts): ...", "takes nothing to evaluate"),
        ("def evaluate(self, *, text): ...", "takes nothing to evaluate"),
        ("def evaluate(self, text, expected): ...", r"needs expected beside text.*sample\.expected"),
        ("def evaluate(self, text, *, lang): ...", "needs lang beside text"),
        ("def evaluate(self, text: int): ...", "text is said to be int"),
        ("def evaluate(self, text: list[str]): ...", r"said to be list\[str\]"),
        ("def evaluate(self, text) -> int: ...", "returns int, not a dict"),
        ("def evaluate(self, text) -> list[int]: ...", "not a dict"),
        ("def evaluate(self, text) -> None: ...", "not a dict"),
        ("def evaluate(self, text) -> dict[str, str]: ...", "not what the class says"),
        ("def evaluate(self, text) -> 'dict[str, str]': ...", "not what the class says"),
        ("async def evaluate(self, text) -> dict[str, float]: ...", "not what the class says"),
        ("def evaluate(self, text) -> dict[int, int]: ...", "not a dict of its results by name"),
        ("def evaluate(self, text) -> dict[str, set]: ...", "set is not JSON-serialisable"),
        ("def evaluate(self, text): yield {}", "yields where it must return once"),
        ("async def evaluate(self, text): yield {}", "yields where it must return once"),
    ],
)
def test_a_wrong_evaluate_is_refused_where_the_class_is_defined(body: str, said: str) -> None:
    with pytest.raises(TypeError, match=said):
        define(body)


@pytest.mark.parametrize(
    "body",
    [
        "def evaluate(self, text): return self.result(1)",
        "def evaluate(self, anything: 'str | None') -> 'dict[str, int]': return self.result(1)",
        "def evaluate(self, text, hurry=False, **more) -> dict: return self.result(1)",
        "def evaluate(self, text) -> 'dict[str, NotKnownHere]': return self.result(1)",
        "@staticmethod\n    def evaluate(text): return {'M': 1}",
        "@classmethod\n    def evaluate(cls, text): return {'M': 1}",
        "def evaluate(self, sample) -> dict[str, int]: return self.result(len(sample.output))",
        "def evaluate(self, one: Sample) -> dict[str, int]: return self.result(len(one.output))",
        "def evaluate(self, one: 'Elsewhere.Sample | None'): return self.result(len(one.output))",
    ],
)
def test_evaluate_may_be_written_in_every_way_that_can_be_called(body: str) -> None:
    metric = define(body)()
    found = sg_resolve(metric).evaluate(sg.Sample(output="x"))
    assert [graded.value for graded in found.scores] == [1.0]


def test_an_inherited_evaluate_is_checked_against_the_new_class_type() -> None:
    class Mixin:
        def evaluate(self, text: str) -> dict[str, str]:
            return {}

    with pytest.raises(TypeError, match="not what the class says"):

        class M(Mixin, sg.BaseMetric[int]): ...  # type: ignore[misc]


def test_a_base_for_others_may_leave_evaluate_out_if_it_says_so() -> None:
    class Base(sg.BaseMetric[int], ABC):
        def help(self) -> int:
            return 1

    class Real(Base):
        def evaluate(self, text: str) -> dict[str, int]:
            return self.result(self.help())

    assert Real().evaluate("") == {"Real": 1}
    with pytest.raises(TypeError):
        Base()  # type: ignore[abstract]


# --- names and results -------------------------------------------------------------------------------------------------


def test_name_is_the_class_and_result_key_the_instance() -> None:
    assert (Words.name, Words().result_key) == ("Words", "Words")
    assert Words().result(3) == {"Words": 3}
    one, other = Words(result_key="short"), Words(result_key="long")
    assert {**one.evaluate("a b"), **other.evaluate("a")} == {"short": 2, "long": 1}

    class Named(Words):
        name = "words_of_all_kinds"

    class Keyed(Named):
        result_key = "n"

    class Again(Keyed): ...

    assert Named().result(1) == {"words_of_all_kinds": 1}
    assert (Keyed.name, Keyed().result(1)) == ("Keyed", {"n": 1})
    assert (Again.name, Again().result_key) == ("Again", "n")


def test_a_name_may_be_a_property_and_is_else_a_short_text() -> None:
    class Dynamic(Words):
        @property
        def name(self) -> str:  # type: ignore[override]
            return "dynamic"

    assert Dynamic().result(1) == {"dynamic": 1}
    assert sg_resolve(Dynamic()).info.name == "dynamic"
    for name in ("", 3, None, "x" * 200):
        with pytest.raises(sg.ConfigError, match="the metric's name"):
            types.new_class("Wrong", (Words,), exec_body=lambda space, name=name: space.update(name=name))


@pytest.mark.parametrize("key", ["", "  ", "x" * 200, 3])
def test_a_result_key_is_a_short_text(key: Any) -> None:
    with pytest.raises(sg.ConfigError, match="result_key"):
        Words(result_key=key)
    with pytest.raises(sg.ConfigError, match="result_key"):
        Words.from_config(result_key=key)


def test_options_come_from_the_class_or_the_constructor_and_are_checked() -> None:
    class Short(Words):
        threshold = 20
        lower_is_better = True
        version = 3
        requires = "output"

    info = sg_resolve(Short).info
    assert (info.threshold, info.lower_is_better, info.version, info.requires) == (20, True, "3", ("output",))
    told = sg_resolve(Short(threshold=5, version="4b", target="tool", verdict=False, timeout=9))
    assert (told.info.threshold, told.info.version, told.info.target, told.info.verdict) == (5, "4b", "tool", False)
    assert told.timeout == 9
    for wrong, said in (
        ({"threshold": "x"}, "threshold 'x'"),
        ({"requires": "nothing"}, "requires 'nothing'"),
        ({"target": "roof"}, "target 'roof'"),
        ({"timeout": -1}, "timeout -1"),
    ):
        with pytest.raises(sg.ConfigError, match=said):
            Words(**wrong)  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="takes no 'treshold'; it takes config, result_key, threshold"):
        Words(treshold=3)  # type: ignore[call-arg]


def test_a_constructor_that_leaves_ours_out_is_said_to() -> None:
    class Mine(Words):
        def __init__(self) -> None:
            pass

    with pytest.raises(TypeError, match=r"Mine.__init__ does not call super\(\).__init__\(config\)"):
        sg_resolve(Mine())


# --- in the pipeline ---------------------------------------------------------------------------------------------------


def sg_resolve(given: Any) -> Any:
    from spangrade.metrics.catalog import resolve

    return resolve(given)


def grade(metric: Any, **sample: Any) -> Any:
    found = sg_resolve(metric).evaluate(sg.Sample(**sample))
    return asyncio.run(found) if asyncio.iscoroutine(found) else found


@pytest.mark.parametrize("output", [None, "", " "])
def test_empty_and_missing_text_is_the_metrics_own_edge_case(output: Any) -> None:
    seen: list[Any] = []

    class Sees(sg.BaseMetric[int]):
        def evaluate(self, text: str | None) -> dict[str, int]:
            seen.append(text)
            return self.result(0)

    assert grade(Sees, output=output).scores[0].value == 0
    assert seen == [output]


def test_a_structured_output_comes_as_json_and_a_sample_as_it_is() -> None:
    class Sees(sg.BaseMetric[str]):
        def evaluate(self, text: str) -> dict[str, str]:
            return self.result(text)

    class SeesAll(sg.BaseMetric[bool]):
        def evaluate(self, sample: sg.Sample) -> dict[str, bool]:
            return self.result(sample.output == {"a": [1]} and sample.expected == "e")

    assert grade(Sees, output={"a": [1]}).scores[0].label == '{"a":[1]}'
    assert grade(SeesAll, output={"a": [1]}, expected="e").scores[0].value == 1


def test_values_become_value_label_structured_or_nothing() -> None:
    class Says(sg.BaseMetric[Any]):
        threshold = 2

        def evaluate(self, sample: sg.Sample) -> dict[str, Any]:
            return dict(sample.context["says"])

    says = {
        "number": 3,
        "flag": False,
        "label": "billing",
        "digits": "5",
        "items": [1, {"value": 2}],
        "map": {"value": 1},
    }
    found = {graded.name: graded for graded in grade(Says, context={"says": {**says, "nothing": None}}).scores}
    assert (found["Says.number"].value, found["Says.number"].label) == (3.0, "pass")
    assert (found["Says.flag"].value, found["Says.flag"].passed) == (0.0, False)
    assert (found["Says.label"].label, found["Says.label"].passed) == ("billing", None)
    assert found["Says.digits"].label == "5"
    assert found["Says.items"].structured == [1, {"value": 2}]
    assert found["Says.map"].structured == {"value": 1}  # a value, and no score spelt out
    assert "Says.nothing" not in found


@pytest.mark.parametrize(
    ("given", "value", "said"),
    [
        (int, "5", "M is a str, not int"),
        (int, 0.5, "M is 0.5, not int"),
        (float, float("nan"), "M is nan, which JSON has no number for"),
        (list[int], [1, "x"], r"M\[1\] is a str, not int"),
        (dict[str, int], {"a": 1.5}, r"M\['a'\] is 1.5, not int"),
        (dict[str, int], {1: 1}, "M has the key 1, not a str"),
        (Report, {"parts": []}, "M lacks 'total'"),
        (Report, {"total": 1, "parts": [{"total": "x"}]}, r"M\['parts'\]\[0\]\['total'\] is a str"),
        (Literal["a"], "b", "not one of 'a'"),
        (int | None, "x", "none of int, None"),
        (Any, [object()], r"M\[0\] is an object, which JSON has no form for"),
        (tuple[int, int], (1,), "not a tuple of 2"),
        (bool, 1, "M is 1, not bool"),
        (Json, [{1}], "none of"),
    ],
)
def test_a_value_of_another_type_is_a_failure_that_says_so(given: Any, value: Any, said: str) -> None:
    metric = define("def evaluate(self, text): return self.result(self.value)", given)
    metric.value = value  # type: ignore[attr-defined]
    found = grade(metric)
    assert found.scores == ()
    (failure,) = found.failures
    assert failure.kind == "ReturnError"
    with pytest.raises(AssertionError, match=said):
        raise AssertionError(failure.message)


@pytest.mark.parametrize(
    ("given", "value"), [(float, 3), (float, True), (int, True), (tuple[int, ...], [1]), (Json, [{"a": None}]), (Mood, Mood.GOOD)]
)  # fmt: skip
def test_values_are_held_to_the_rules_of_typing_and_no_more(given: Any, value: Any) -> None:
    metric = define("def evaluate(self, text): return self.result(self.value)", given)
    metric.value = value  # type: ignore[attr-defined]
    assert not grade(metric).failures


def test_numbers_of_numpy_are_numbers() -> None:
    numpy = pytest.importorskip("numpy")
    for given, value in ((float, numpy.float32(0.5)), (int, numpy.int64(2)), (bool, numpy.True_)):
        metric = define("def evaluate(self, text): return self.result(self.value)", given)
        metric.value = value  # type: ignore[attr-defined]
        assert grade(metric).scores[0].value == float(value)


def test_one_wrong_value_does_not_lose_the_others() -> None:
    class Two(sg.BaseMetric[int]):
        def evaluate(self, text: str) -> dict[str, int]:
            return {"good": 1, "bad": "x"}  # type: ignore[dict-item]

    found = grade(Two)
    assert [g.name for g in found.scores] == ["Two.good"]
    assert [f.name for f in found.failures] == ["Two.bad"]


@pytest.mark.parametrize(
    ("returned", "said"),
    [
        (3, "not a dict of results"),
        ([], "not a dict of results"),
        ({}, "empty dict"),
        ({1: 2}, "key of type"),
        (None, "not a dict"),
    ],
)
def test_what_is_no_dict_of_results_is_an_error(returned: Any, said: str) -> None:
    metric = define("def evaluate(self, text): return self.value", Any)
    metric.value = returned  # type: ignore[attr-defined]
    with pytest.raises(ValueError, match=said):
        grade(metric)


def test_none_alone_is_a_skip_and_so_is_a_missing_requirement() -> None:
    from spangrade.model.score import Skip

    class Maybe(sg.BaseMetric[int | None]):
        requires = ("documents",)

        def evaluate(self, text: str) -> dict[str, int | None]:
            return self.result(None)

    with pytest.raises(Skip, match="documents missing"):
        grade(Maybe, output="x")
    with pytest.raises(Skip, match="returned None"):
        grade(Maybe, output="x", documents=[{"content": "d"}])


def test_an_async_metric_is_awaited() -> None:
    class Later(sg.BaseMetric[float]):
        async def evaluate(self, text: str) -> dict[str, float]:
            await asyncio.sleep(0)
            return self.result(0.5)

    assert sg_resolve(Later).is_async
    assert grade(Later, output="x").scores[0].value == 0.5


def test_two_configurations_of_one_class_are_two_evaluators() -> None:
    from spangrade.scoring.evaluators import placed_evaluators

    class Config(BaseModel):
        at_least: int = 1

    class Long(sg.BaseMetric[bool]):
        config_schema = Config

        def evaluate(self, text: str) -> dict[str, bool]:
            return self.result(len(text) >= self.config.at_least)

    placed = placed_evaluators([Long({"at_least": 3}), Long({"at_least": 9}, result_key="long"), Long()], [])
    infos = [one.evaluator.info for one in placed]
    assert [info.name for info in infos] == ["Long", "Long.long", "Long"]
    assert len({info.config_hash for info in infos}) == 3
    assert infos[0].config_hash == sg_resolve(Long(Config(at_least=3))).info.config_hash
    with pytest.raises(sg.ConfigError, match="two evaluators are named 'Long'"):
        placed_evaluators([Long(), Long()], [])
