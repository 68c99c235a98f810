"""What measurements are made of: tokens and their parts, models, times, offered tools, wherever a sender put them."""

import json
from collections.abc import Callable
from typing import Any

import pytest

from spangrade.model.span import EventData, SpanData
from spangrade.samples.assemble import root_sample, sample_of
from spangrade.samples.extract import extract
from spangrade.samples.reading import Call

CallOf = Callable[..., Call]
SECOND = 10**9
TOOL = {"type": "function", "function": {"name": "find", "parameters": {"type": "object"}}}


def model_call(span_of: Callable[..., SpanData], number: int, parent: int | None = None, **attributes: Any) -> Call:
    keys = {key.replace("__", "."): value for key, value in attributes.items()}
    start = number * SECOND
    found = extract(
        span_of(
            {"gen_ai.operation.name": "chat", **keys},
            span_id=number,
            parent_span_id=parent,
            start_ns=start,
            end_ns=start + SECOND,
        )
    )
    assert found is not None
    return found


@pytest.mark.parametrize(
    "attributes",
    [
        {
            "gen_ai.operation.name": "chat",
            "gen_ai.usage.input_tokens": 100,
            "gen_ai.usage.output_tokens": 20,
            "gen_ai.usage.cache_read.input_tokens": 60,
            "gen_ai.usage.cache_write.input_tokens": 10,
            "gen_ai.usage.reasoning.output_tokens": 5,
        },
        {
            "gen_ai.operation.name": "chat",
            "gen_ai.usage.prompt_tokens": "100",
            "gen_ai.usage.completion_tokens": 20.0,
            "gen_ai.usage.cache_read_input_tokens": 60,
            "gen_ai.usage.cache_creation.input_tokens": 10,
            "gen_ai.usage.reasoning_tokens": 5,
        },
        {
            "openinference.span.kind": "LLM",
            "llm.token_count.prompt": 100,
            "llm.token_count.completion": 20,
            "llm.token_count.prompt_details.cache_read": 60,
            "llm.token_count.prompt_details.cache_write": 10,
            "llm.token_count.completion_details.reasoning": 5,
        },
    ],
)
def test_tokens_and_their_parts_in_every_spelling(call_of: CallOf, attributes: dict[str, Any]) -> None:
    """Input with its cached part, output with its thoughts."""
    assert call_of(attributes).reading.usage == {
        "input_tokens": 100,
        "output_tokens": 20,
        "cache_read_tokens": 60,
        "cache_write_tokens": 10,
        "reasoning_tokens": 5,
    }


@pytest.mark.parametrize(
    ("usage", "expected"),
    [
        (  # Anthropic: the cached part stands beside the input
            {"input_tokens": 30, "cache_read_input_tokens": 60, "cache_creation_input_tokens": 10, "output_tokens": 20},
            {"input_tokens": 100, "output_tokens": 20, "cache_read_tokens": 60, "cache_write_tokens": 10},
        ),
        (  # OpenAI: it is part of it
            {
                "prompt_tokens": 100,
                "completion_tokens": 20,
                "prompt_tokens_details": {"cached_tokens": 60},
                "completion_tokens_details": {"reasoning_tokens": 5},
            },
            {"input_tokens": 100, "output_tokens": 20, "cache_read_tokens": 60, "reasoning_tokens": 5},
        ),
        (  # Gemini: thoughts stand beside the output
            {
                "promptTokenCount": 100,
                "candidatesTokenCount": 15,
                "thoughtsTokenCount": 5,
                "cachedContentTokenCount": 60,
            },
            {"input_tokens": 100, "output_tokens": 20, "cache_read_tokens": 60, "reasoning_tokens": 5},
        ),
        ({"input_tokens": 30, "output_tokens": "many"}, {"input_tokens": 30}),
    ],
)
def test_raw_responses_are_counted_the_same_way(call_of: CallOf, usage: Any, expected: Any) -> None:
    response = {"choices": [{"message": {"role": "assistant", "content": "a"}}], "usage": usage}
    attributes = {
        "openinference.span.kind": "LLM",
        "output.value": json.dumps(response),
        "output.mime_type": "application/json",
    }
    assert call_of(attributes).reading.usage == expected


@pytest.mark.parametrize(
    ("attributes", "provider"),
    [
        (
            {"gen_ai.operation.name": "chat", "gen_ai.provider.name": "azure.ai.openai", "gen_ai.system": "openai"},
            "azure.ai.openai",
        ),
        ({"gen_ai.operation.name": "chat", "gen_ai.system": "openai"}, "openai"),
        ({"openinference.span.kind": "LLM", "llm.provider": "azure", "llm.system": "openai"}, "azure"),
        ({"openinference.span.kind": "LLM", "llm.system": "openai"}, "openai"),
        ({"openinference.span.kind": "LLM"}, None),
    ],
)
def test_whose_model_it_is(call_of: CallOf, attributes: Any, provider: str | None) -> None:
    call = call_of(attributes)
    assert call.reading.provider == provider
    assert sample_of(call).context.get("provider") == provider


