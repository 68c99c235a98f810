"""What applications ask Anthropic's client, in the scenarios of the tests: the same for each library that traces it."""

import anthropic
import traced

WEATHER = {
    "name": "get_weather",
    "description": "Get the current weather in a given location",
    "input_schema": {"type": "object", "properties": {"location": {"type": "string"}}, "required": ["location"]},
}
TIME = {
    "name": "get_time",
    "description": "Get the current time in a given time zone",
    "input_schema": {"type": "object", "properties": {"timezone": {"type": "string"}}, "required": ["timezone"]},
}
JOKE = [{"role": "user", "content": "Tell me a joke about OpenTelemetry"}]
LETTERS = [{"role": "user", "content": [{"type": "text", "text": "How many times does the letter 'r' appear in it?"}]}]
THINKING = {"type": "enabled", "budget_tokens": 1024}


def client(cassette: str) -> anthropic.Anthropic:
    return anthropic.Anthropic(base_url=traced.replayed("anthropic", cassette), max_retries=0)


def message() -> None:
    client("test_messages.test_anthropic_message_create_legacy").messages.create(
        model="claude-3-opus-20240229", max_tokens=1024, system="You are a comedian.", messages=JOKE
    )


def streaming() -> None:
    stream = client("test_messages.test_anthropic_message_streaming_legacy").messages.create(
        model="claude-3-haiku-20240307", max_tokens=1024, messages=JOKE, stream=True
    )
    for _event in stream:
        pass


def stream_manager() -> None:
    ask = client("test_messages.test_anthropic_message_stream_manager_legacy").messages.stream
    with ask(model="claude-3-5-haiku-20241022", max_tokens=1024, messages=JOKE) as stream:
        for _text in stream.text_stream:
            pass


def tools() -> None:
    client("test_messages.test_anthropic_tools_legacy").messages.create(
        model="claude-3-5-sonnet-20240620",
        max_tokens=1024,
        tools=[WEATHER, TIME],
        messages=[{"role": "user", "content": "What is the weather in New York? Also what time is it there?"}],
    )


def tools_history() -> None:
    client("test_messages.test_anthropic_tools_history_legacy").messages.create(
        model="claude-3-5-haiku-20241022",
        max_tokens=1024,
        tools=[WEATHER, TIME],
        messages=[
            {"role": "user", "content": "What is the weather and current time in San Francisco?"},
            {
                "role": "assistant",
                "content": [
                    {"type": "text", "text": "I'll help you."},
                    {
                        "id": "call_1",
                        "type": "tool_use",
                        "name": "get_weather",
                        "input": {"location": "San Francisco, CA"},
                    },
                ],
            },
            {
                "role": "user",
                "content": [{"type": "tool_result", "content": "Sunny and 65 degrees", "tool_use_id": "call_1"}],
            },
        ],
    )


def tools_streaming() -> None:
    stream = client("test_messages.test_anthropic_tools_streaming_legacy").messages.create(
        model="claude-3-5-sonnet-20240620",
        max_tokens=1024,
        tools=[WEATHER, TIME],
        messages=[{"role": "user", "content": "What is the weather and current time in San Francisco?"}],
        stream=True,
    )
    for _event in stream:
        pass


def thinking() -> None:
    client("test_thinking.test_anthropic_thinking_legacy").messages.create(
        model="claude-3-7-sonnet-20250219", max_tokens=2048, messages=LETTERS, thinking=THINKING
    )


def thinking_streaming() -> None:
    stream = client("test_thinking.test_anthropic_thinking_streaming_legacy").messages.create(
        model="claude-3-7-sonnet-20250219", max_tokens=2048, messages=LETTERS, thinking=THINKING, stream=True
    )
    for _event in stream:
        pass


def cached() -> None:
    parts = [{"type": "text", "text": "An article. Summarise it.", "cache_control": {"type": "ephemeral"}}]
    for _turn in (1, 2):
        client("test_prompt_caching.test_anthropic_prompt_caching_legacy").messages.create(
            model="claude-3-5-sonnet-20240620", max_tokens=1024, messages=[{"role": "user", "content": parts}]
        )


SCENARIOS = {
    f.__name__: f
    for f in (
        message,
        streaming,
        stream_manager,
        tools,
        tools_history,
        tools_streaming,
        thinking,
        thinking_streaming,
        cached,
    )
}
