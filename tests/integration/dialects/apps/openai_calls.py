"""What applications ask OpenAI's client, in the scenarios of the tests: the same for each library that traces it."""

import json

import openai
import traced

TOOL = {
    "type": "function",
    "function": {
        "name": "get_current_weather",
        "description": "Get the current weather in a given location",
        "parameters": {"type": "object", "properties": {"location": {"type": "string"}}, "required": ["location"]},
    },
}


def client(cassette: str) -> openai.OpenAI:
    return openai.OpenAI(base_url=traced.replayed("openai", cassette, "/v1"), max_retries=0)


def chat() -> None:
    client("test_chat_completion_with_content").chat.completions.create(
        model="gpt-4o-mini",
        messages=[
            {"role": "system", "content": "You are a parrot."},
            {"role": "user", "content": "Say this is a test"},
        ],
    )


def streaming() -> None:
    stream = client("test_chat_completion_streaming").chat.completions.create(
        model="gpt-4",
        messages=[{"role": "user", "content": "Say this is a test"}],
        stream=True,
        stream_options={"include_usage": True},
    )
    for _chunk in stream:
        pass


def choices() -> None:
    client("test_chat_completion_multiple_choices").chat.completions.create(
        model="gpt-4o-mini", messages=[{"role": "user", "content": "Say this is a test"}], n=2
    )


def tools() -> None:
    ask = client("test_chat_completion_tool_calls_with_content").chat.completions.create
    messages = [
        {"role": "system", "content": "You're a helpful assistant."},
        {"role": "user", "content": "What's the weather in Seattle and San Francisco today?"},
    ]
    message = ask(model="gpt-4o-mini", messages=messages, tools=[TOOL], tool_choice="auto").choices[0].message
    messages.append(message.model_dump(exclude_none=True))
    for call, weather in zip(message.tool_calls, ("50 degrees and raining", "70 degrees and sunny"), strict=True):
        messages.append({"role": "tool", "content": weather, "tool_call_id": call.id})
    ask(model="gpt-4o-mini", messages=messages)


def responses() -> None:
    client("test_responses_create_basic").responses.create(
        model="gpt-4o-mini", instructions="You are a parrot.", input="Say this is a test"
    )


def picture() -> None:
    parts = [
        {"type": "text", "text": "What is this?"},
        {"type": "image_url", "image_url": {"url": "data:image/png;base64,iVBORw0KGgo="}},
    ]
    client("test_chat_completion_with_content").chat.completions.create(
        model="gpt-4o-mini", messages=[{"role": "user", "content": parts}]
    )


def fails() -> None:
    try:
        client("test_chat_completion_404").chat.completions.create(
            model="this-model-does-not-exist", messages=[{"role": "user", "content": "Say this is a test"}]
        )
    except openai.NotFoundError as error:
        json.dumps(error.body)


SCENARIOS = {f.__name__: f for f in (chat, streaming, choices, tools, responses, picture, fails)}
