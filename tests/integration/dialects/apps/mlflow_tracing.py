"""MLflow's tracing: ``@mlflow.trace``, and the clients of OpenAI and Anthropic by autolog; its own OTLP exporter, no server."""

import os

import anthropic_calls
import mlflow
import mlflow.anthropic
import mlflow.openai
import openai_calls
import rag
import traced
from mlflow.entities import Document

look = mlflow.trace(span_type="TOOL")(rag.look)


@mlflow.trace(span_type="RETRIEVER")
def find(question: str) -> list[Document]:
    return [Document(**found, id="d1") for found in rag.find(question)]


@mlflow.trace
def answer(question: str) -> str:
    find(question)
    look("Lisbon")
    return rag.ask(question)


def observed() -> None:
    answer("Which plug?")


if __name__ == "__main__":
    # With the variable for all signals it makes metrics, too, and for those it wants the whole of MLflow.
    os.environ["OTEL_EXPORTER_OTLP_TRACES_ENDPOINT"] = os.environ.pop("OTEL_EXPORTER_OTLP_ENDPOINT") + "/v1/traces"
    os.environ["OTEL_EXPORTER_OTLP_TRACES_PROTOCOL"] = "http/protobuf"
    mlflow.openai.autolog()
    mlflow.anthropic.autolog()
    mlflow.tracing.enable()
    from mlflow.tracing import provider as theirs

    mine = {"observed": observed, **{f"anthropic_{name}": run for name, run in anthropic_calls.SCENARIOS.items()}}
    traced.main({**openai_calls.SCENARIOS, **mine}, theirs.provider.get())
