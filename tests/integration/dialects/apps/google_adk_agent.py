"""Google's Agent Development Kit with Gemini: an agent with a tool."""

import asyncio
import os

import traced
from google.adk.agents import Agent
from google.adk.models.google_llm import Gemini
from google.adk.runners import InMemoryRunner
from google.genai import types
from opentelemetry import _logs, trace


def plugs(city: str) -> str:
    """Which plug fits in a city."""
    return f"type F in {city}"


async def _agent() -> None:
    model = Gemini(model="gemini-3-flash", base_url=traced.replayed("made", "gemini"))
    clerk = Agent(name="clerk", model=model, instruction="Be kind.", tools=[plugs])
    runner = InMemoryRunner(agent=clerk, app_name="shop")
    session = await runner.session_service.create_session(app_name="shop", user_id="u1", session_id="s1")
    asked = types.Content(role="user", parts=[types.Part(text="Which plug?")])
    async for _event in runner.run_async(user_id="u1", session_id=session.id, new_message=asked):
        pass


def agent() -> None:
    asyncio.run(_agent())


if __name__ == "__main__":
    os.environ.setdefault("GOOGLE_API_KEY", "unused")
    provider, logs = traced.make_provider(), traced.make_logs()
    trace.set_tracer_provider(provider)
    _logs.set_logger_provider(logs)
    traced.main({"agent": agent}, provider, logs)
