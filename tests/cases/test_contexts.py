"""C019, C021, C022 and C121: threads, pools, requests from elsewhere, hundreds of calls at once, and what a metric is in."""

import asyncio
import contextvars
import functools
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import anyio.to_thread
import pytest
from opentelemetry import baggage, propagate
from opentelemetry import context as otel_context
from opentelemetry import trace as trace_api
from tests.cases.conftest import Product, output

import spangrade as sg
from spangrade import semconv as s
from spangrade.testing import event_scores

DOCUMENT = "Parcels arrive within three days."


@sg.trace(kind="retriever")
def retrieve(question: str) -> list[str]:
    return [DOCUMENT]


def carried(fn: Callable[..., Any]) -> Callable[..., Any]:
    """The one line that takes a call's context along into somebody else's thread."""
    return functools.partial(contextvars.copy_context().run, fn)


def by_submit(question: str) -> Any:
    with ThreadPoolExecutor(1) as pool:
        return pool.submit(retrieve, question).result()


def by_submit_carried(question: str) -> Any:
    with ThreadPoolExecutor(1) as pool:
        return pool.submit(carried(retrieve), question).result()


def by_map_carried(question: str) -> Any:
    with ThreadPoolExecutor(2) as pool:
        return next(iter(pool.map(carried(retrieve), [question])))


def _in_thread(fn: Callable[..., Any], question: str) -> Any:
    box: list[Any] = []
    thread = threading.Thread(target=lambda: box.append(fn(question)))
    thread.start()
    thread.join()
    return box[0]


def by_thread(question: str) -> Any:
    return _in_thread(retrieve, question)


def by_thread_carried(question: str) -> Any:
    return _in_thread(carried(retrieve), question)


async def by_run_in_executor(question: str) -> Any:
    return await asyncio.get_running_loop().run_in_executor(None, retrieve, question)


async def by_run_in_executor_carried(question: str) -> Any:
    return await asyncio.get_running_loop().run_in_executor(None, carried(retrieve), question)


async def by_to_thread(question: str) -> Any:
    return await asyncio.to_thread(retrieve, question)


async def by_anyio(question: str) -> Any:
    return await anyio.to_thread.run_sync(retrieve, question)


CARRIED = [by_submit_carried, by_map_carried, by_thread_carried, by_run_in_executor_carried, by_to_thread, by_anyio]
ALONE = [by_submit, by_thread, by_run_in_executor]


def ask(how: Callable[..., Any], question: str = "When?") -> Any:
    if asyncio.iscoroutinefunction(how):

        @sg.trace(name="rag")
        async def arag(question: str) -> str:
            return (await how(question))[0]

        return asyncio.run(arag(question))

    @sg.trace(name="rag")
    def rag(question: str) -> str:
        return how(question)[0]

    return rag(question)


@pytest.mark.parametrize("how", CARRIED)
def test_c019_a_tool_in_a_thread_that_was_given_the_context_is_part_of_the_answer(
    how: Callable[..., Any], product: Product
) -> None:
    assert ask(how) == DOCUMENT
    rag, found = product.only("rag"), product.only("retrieve")
    assert found.parent is not None
    assert (found.parent.span_id, found.context.trace_id) == (rag.context.span_id, rag.context.trace_id)
    (sample,) = product.samples
    assert [document["content"] for document in sample.documents] == [DOCUMENT]


@pytest.mark.parametrize("how", ALONE)
def test_c019_without_it_the_tool_is_a_root_and_nothing_breaks(how: Callable[..., Any], product: Product) -> None:
    assert ask(how) == DOCUMENT
    rag, found = product.only("rag"), product.only("retrieve")
    assert found.parent is None
    assert found.context.trace_id != rag.context.trace_id
    (sample,) = product.samples
    assert (sample.output, sample.documents) == (DOCUMENT, [])


@pytest.mark.parametrize("how", ["to_thread", "carried", "alone"])
def test_c019_documents_said_in_a_thread_reach_the_call_whose_context_it_has(how: str, product: Product) -> None:
    @sg.trace
    async def rag(question: str) -> str:
        if how == "to_thread":
            await asyncio.to_thread(sg.set_retrieval_documents, [DOCUMENT])
        else:
            say = carried(sg.set_retrieval_documents) if how == "carried" else sg.set_retrieval_documents
            with ThreadPoolExecutor(1) as pool:
                pool.submit(say, [DOCUMENT]).result()
        return "soon"

    asyncio.run(rag("When?"))
    (sample,) = product.samples
    assert [document["content"] for document in sample.documents] == ([] if how == "alone" else [DOCUMENT])


TRACEPARENT = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"


class Uncopyable:
    def __deepcopy__(self, memo: Any) -> Any:
        raise TypeError("cannot be copied")

    __copy__ = __reduce_ex__ = __deepcopy__  # type: ignore[assignment]


