"""An agent of Pydantic AI's with a tool; ``FORMAT``: that of its instrumentation, 1 to 6; ``CONTENT=false``: none captured."""

import os
import warnings

import openai
import traced
from pydantic import BaseModel
from pydantic_ai import Agent
from pydantic_ai.models.instrumented import InstrumentationSettings
from pydantic_ai.models.openai import OpenAIChatModel
from pydantic_ai.providers.openai import OpenAIProvider

FORMAT = int(os.environ["FORMAT"])


class Weather(BaseModel):
    """What the test's own answer fits."""

    city: str
    degrees: int


def model(base_url: str) -> OpenAIChatModel:
    client = openai.AsyncOpenAI(base_url=base_url, max_retries=0)
    return OpenAIChatModel("gpt-4o-mini", provider=OpenAIProvider(openai_client=client))


def agent(base_url: str, **more: object) -> Agent:
    options = {"event_mode": "attributes"} if FORMAT == 1 else {}
    settings = InstrumentationSettings(
        tracer_provider=provider, version=FORMAT, include_content=os.environ.get("CONTENT") != "false", **options
    )
    said = {"name": "clerk", "instructions": "You're a helpful assistant.", **more}
    if FORMAT == 1:
        return Agent(model(base_url), instrument=settings, **said)
    from pydantic_ai.capabilities.instrumentation import Instrumentation

    return Agent(model(base_url), capabilities=[Instrumentation(settings=settings)], **said)


def tools() -> None:
    clerk = agent(traced.replayed("openai", "test_chat_completion_tool_calls_with_content", "/v1"))

    @clerk.tool_plain
    def get_current_weather(location: str) -> dict[str, str]:
        return {"location": location, "weather": "sunny"}

    clerk.run_sync("What's the weather in Seattle and San Francisco today?")


def structured() -> None:
    agent(traced.replayed("made", "weather", "/v1"), output_type=Weather).run_sync("What's the weather in Rome?")


if __name__ == "__main__":
    warnings.simplefilter("ignore")  # older formats are deprecated
    provider = traced.make_provider()
    traced.main({f.__name__: f for f in (tools, structured)}, provider)
