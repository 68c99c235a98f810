"""Haystack with its OpenTelemetry tracer: a pipeline over documents in memory, and an agent with a tool."""

import traced
from haystack import Document, Pipeline, tracing
from haystack.components.agents import Agent
from haystack.components.builders import ChatPromptBuilder
from haystack.components.generators.chat import OpenAIChatGenerator
from haystack.components.retrievers.in_memory import InMemoryBM25Retriever
from haystack.dataclasses import ChatMessage
from haystack.document_stores.in_memory import InMemoryDocumentStore
from haystack.tools import tool
from haystack_integrations.tracing.opentelemetry import OpenTelemetryTracer

TEMPLATE = [
    ChatMessage.from_system("You are a parrot."),
    ChatMessage.from_user("{% for d in documents %}{{ d.content }}{% endfor %} {{ question }}"),
]


@tool
def get_current_weather(location: str) -> str:
    """Get the current weather in a given location"""
    return "sunny"


def generator(cassette: str) -> OpenAIChatGenerator:
    return OpenAIChatGenerator(
        model="gpt-4o-mini", api_base_url=traced.replayed("openai", cassette, "/v1"), max_retries=0
    )


def pipeline() -> None:
    store = InMemoryDocumentStore()
    store.write_documents(
        [Document(id="d1", content="Lisbon has type F.", meta={"page": 1}), Document(content="Trams.")]
    )
    rag = Pipeline()
    rag.add_component("retriever", InMemoryBM25Retriever(store, top_k=1))
    rag.add_component("builder", ChatPromptBuilder(template=TEMPLATE, required_variables="*"))
    rag.add_component("llm", generator("test_chat_completion_with_content"))
    rag.connect("retriever", "builder.documents")
    rag.connect("builder.prompt", "llm.messages")
    question = "Which plug in Lisbon?"
    rag.run({"retriever": {"query": question}, "builder": {"question": question}})


def agent() -> None:
    clerk = Agent(
        chat_generator=generator("test_chat_completion_tool_calls_with_content"),
        tools=[get_current_weather],
        system_prompt="You're a helpful assistant.",
    )
    clerk.run(messages=[ChatMessage.from_user("What's the weather in Seattle and San Francisco today?")])


if __name__ == "__main__":
    provider = traced.make_provider()
    tracing.enable_tracing(OpenTelemetryTracer(provider.get_tracer("haystack")))
    traced.main({f.__name__: f for f in (pipeline, agent)}, provider)
