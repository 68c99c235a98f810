"""A class metric's parameters: declared, strict, and not to be changed."""

import copy
import datetime
import enum
import pickle
from typing import Any

import pytest
from pydantic import BaseModel, ConfigDict, Field, SecretStr, ValidationError, model_validator

import spangrade as sg
from spangrade.metrics.adapter import evaluator_of


class Level(enum.Enum):
    LOW = "low"
    HIGH = "high"


class Inner(BaseModel):
    z: int = 1


class Config(BaseModel):
    n: int = 5
    level: Level = Level.LOW
    day: datetime.date | None = None
    pair: tuple[int, int] = (1, 2)
    inner: Inner = Inner()
    inners: list[Inner] = []
    by_name: dict[str, Inner] = {}
    either: Inner | int = 0
    api_key: str = ""


@sg.config_schema(Config)
class Counted(sg.BaseMetric[int]):
    def evaluate(self, text: str) -> dict[str, int]:
        return self.result(self.config.n)


class Plain(sg.BaseMetric[int]):
    def evaluate(self, text: str) -> dict[str, int]:
        return self.result(0)


def test_a_schema_is_declared_by_the_decorator_or_in_the_class_and_inherited() -> None:
    class InClass(sg.BaseMetric[int]):
        config_schema = Config

        def evaluate(self, text: str) -> dict[str, int]:
            return self.result(self.config.n)

    class Child(InClass): ...

    class Wider(Config):
        more: str = "m"

    @sg.config_schema(Wider)
    class Grandchild(Child): ...

    assert InClass({"n": 3}).evaluate("") == {"InClass": 3}
    assert Child({"n": 3}).evaluate("") == {"Child": 3}
    assert Grandchild({"n": 3, "more": "x"}).config.more == "x"
    assert Counted.config_schema is Config


@pytest.mark.parametrize(
    "config",
    [{"n": 3}, Config(n=3), {"n": 3, "inner": {"z": 1}}],
    ids=["dict", "model", "nested"],
)
def test_dict_model_and_keywords_mean_the_same(config: Any) -> None:
    assert Counted(config).config == Counted.from_config(config).config == Config(n=3)
    assert Config(n=3) == Counted(config).config
    assert Counted.from_config(n=3, inner=Inner()).evaluate("") == {"Counted": 3}
    assert isinstance(Counted(config).config, Config)


def test_none_is_all_defaults_and_a_missing_parameter_is_named() -> None:
    class Needs(BaseModel):
        word: str

    @sg.config_schema(Needs)
    class Metric(Plain): ...

    assert Counted().config == Counted(None).config == Counted.from_config().config == Config()
    for make in (Metric, lambda: Metric({}), Metric.from_config):
        with pytest.raises(sg.ConfigError, match=r"metric 'Metric': 'word' is missing \(it takes word\)"):
            make()


@pytest.mark.parametrize(
    ("config", "said"),
    [
        ({"n": "5"}, "'n' is '5': Input should be a valid integer"),
        ({"n": 5.0}, "'n' is 5.0"),
        ({"n": True}, "'n' is True"),
        ({"m": 1}, "there is no parameter 'm'"),
        ({"n": "5", "m": 1}, r"'n' is '5'.*there is no parameter 'm'"),
        ({"inner": {"q": 1}}, r"there is no parameter 'inner\.q'"),
        ({"inners": [{"z": 1}, {"q": 1}]}, r"there is no parameter 'inners\.1\.q'"),
        ({"by_name": {"a": {"q": 1}}}, r"there is no parameter 'by_name\.a\.q'"),
        ({"either": {"z": 1, "q": 2}}, r"there is no parameter 'either\.q'"),
        ({"level": "middle"}, "'level' is 'middle'"),
        ({"level": 3}, "'level' is 3"),
        ({"day": "tomorrow"}, "'day' is 'tomorrow'"),
        ({"pair": [1]}, r"'pair\.1' is"),
        (5, "a dict of parameters or a Config, not a int"),
        ([("n", 1)], "not a list"),
        (Inner(), "its configuration is a Config, not a Inner"),
    ],
)
def test_what_is_wrong_is_named_and_nothing_is_converted(config: Any, said: str) -> None:
    for make in (Counted, Counted.from_config):
        with pytest.raises(sg.ConfigError, match=said):
            make(config)


def test_what_yaml_has_no_form_for_is_given_in_its() -> None:
    config = Counted({"level": "high", "day": "2026-01-02", "pair": [3, 4]}).config
    assert (config.level, config.day, config.pair) == (Level.HIGH, datetime.date(2026, 1, 2), (3, 4))
    assert Counted({"level": Level.HIGH, "day": datetime.date(2026, 1, 2), "pair": (3, 4)}).config == config


