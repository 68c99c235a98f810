"""LlamaIndex, traced by openinference-instrumentation-llama-index: a query engine over nodes in memory, its embeddings a
fixed rule, its model an OpenAI-compatible server."""

import traced
from llama_index.core import Settings, VectorStoreIndex
from llama_index.core.embeddings import MockEmbedding
from llama_index.core.llms import ChatMessage
from llama_index.core.schema import TextNode
from llama_index.llms.openai_like import OpenAILike
from openinference.instrumentation.llama_index import LlamaIndexInstrumentor

NODES = [
    TextNode(text="Parcels arrive within three working days.", id_="d1", metadata={"source": "faq.md"}),
    TextNode(text="Returns are free.", id_="d2", metadata={"source": "faq.md"}),
]


def model(cassette: str) -> OpenAILike:
    return OpenAILike(
        model="gpt-4o-mini",
        api_base=traced.replayed("openai", cassette, "/v1"),
        api_key="unused",
        is_chat_model=True,
        is_function_calling_model=True,
        max_retries=0,
    )


def query() -> None:
    index = VectorStoreIndex(NODES, embed_model=MockEmbedding(embed_dim=8))
    engine = index.as_query_engine(llm=model("test_chat_completion_with_content"), similarity_top_k=2)
    engine.query("When does my parcel come?")


def chat() -> None:
    model("test_chat_completion_with_content").chat(
        [
            ChatMessage(role="system", content="You are a parrot."),
            ChatMessage(role="user", content="Say this is a test"),
        ]
    )


def streaming() -> None:
    for _piece in model("test_chat_completion_streaming").stream_chat([ChatMessage(role="user", content="Say it")]):
        pass


if __name__ == "__main__":
    Settings.llm = None
    provider = traced.make_provider()
    LlamaIndexInstrumentor().instrument(tracer_provider=provider)
    traced.main({f.__name__: f for f in (query, chat, streaming)}, provider)
