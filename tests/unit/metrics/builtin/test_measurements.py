"""`length_*`, `latency`, `time_to_first_chunk`, `tokens`, `cost`."""

import socket
import sys
from collections.abc import Callable
from typing import Any

import pytest

from spangrade.errors import ConfigError
from spangrade.metrics.builtin.cost import cost
from spangrade.metrics.builtin.latency import latency, time_to_first_chunk
from spangrade.metrics.builtin.length import length_chars, length_words
from spangrade.metrics.builtin.tokens import tokens
from spangrade.model.score import Graded, Skip

Grade = Callable[..., Graded]
CALL = {"model": "gpt-4o", "provider": "openai", "usage": {"input_tokens": 1_000_000, "output_tokens": 100_000}}


def context(**changes: Any) -> dict[str, Any]:
    return {**CALL, **changes}


@pytest.mark.parametrize(
    ("metric", "fields", "value"),
    [
        (length_words, {"output": "three short words"}, 3),
        (length_words, {"output": {"a": "two words", "b": 3}}, 3),
        (length_chars, {"output": "äöü "}, 4),
        (latency, {"context": {"duration_s": 1.5}}, 1.5),
        (time_to_first_chunk, {"context": {"time_to_first_chunk_s": 0}}, 0),
        (tokens, {"context": CALL}, 1_100_000),
    ],
)
def test_a_measurement_has_no_verdict_until_it_has_a_threshold(
    grade: Grade, metric: Any, fields: dict[str, Any], value: float
) -> None:
    assert (grade(metric(), **fields).value, grade(metric(), **fields).passed) == (value, None)
    assert grade(metric(threshold=value), **fields).passed is True
    assert grade(metric(threshold=value - 0.5), **fields).passed is False
    assert metric().info.lower_is_better


@pytest.mark.parametrize("held", [None, "1.5", -1.0, float("nan"), True, [1]])
def test_a_time_that_makes_no_sense_is_skipped(grade: Grade, held: Any) -> None:
    with pytest.raises(Skip, match="no usable start and end"):
        grade(latency(), context={"duration_s": held})
    with pytest.raises(Skip, match="not streamed"):
        grade(time_to_first_chunk(), context={"time_to_first_chunk_s": held})


@pytest.mark.parametrize(
    ("which", "value"),
    [("input", 10), ("output", 4), ("total", 14), ("cache_read", 6), ("cache_write", 1), ("reasoning", 2)],
)
def test_tokens_of_each_kind(grade: Grade, which: str, value: int) -> None:
    usage = {
        "input_tokens": 10,
        "output_tokens": 4,
        "cache_read_tokens": 6,
        "cache_write_tokens": 1,
        "reasoning_tokens": 2,
    }
    score = grade(tokens(which=which), context={"usage": usage})
    assert score.value == value
    assert score.name == ("tokens" if which == "total" else f"tokens_{which}")


@pytest.mark.parametrize(
    "usage",
    [
        None,
        {},
        {"input_tokens": 10},
        {"input_tokens": 10, "output_tokens": "4"},
        [1],
        "x",
        {"input_tokens": True, "output_tokens": -1},
    ],
)
def test_an_unknown_count_is_skipped_and_never_0(grade: Grade, usage: Any) -> None:
    with pytest.raises(Skip, match="unknown"):
        grade(tokens(), context={"usage": usage})
    with pytest.raises(Skip, match="unknown"):
        grade(cost(), context=context(usage=usage))


# --- cost ----------------------------------------------------------------------------------------------------------------


@pytest.fixture
def no_network(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: Any, **__: Any) -> Any:
        raise AssertionError("a connection was made")

    for name in ("create_connection", "getaddrinfo"):
        monkeypatch.setattr(socket, name, refuse)
    monkeypatch.setattr(socket.socket, "connect", refuse)


@pytest.mark.usefixtures("no_network")
def test_cost_is_tokens_times_list_prices_and_nothing_is_fetched(grade: Grade) -> None:
    """As the price list's own calculation says, whatever the prices are today."""
    import genai_prices

    usage = genai_prices.Usage(input_tokens=1_000_000, output_tokens=100_000)
    expected = float(genai_prices.calc_price(usage, "gpt-4o", provider_id="openai").total_price)
    score = grade(cost(), context=CALL)
    assert score.value == pytest.approx(expected)
    assert expected > 0
    assert (score.passed, (score.explanation or "").startswith("gpt-4o $")) == (None, True)
    assert grade(cost(threshold=expected * 0.9), context=CALL).passed is False