@pytest.mark.parametrize(
    "attributes",
    [
        {"gen_ai.operation.name": "chat", "gen_ai.tool.definitions": json.dumps([TOOL])},
        {"gen_ai.operation.name": "chat", "gen_ai.tool.definitions": (TOOL,)},
        {"gen_ai.operation.name": "chat", "gen_ai.tool.definitions": (json.dumps(TOOL),)},
        {"openinference.span.kind": "LLM", "llm.tools.0.tool.json_schema": json.dumps(TOOL)},
        {
            "openinference.span.kind": "LLM",
            "llm.invocation_parameters": json.dumps({"temperature": 0, "tools": [TOOL]}),
        },
    ],
)
def test_the_tools_that_a_model_was_offered(call_of: CallOf, attributes: dict[str, Any]) -> None:
    assert sample_of(call_of(attributes)).context["tools"] == [TOOL]


@pytest.mark.parametrize("held", ["", "[", "not json", 7, [None, 3, "", "x", {}], object(), '["]'])
def test_rubbish_instead_of_tools_is_none(call_of: CallOf, held: Any) -> None:
    for attributes in (
        {"gen_ai.operation.name": "chat", "gen_ai.tool.definitions": held},
        {"openinference.span.kind": "LLM", "llm.tools.0.tool.json_schema": held, "llm.invocation_parameters": held},
    ):
        assert "tools" not in sample_of(call_of(attributes)).context


@pytest.mark.parametrize(
    ("value", "seconds"),
    [
        (0.25, 0.25),
        (1, 1.0),
        ("0.5", 0.5),
        (0, 0.0),
        (-1, None),
        (float("nan"), None),
        (True, None),
        ("soon", None),
        (1e9, None),
    ],
)
def test_time_to_first_chunk_is_a_duration_or_absent(call_of: CallOf, value: Any, seconds: float | None) -> None:
    for attributes in (
        {"gen_ai.operation.name": "chat", "gen_ai.response.time_to_first_chunk": value},
        {"openinference.span.kind": "CHAIN", "gen_ai.response.time_to_first_chunk": value},  # ours
    ):
        assert sample_of(call_of(attributes)).context.get("time_to_first_chunk_s") == seconds


def test_openinference_tells_of_the_first_token_by_an_event(span_of: Callable[..., SpanData]) -> None:
    event = EventData("First Token Stream Event", {}, time_ns=3 * SECOND // 2)
    call = extract(span_of({"openinference.span.kind": "LLM"}, events=[event], start_ns=SECOND, end_ns=2 * SECOND))
    assert call is not None
    assert call.reading.first_chunk_s == 0.5


def test_the_first_chunk_of_a_model_call_further_down_is_not_the_callers(span_of: Callable[..., SpanData]) -> None:
    inner = model_call(span_of, 2, 1, gen_ai__response__time_to_first_chunk=0.2)
    outer = extract(
        span_of({"openinference.span.kind": "CHAIN", "input.value": "q"}, start_ns=SECOND, end_ns=4 * SECOND)
    )
    assert outer is not None
    found = root_sample([outer], [inner])
    assert found is not None
    assert "time_to_first_chunk_s" not in found[1].context
    assert sample_of(inner).context["time_to_first_chunk_s"] == 0.2


def test_of_several_tops_the_wait_begins_with_the_first(span_of: Callable[..., SpanData]) -> None:
    first = model_call(span_of, 1)
    second = model_call(span_of, 4, gen_ai__response__time_to_first_chunk=0.5)
    found = root_sample([first, second], [])
    assert found is not None
    assert found[1].context["time_to_first_chunk_s"] == 3.5


def test_tokens_of_several_models_are_kept_apart_and_of_one_are_not(span_of: Callable[..., SpanData]) -> None:
    small = {"gen_ai__request__model": "small", "gen_ai__provider__name": "openai"}
    calls = [
        model_call(span_of, 1, **small, gen_ai__usage__input_tokens=10, gen_ai__usage__output_tokens=1),
        model_call(span_of, 2, gen_ai__request__model="large", gen_ai__usage__input_tokens=5),
        model_call(span_of, 3, **small, gen_ai__usage__input_tokens=7),
        model_call(span_of, 4, 3, **small, gen_ai__usage__input_tokens=7),  # the same call, seen a second time
    ]
    found = root_sample(calls[:3], calls[3:])
    assert found is not None
    assert found[1].context["usage"] == {"input_tokens": 22, "output_tokens": 1}
    assert found[1].context["usage_by_model"] == [
        {"model": "small", "provider": "openai", "input_tokens": 17, "output_tokens": 1},
        {"model": "large", "provider": None, "input_tokens": 5},
    ]
    alone = root_sample([calls[0]], [])
    assert alone is not None
    assert "usage_by_model" not in alone[1].context


def test_tools_of_several_model_calls_are_listed_once(span_of: Callable[..., SpanData]) -> None:
    other = {"name": "send", "input_schema": {"type": "object"}}
    calls = [
        model_call(span_of, 1, gen_ai__tool__definitions=json.dumps([TOOL])),
        model_call(span_of, 2, gen_ai__tool__definitions=json.dumps([TOOL, other])),
    ]
    found = root_sample(calls, [])
    assert found is not None
    assert found[1].context["tools"] == [TOOL, other]
