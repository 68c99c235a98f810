"""LangChain, traced by OpenLLMetry: a chain with a retriever, and a tool."""

import traced
from langchain_core.documents import Document
from langchain_core.output_parsers import StrOutputParser
from langchain_core.prompts import ChatPromptTemplate
from langchain_core.retrievers import BaseRetriever
from langchain_core.runnables import RunnablePassthrough
from langchain_core.tools import tool
from langchain_openai import ChatOpenAI
from opentelemetry.instrumentation.langchain import LangchainInstrumentor


class Shelf(BaseRetriever):
    """Always the same two documents."""

    def _get_relevant_documents(self, query: str, *, run_manager: object) -> list[Document]:
        return [
            Document("Parrots repeat what they hear.", id="d1", metadata={"page": 1}),
            Document("This is a test of parrots.", id="d2"),
        ]


@tool
def weather(place: str) -> str:
    """The weather of a place."""
    return f"sunny in {place}"


def chain() -> None:
    model = ChatOpenAI(
        model="gpt-4o-mini",
        base_url=traced.replayed("openai", "test_chat_completion_with_content", "/v1"),
        max_retries=0,
    )
    prompt = ChatPromptTemplate.from_messages([("system", "You are a parrot. {context}"), ("human", "{question}")])
    asks = {"context": Shelf(), "question": RunnablePassthrough()} | prompt | model | StrOutputParser()
    asks.invoke("Say this is a test", config={"metadata": {"session_id": "s1", "user_id": "u1", "tier": "gold"}})


def tools() -> None:
    weather.invoke({"type": "tool_call", "id": "c1", "name": "weather", "args": {"place": "Lisbon"}})


if __name__ == "__main__":
    provider, logs = traced.make_provider(), traced.make_logs()
    LangchainInstrumentor().instrument(tracer_provider=provider)
    traced.main({f.__name__: f for f in (chain, tools)}, provider, logs)