def test_cached_tokens_cost_less(grade: Grade) -> None:
    cached = {**CALL["usage"], "cache_read_tokens": 900_000}  # type: ignore[dict-item]
    assert (grade(cost(), context=context(usage=cached)).value or 0) < (grade(cost(), context=CALL).value or 0)


@pytest.mark.parametrize("provider", ["openai", "azure.ai.openai", "az.ai.openai", "azure", None])
def test_providers_by_the_conventions_names(grade: Grade, provider: str | None) -> None:
    assert (grade(cost(), context=context(provider=provider)).value or 0) > 0


@pytest.mark.parametrize(
    ("model", "provider"),
    [
        ("gemini-2.5-flash", "gcp.gemini"),
        ("gemini-2.5-flash", "gcp.vertex_ai"),
        ("claude-sonnet-4-5-20250929", "anthropic"),
        ("anthropic.claude-3-haiku-20240307-v1:0", "aws.bedrock"),
        ("mistral-large-latest", "mistral_ai"),
    ],
)
def test_other_makers_models_have_prices_too(grade: Grade, model: str, provider: str) -> None:
    assert (grade(cost(), context=context(model=model, provider=provider)).value or 0) > 0


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"model": "no-such-model"}, "no price is known for model 'no-such-model' of provider 'openai'"),
        ({"provider": "ollama"}, "no price is known for model 'gpt-4o' of provider 'ollama'"),
        ({"model": None}, "the model is unknown"),
        ({"usage": {"input_tokens": 10, "output_tokens": 1, "cache_read_tokens": 50}}, "do not add up"),
    ],
)
def test_what_has_no_price_is_skipped_with_the_reason(grade: Grade, changes: Any, reason: str) -> None:
    with pytest.raises(Skip, match=reason):
        grade(cost(), context=context(**changes))


def test_own_prices_come_first_and_count_cached_tokens(grade: Grade) -> None:
    prices = {"mine": {"input": 1.0, "output": 2.0, "cache_read": 0.1}}
    usage = {
        "input_tokens": 1_000_000,
        "output_tokens": 500_000,
        "cache_read_tokens": 400_000,
        "cache_write_tokens": 100_000,
    }
    score = grade(cost(prices=prices), context={"model": "mine", "usage": usage})
    assert score.value == pytest.approx(0.5 + 0.04 + 0.1 + 1.0)
    assert cost(prices=prices).info.config_hash != cost().info.config_hash


def test_each_model_is_charged_at_its_own_price(grade: Grade) -> None:
    prices = {"a": {"input": 1, "output": 1}, "b": {"input": 10, "output": 10}}
    by_model = [
        {"model": "a", "provider": None, "input_tokens": 1_000_000, "output_tokens": 0},
        {"model": "b", "provider": None, "input_tokens": 1_000_000, "output_tokens": 0},
    ]
    score = grade(cost(prices=prices), context=context(usage_by_model=by_model))
    assert score.value == pytest.approx(11)
    assert score.explanation == "a $1; b $10"
    by_model.append({"model": "c", "provider": None, "input_tokens": 1, "output_tokens": 0})
    with pytest.raises(Skip, match="'c'"):  # a sum that leaves one out would be a wrong number
        grade(cost(prices=prices), context=context(usage_by_model=by_model))


@pytest.mark.parametrize(
    ("prices", "sentence"),
    [
        ({"m": {"input": 1}}, "need 'input' and 'output'"),
        ({"m": {"input": 1, "output": "x"}}, "is not a number"),
        ({"m": {"input": 1, "output": -1}}, "is not a number"),
        ({"m": {"input": 1, "output": 1, "cached": 1}}, "know no 'cached'"),
    ],
)
def test_wrong_prices_are_refused(prices: Any, sentence: str) -> None:
    with pytest.raises(ConfigError, match=sentence):
        cost(prices=prices)


def test_cost_without_the_extra_is_skipped_with_the_way_out(monkeypatch: pytest.MonkeyPatch, grade: Grade) -> None:
    monkeypatch.setitem(sys.modules, "genai_prices", None)
    with pytest.raises(Skip, match=r'pip install "spangrade\[cost\]"'):
        grade(cost(), context=CALL)


def test_a_kind_of_tokens_that_is_none_is_refused() -> None:
    with pytest.raises(ConfigError, match="which 'all' is not one of total, input"):
        tokens(which="all")
