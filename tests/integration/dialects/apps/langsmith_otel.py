"""LangSmith's OTel export: ``@traceable`` and its wrapper of OpenAI's client; nothing goes to LangSmith."""

import langsmith
import openai_calls
import rag
import traced
from langsmith import traceable
from langsmith.run_trees import get_cached_client
from langsmith.wrappers import wrap_openai
from opentelemetry import trace

find = traceable(run_type="retriever")(rag.find)
look = traceable(run_type="tool")(rag.look)


@traceable(metadata={"thread_id": "s1", "tier": "gold"}, tags=["a"])
def answer(question: str) -> str:
    find(question)
    look("Lisbon")
    return rag.ask(question)


def observed() -> None:
    answer("Which plug?")


def wrapped(cassette: str, plain=openai_calls.client):
    return wrap_openai(plain(cassette))


def sent(scenario):
    """Its spans are made when it sends, on another thread: before the next scenario begins."""

    def run() -> None:
        scenario()
        get_cached_client().flush()

    return run


if __name__ == "__main__":
    provider = traced.make_provider()
    trace.set_tracer_provider(provider)
    openai_calls.client = wrapped
    assert langsmith.__version__
    traced.main({name: sent(run) for name, run in {**openai_calls.SCENARIOS, "observed": observed}.items()}, provider)
