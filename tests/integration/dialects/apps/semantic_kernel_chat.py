"""Semantic Kernel with OpenAI: a chat, a function that the model calls, an agent. Its messages go through Python's logging."""

import asyncio
import logging

import openai
import traced
from opentelemetry import trace
from semantic_kernel import Kernel
from semantic_kernel.agents import ChatCompletionAgent
from semantic_kernel.connectors.ai.function_choice_behavior import FunctionChoiceBehavior
from semantic_kernel.connectors.ai.open_ai import OpenAIChatCompletion, OpenAIChatPromptExecutionSettings
from semantic_kernel.contents import ChatHistory
from semantic_kernel.functions import kernel_function


class Weather:
    @kernel_function(name="get_current_weather")
    def get_current_weather(self, location: str) -> str:
        """Get the current weather in a given location"""
        return {"Seattle, WA": "50 degrees and raining"}.get(location, "70 degrees and sunny")


def service(cassette: str) -> OpenAIChatCompletion:
    base = traced.replayed("made" if cassette == "plugin" else "openai", cassette, "/v1")
    return OpenAIChatCompletion(
        ai_model_id="gpt-4o-mini", async_client=openai.AsyncOpenAI(base_url=base, max_retries=0)
    )


async def _chat() -> None:
    history = ChatHistory(system_message="You are a parrot.")
    history.add_user_message("Say this is a test")
    await service("test_chat_completion_with_content").get_chat_message_content(
        history, OpenAIChatPromptExecutionSettings()
    )


async def _tools() -> None:
    kernel = Kernel()
    kernel.add_plugin(Weather(), plugin_name="weather")
    history = ChatHistory(system_message="You're a helpful assistant.")
    history.add_user_message("What's the weather in Seattle and San Francisco today?")
    settings = OpenAIChatPromptExecutionSettings(function_choice_behavior=FunctionChoiceBehavior.Auto())
    await service("plugin").get_chat_message_content(history, settings, kernel=kernel)


async def _agent() -> None:
    agent = ChatCompletionAgent(
        service=service("test_chat_completion_with_content"), name="parrot", instructions="You are a parrot."
    )
    await agent.get_response("Say this is a test")  # named, it is not written down


def chat() -> None:
    asyncio.run(_chat())


def tools() -> None:
    asyncio.run(_tools())


def agent() -> None:
    asyncio.run(_agent())


if __name__ == "__main__":
    provider, logs = traced.make_provider(), traced.make_logs()
    trace.set_tracer_provider(provider)
    from opentelemetry.sdk._logs import LoggingHandler

    logging.getLogger("semantic_kernel").setLevel(logging.INFO)
    logging.getLogger().addHandler(LoggingHandler(logger_provider=logs))
    traced.main({f.__name__: f for f in (chat, tools, agent)}, provider, logs)
