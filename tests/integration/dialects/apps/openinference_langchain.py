"""LangChain, traced by openinference-instrumentation-langchain: a chain with a retriever, and an agent with a tool."""

import traced
from langchain.agents import create_agent
from langchain_core.documents import Document
from langchain_core.output_parsers import StrOutputParser
from langchain_core.prompts import ChatPromptTemplate
from langchain_core.retrievers import BaseRetriever
from langchain_core.runnables import RunnablePassthrough
from langchain_core.tools import tool
from langchain_openai import ChatOpenAI
from openinference.instrumentation.langchain import LangChainInstrumentor

DOCUMENTS = [
    Document("Parcels arrive within three working days.", metadata={"source": "faq.md"}, id="d1"),
    Document("Returns are free.", metadata={"source": "faq.md", "page": 2}, id="d2"),
]


class Shelf(BaseRetriever):
    """Finds the same two for every question."""

    def _get_relevant_documents(self, query, *, run_manager):
        return DOCUMENTS


@tool
def get_current_weather(location: str) -> str:
    """Get the current weather in a given location"""
    return {"Seattle, WA": "50 degrees and raining"}.get(location, "70 degrees and sunny")


def model(cassette: str, **options) -> ChatOpenAI:
    return ChatOpenAI(
        model="gpt-4o-mini",
        base_url=traced.replayed("openai", cassette, "/v1"),
        max_retries=0,
        use_responses_api=False,
        **options,
    )


def chain_with(llm: ChatOpenAI):
    prompt = ChatPromptTemplate.from_messages(
        [("system", "Answer from these documents: {context}"), ("human", "{question}")]
    )
    given = {
        "context": Shelf() | (lambda docs: "\n".join(d.page_content for d in docs)),
        "question": RunnablePassthrough(),
    }
    return given | prompt | llm | StrOutputParser()


def chain() -> None:
    chain_with(model("test_chat_completion_with_content")).invoke("When does my parcel come?")


def streaming() -> None:
    for _piece in chain_with(model("test_chat_completion_streaming", stream_usage=True)).stream("When does it come?"):
        pass


def agent() -> None:
    helper = create_agent(
        model("test_chat_completion_tool_calls_with_content"),
        [get_current_weather],
        system_prompt="You're a helpful assistant.",
    )
    helper.invoke({"messages": [{"role": "user", "content": "What's the weather in Seattle and San Francisco today?"}]})


if __name__ == "__main__":
    provider = traced.make_provider()
    LangChainInstrumentor().instrument(tracer_provider=provider)
    traced.main({f.__name__: f for f in (chain, streaming, agent)}, provider)