def test_without_a_schema_no_parameter_is_taken() -> None:
    assert Plain.config_schema is sg.DefaultSchema
    assert Plain({}).config == Plain().config == sg.DefaultSchema()
    for make in (lambda: Plain({"n": 1}), lambda: Plain.from_config({"n": 1}), lambda: Plain.from_config(n=1)):
        with pytest.raises(sg.ConfigError, match=r"there is no parameter 'n' \(it takes no parameters"):
            make()


def test_the_configuration_cannot_be_changed() -> None:
    metric = Counted({"n": 3})
    with pytest.raises(ValidationError, match="frozen"):
        metric.config.n = 4
    given = Config(n=3)
    metric = Counted(given)
    given.n = 9  # the application's own model is its own
    assert metric.config.n == 3
    for again in (pickle.loads(pickle.dumps(metric.config)), copy.deepcopy(metric.config)):
        assert again == metric.config
        with pytest.raises(ValidationError, match="frozen"):
            again.n = 4


def test_a_schema_may_allow_more_and_read_otherwise() -> None:
    class Open(BaseModel):
        model_config = ConfigDict(extra="allow")
        n: int = 1

    class Aliased(BaseModel):
        words: int = Field(1, alias="min_words")

    class Old(BaseModel):
        words: int = 1

        @model_validator(mode="before")
        @classmethod
        def old_name(cls, given: Any) -> Any:
            return {"words": given["min"]} if isinstance(given, dict) and "min" in given else given

    class Holds(BaseModel):
        inside: Aliased = Aliased()
        old: Old = Old()
        open: Open = Open()

    def metric(schema: type[BaseModel]) -> type[sg.BaseMetric[int]]:
        return sg.config_schema(schema)(type("Metric", (Plain,), {}))

    assert metric(Open)({"n": 2, "x": "y"}).config.x == "y"
    assert metric(Aliased)({"min_words": 3}).config.words == 3
    assert metric(Old)({"min": 3}).config.words == 3
    held = metric(Holds)({"inside": {"min_words": 3}, "old": {"min": 4}, "open": {"q": 1}}).config
    assert (held.inside.words, held.old.words, held.open.q) == (3, 4, 1)
    with pytest.raises(sg.ConfigError, match=r"there is no parameter 'inside\.mn_words'"):
        metric(Holds)({"inside": {"mn_words": 3}})


def test_secrets_are_not_in_the_message_nor_in_repr() -> None:
    with pytest.raises(sg.ConfigError) as caught:
        Counted({"api_key": 424242})
    assert "424242" not in str(caught.value)
    assert "[secret]" in str(caught.value)
    with pytest.raises(sg.ConfigError) as caught:
        Counted({"inner": "x", "n": {"password": "hunter2"}})
    assert "hunter2" not in str(caught.value)
    assert "k-1" not in repr(Counted({"api_key": "k-1"}))


@pytest.mark.parametrize("schema", [int, "Config", Config(), BaseModel, None, {"n": int}])
def test_a_schema_that_is_none_is_refused_where_it_is_declared(schema: Any) -> None:
    with pytest.raises(TypeError, match=r"is no schema; declare the parameters as a pydantic model"):
        sg.config_schema(schema)
    with pytest.raises(TypeError, match=r"Metric\.config_schema"):
        type("Metric", (Plain,), {"config_schema": schema})
    with pytest.raises(TypeError, match="stands above a BaseMetric's class"):
        sg.config_schema(Config)(int)


def test_the_hash_changes_with_the_configuration_alone() -> None:
    def of(metric: sg.BaseMetric[Any]) -> str:
        return evaluator_of(metric).info.config_hash

    assert of(Counted({"n": 3})) == of(Counted({"n": 3})) != of(Counted({"n": 4}))
    assert of(Plain()) == ""
    assert of(Plain(threshold=3)) == ""  # a threshold is no part of the identity
    assert of(Plain(version=2)) != of(Plain(version=3)) != ""

    class Secret(BaseModel):
        key: SecretStr
        odd: Any = None

    metric = sg.config_schema(Secret)(type("Metric", (Plain,), {}))
    assert of(metric({"key": SecretStr("a")})) == of(metric({"key": SecretStr("b")}))
    assert of(metric({"key": SecretStr("a"), "odd": object()})) == of(metric({"key": SecretStr("a"), "odd": object()}))


def test_from_config_works_where_the_class_has_a_constructor_of_its_own() -> None:
    class Own(Plain):
        config_schema = Config

        def __init__(self, config: Any = None) -> None:
            super().__init__(config)
            self.result_key = f"n{self.config.n}"

    assert Own({"n": 3}).result(1) == {"n3": 1}
    assert Own.from_config({"n": 3}, result_key="k").result(1) == {"k": 1}
