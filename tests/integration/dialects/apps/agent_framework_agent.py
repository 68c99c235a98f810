"""Microsoft's Agent Framework with OpenAI: an agent with a tool."""

import asyncio

import openai
import traced
from agent_framework import Agent
from agent_framework.openai import OpenAIChatCompletionClient
from opentelemetry import _logs, trace


def get_current_weather(location: str) -> str:
    """Get the current weather in a given location"""
    return {"Seattle, WA": "50 degrees and raining"}.get(location, "70 degrees and sunny")


def client(cassette: str) -> OpenAIChatCompletionClient:
    base = traced.replayed("openai", cassette, "/v1")
    asks = openai.AsyncOpenAI(base_url=base, max_retries=0)
    return OpenAIChatCompletionClient(model="gpt-4o-mini", async_client=asks)


async def _agent() -> None:
    agent = Agent(
        client("test_chat_completion_tool_calls_with_content"),
        name="helper",
        instructions="You're a helpful assistant.",
        tools=[get_current_weather],
    )
    await agent.run("What's the weather in Seattle and San Francisco today?")


def agent() -> None:
    asyncio.run(_agent())


if __name__ == "__main__":
    provider, logs = traced.make_provider(), traced.make_logs()
    trace.set_tracer_provider(provider)
    _logs.set_logger_provider(logs)
    traced.main({"agent": agent}, provider, logs)