def test_c021_a_request_that_holds_contexts_locks_and_what_cannot_be_copied(product: Product) -> None:
    """It comes from another process with a traceparent, and is the first call in this one."""
    request = {
        "traceparent": TRACEPARENT,
        "context": contextvars.copy_context(),
        "otel": otel_context.get_current(),
        "lock": threading.Lock(),
        "held": Uncopyable(),
        "question": "When?",
    }

    @sg.trace
    def handle(request: dict[str, Any]) -> dict[str, Any]:
        assert trace_api.get_current_span().get_span_context().trace_id == int(TRACEPARENT[3:35], 16)
        sg.set_metadata(lock=request["lock"], held=request["held"])
        sg.set_context(otel=request["otel"])
        return request

    token = otel_context.attach(propagate.extract({"traceparent": TRACEPARENT}))
    try:
        assert handle(request) is request
    finally:
        otel_context.detach(token)
    span = product.only("handle")
    assert f"{span.context.trace_id:032x}" == TRACEPARENT[3:35]
    assert f"{span.parent.span_id:016x}" == TRACEPARENT[36:52]
    (sample,) = product.samples
    assert sample.input["question"] == sample.output["question"] == "When?"
    assert sample.metadata["lock"] == "<_thread.lock>"


def test_c021_a_request_that_was_sampled_out_elsewhere_works_and_is_not_scored(product: Product) -> None:
    @sg.trace
    def handle(question: str) -> str:
        sg.set_retrieval_documents([DOCUMENT])
        return question

    token = otel_context.attach(propagate.extract({"traceparent": TRACEPARENT[:-2] + "00"}))
    try:
        assert handle("When?") == "When?"
    finally:
        otel_context.detach(token)
    assert product.spans == []
    assert product.samples == []


def test_c022_two_hundred_calls_at_once_are_two_hundred_pairs(product: Product) -> None:
    @sg.trace(kind="llm")
    async def model(n: int) -> str:
        for _ in range(n % 7):
            await asyncio.sleep(0)
        return f"answer {n}"

    @sg.trace
    async def request(n: int) -> str:
        for _ in range(n % 5):
            await asyncio.sleep(0)
        return await model(n)

    async def main() -> list[str]:
        return await asyncio.gather(*(request(n) for n in range(200)))

    assert asyncio.run(main()) == [f"answer {n}" for n in range(200)]
    assert sorted((s.input, s.output) for s in product.samples) == [(n, f"answer {n}") for n in range(200)]
    roots = {span.context.span_id: span for span in product.named("request") if span.context is not None}
    inner = product.named("model")
    assert len({span.context.trace_id for span in roots.values() if span.context}) == len(inner) == 200
    for span in inner:
        assert span.parent is not None
        assert f"answer {output(roots[span.parent.span_id]).removeprefix('answer ')}" in str(
            dict(span.attributes or {})
        )


def test_c022_calls_of_one_trace_are_all_in_it(product: Product) -> None:
    product.configure(sg.metric(name="inner", target="llm")(lambda sample: 1))

    @sg.trace(kind="llm")
    def model(n: int) -> str:
        return f"answer {n}"

    @sg.trace
    async def agent(n: int) -> int:
        async with asyncio.TaskGroup() as group:
            for i in range(n):
                group.create_task(asyncio.to_thread(model, i))
        return n

    asyncio.run(agent(100))
    top = product.only("agent")
    found = product.named("model")
    assert len(found) == 100
    assert {span.parent.span_id for span in found if span.parent} == {top.context.span_id}
    assert {str(event_scores(span)["inner"][s.SCORE_VALUE]) for span in found} == {"1.0"}


REQUEST: contextvars.ContextVar[str] = contextvars.ContextVar("request", default="none")


def test_c121_a_metric_is_in_no_request_and_has_what_it_needs_in_its_sample(product: Product) -> None:
    """No span, context variable, thread-local value or baggage of the application is there."""
    local, seen = threading.local(), {}

    @sg.metric
    def looks_round(sample: sg.Sample) -> int:
        seen["thread"] = (
            trace_api.get_current_span().get_span_context().is_valid,
            REQUEST.get(),
            getattr(local, "user", None),
            dict(baggage.get_all()),
        )
        return 1

    @sg.metric
    async def looks_round_too(sample: sg.Sample) -> int:
        seen["loop"] = (
            trace_api.get_current_span().get_span_context().is_valid,
            REQUEST.get(),
            getattr(local, "user", None),
            dict(baggage.get_all()),
        )
        return 1

    @sg.trace
    def handle(question: str) -> str:
        REQUEST.set("r1")
        local.user = "ann"
        sg.set_session("s1", user="ann")
        sg.set_metadata(tenant="acme")
        sg.set_context(request="r1")
        return "soon"

    product.configure(looks_round, looks_round_too)
    token = otel_context.attach(baggage.set_baggage("tenant", "acme"))
    try:
        contextvars.copy_context().run(handle, "When?")
    finally:
        otel_context.detach(token)
    (sample,) = product.samples
    assert seen == {"thread": (False, "none", None, {}), "loop": (False, "none", None, {})}
    assert sample.trace_id == f"{product.only('handle').context.trace_id:032x}"
    assert (sample.context["session_id"], sample.context["user_id"]) == ("s1", "ann")
    assert (sample.metadata["tenant"], sample.context["request"]) == ("acme", "r1")
