"""`trace`: the function behaves as if undecorated, and one span tells what it did."""

import asyncio
import inspect
import json
import pickle
from collections.abc import AsyncIterator, Iterator
from typing import Any

import pytest
from opentelemetry import trace as trace_api
from opentelemetry.trace import StatusCode

import spangrade as sg
from spangrade import semconv as s
from spangrade.testing import CollectingExporter, event_scores


@pytest.fixture
def spans(exporter: CollectingExporter) -> CollectingExporter:
    sg.configure(metrics=[length], exporter=exporter)
    return exporter


def length(sample: sg.Sample) -> int:
    return len(str(sample.output))


def only(spans: CollectingExporter, name: str | None = None) -> Any:
    assert sg.flush(5)
    found = spans.named(name) if name else spans.spans
    assert len(found) == 1, [sp.name for sp in spans.spans]
    return found[0]


def attributes(span: Any) -> dict[str, Any]:
    return dict(span.attributes)


@sg.trace
def module_level(question: str) -> str:
    """Docstring."""
    return question.upper()


# --- plain functions ------------------------------------------------------------------------------------------------------


def test_a_function_keeps_its_face_and_pickles_by_name() -> None:
    assert module_level.__name__ == "module_level"
    assert module_level.__doc__ == "Docstring."
    assert list(inspect.signature(module_level).parameters) == ["question"]
    assert pickle.loads(pickle.dumps(module_level)) is module_level


def test_input_and_output_are_recorded_once(spans: CollectingExporter) -> None:
    assert module_level("a") == "A"
    found = attributes(only(spans))
    assert (found[s.OI_INPUT], found[s.OI_INPUT_MIME]) == ("a", s.MIME_TEXT)
    assert found[s.OI_OUTPUT] == "A"
    assert s.INPUT_MESSAGES not in found


def test_several_arguments_become_a_dict_by_name(spans: CollectingExporter) -> None:
    @sg.trace
    def f(a: int, *rest: int, b: int = 1, **more: int) -> None: ...

    f(1, 2, 3, c=4)
    assert json.loads(attributes(only(spans))[s.OI_INPUT]) == {"a": 1, "rest": [2, 3], "c": 4}


def test_an_llm_call_is_written_as_messages(spans: CollectingExporter) -> None:
    @sg.trace(kind="llm", name="chat")
    def ask(messages: list[dict[str, str]]) -> str:
        return "Paris"

    ask([{"role": "system", "content": "Be brief"}, {"role": "user", "content": "Capital?"}])
    span = only(spans)
    found = attributes(span)
    assert found[s.OPERATION_NAME] == "chat"
    assert json.loads(found[s.INPUT_MESSAGES])[1] == {
        "role": "user",
        "parts": [{"type": "text", "content": "Capital?"}],
    }
    assert json.loads(found[s.OUTPUT_MESSAGES]) == [
        {"role": "assistant", "parts": [{"type": "text", "content": "Paris"}]}
    ]
    assert s.OI_INPUT not in found
    assert event_scores(span)["length"][s.SCORE_VALUE] == 5


def test_both_forms_on_request(spans: CollectingExporter, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SPANGRADE_SPAN_CONTENT", "both")
    sg.configure(metrics=[length])
    module_level("a")
    found = attributes(only(spans))
    assert found[s.OI_INPUT] == "a"
    assert "parts" in found[s.INPUT_MESSAGES]
    monkeypatch.delenv("SPANGRADE_SPAN_CONTENT")
    sg.configure()


def test_a_retrievers_result_is_its_documents(spans: CollectingExporter) -> None:
    @sg.trace(kind="retriever")
    def search(query: str) -> list[dict[str, Any]]:
        return [{"id": 1, "text": "Paris is in France.", "score": 0.5}]

    search("x")
    found = attributes(only(spans))
    assert json.loads(found[s.RETRIEVAL_DOCUMENTS]) == [{"content": "Paris is in France.", "id": "1", "score": 0.5}]
    assert s.OI_OUTPUT not in found


def test_an_exception_is_recorded_and_passed_on_as_it_is(spans: CollectingExporter) -> None:
    error = ValueError("no")

    @sg.trace
    def fails() -> None:
        raise error

    with pytest.raises(ValueError, match="no") as caught:
        fails()
    assert caught.value is error
    span = only(spans)
    assert span.status.status_code is StatusCode.ERROR
    assert span.events[0].attributes["exception.message"] == "no"


def test_methods_of_every_sort(spans: CollectingExporter) -> None:
    class Bot:
        @sg.trace
        def method(self, q: str) -> str:
            return "m" + q

        @classmethod
        @sg.trace
        def inner_class(cls, q: str) -> str:
            return "c" + q

        @sg.trace()
        @staticmethod
        def outer_static(q: str) -> str:
            return "s" + q

    bot = Bot()
    assert (bot.method("1"), Bot.inner_class("2"), bot.outer_static("3")) == ("m1", "c2", "s3")
    assert sg.flush(5)
    assert [attributes(sp)[s.OI_INPUT] for sp in spans.spans] == ["1", "2", "3"]


def test_as_a_context_manager_sync_and_async(spans: CollectingExporter) -> None:
    with sg.trace(name="lookup", kind="tool"):
        sg.set_input("q")
        sg.set_output({"rows": 3})
    span = only(spans, "lookup")
    assert attributes(span)[s.TOOL_NAME] == "lookup"
    assert attributes(span)[s.OI_OUTPUT] == '{"rows":3}'

    async def main() -> None:
        async with sg.trace("block"):
            await asyncio.sleep(0)

    asyncio.run(main())
    only(spans, "block")


def test_one_block_may_be_entered_by_many_tasks_at_once(spans: CollectingExporter) -> None:
    block = sg.trace("shared")

    async def work(n: int) -> None:
        async with block:
            await asyncio.sleep(0)
            sg.set_output(n)
            with block:
                sg.set_output(-n)

    async def main() -> None:
        await asyncio.gather(*(work(n) for n in range(1, 6)))
        assert not trace_api.get_current_span().get_span_context().is_valid

    asyncio.run(main())
    assert sg.flush(5)
    outputs = sorted(int(attributes(sp)[s.OI_OUTPUT]) for sp in spans.named("shared"))
    assert outputs == [-5, -4, -3, -2, -1, 1, 2, 3, 4, 5]


def test_a_block_inside_a_generator_that_is_closed_in_another_context_still_ends(
    spans: CollectingExporter, caplog: pytest.LogCaptureFixture
) -> None:
    async def stream() -> AsyncIterator[str]:
        async with sg.trace("inside"):
            yield "a"
            yield "b"

    async def main() -> None:
        generator = stream()
        await asyncio.create_task(anext(generator))  # type: ignore[arg-type]
        await asyncio.create_task(generator.aclose())  # type: ignore[attr-defined]

    asyncio.run(main())
    only(spans, "inside")
    assert not [r for r in caplog.records if r.levelname == "ERROR"]


def test_an_unknown_kind_or_a_class_is_refused_in_words() -> None:
    with pytest.raises(sg.ConfigError, match="kind 'llmm' is not one of llm, retriever"):
        sg.trace(kind="llmm")  # type: ignore[call-overload]
    with pytest.raises(sg.ConfigError, match="decorate its methods"):

        @sg.trace
        class Bot: ...


# --- async and streams ----------------------------------------------------------------------------------------------------


def test_coroutines_nest_and_stay_coroutine_functions(spans: CollectingExporter) -> None:
    @sg.trace(kind="tool")
    async def inner(n: int) -> int:
        await asyncio.sleep(0)
        return n

    @sg.trace
    async def outer(q: str) -> list[int]:
        return list(await asyncio.gather(*(inner(n) for n in range(20))))

    assert inspect.iscoroutinefunction(outer)
    assert asyncio.run(outer("q")) == list(range(20))
    assert sg.flush(5)
    top = next(sp for sp in spans.spans if sp.name.endswith("outer"))
    below = [sp for sp in spans.spans if sp.name.endswith("inner")]
    assert len(below) == 20
    assert top.context is not None
    assert {sp.parent.span_id for sp in below if sp.parent} == {top.context.span_id}


def test_a_cancelled_coroutine_ends_its_span_without_an_error(spans: CollectingExporter) -> None:
    @sg.trace
    async def waits(q: str) -> None:
        await asyncio.Event().wait()

    async def main() -> None:
        task = asyncio.create_task(waits("q"))
        await asyncio.sleep(0)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(main())
    span = only(spans)
    assert span.status.status_code is StatusCode.UNSET
    assert attributes(span)[s.ENDED] == "cancelled"


@sg.trace
def numbers(n: int) -> Iterator[str]:
    for i in range(n):
        yield str(i)


@sg.trace
async def anumbers(n: int) -> AsyncIterator[str]:
    for i in range(n):
        yield str(i)


def test_a_generator_is_one_call_with_the_joined_text(spans: CollectingExporter) -> None:
    assert inspect.isgeneratorfunction(numbers)
    assert list(numbers(4)) == ["0", "1", "2", "3"]
    span = only(spans)
    found = attributes(span)
    assert (found[s.OI_OUTPUT], found[s.ENDED]) == ("0123", "complete")
    assert found[s.TIME_TO_FIRST_CHUNK] >= 0
    assert event_scores(span)["length"][s.SCORE_VALUE] == 4


@pytest.mark.parametrize("way", ["break", "close", "throw"])
def test_a_generator_left_early_ends_its_span_with_what_there_was(way: str, spans: CollectingExporter) -> None:
    stream = numbers(10)
    assert [next(stream), next(stream)] == ["0", "1"]
    if way == "break":
        del stream
    elif way == "close":
        stream.close()  # type: ignore[attr-defined]
    else:
        with pytest.raises(KeyError):
            stream.throw(KeyError("mine"))  # type: ignore[attr-defined]
    span = only(spans)
    found = attributes(span)
    assert found[s.OI_OUTPUT] == "01"
    assert found[s.ENDED] == ("error" if way == "throw" else "closed")
    assert span.status.status_code is (StatusCode.ERROR if way == "throw" else StatusCode.UNSET)


def test_a_generator_never_started_leaves_nothing_open(spans: CollectingExporter) -> None:
    for _ in range(1000):
        numbers(3)
    assert sg.flush(5)
    assert spans.spans == []


def test_send_throw_and_return_values_pass_through(spans: CollectingExporter) -> None:
    @sg.trace
    def echo() -> Any:
        got = []
        try:
            while True:
                got.append((yield len(got)))
        except LookupError:
            return got

    gen = echo()
    assert next(gen) == 0
    assert gen.send("a") == 1
    with pytest.raises(StopIteration) as stop:
        gen.throw(LookupError())
    assert stop.value.value == ["a"]
    only(spans)


def test_a_stream_is_not_current_in_its_consumer(spans: CollectingExporter) -> None:
    for _ in numbers(2):
        assert not trace_api.get_current_span().get_span_context().is_valid
        with trace_api.get_tracer("app").start_as_current_span("consumer"):
            pass
    assert sg.flush(5)
    assert all(sp.parent is None for sp in spans.named("consumer"))


@pytest.mark.parametrize("way", ["all", "break", "aclose", "cancel"])
def test_async_generators_end_once_whatever_the_way(
    way: str, spans: CollectingExporter, caplog: pytest.LogCaptureFixture
) -> None:
    async def main() -> None:
        stream = anumbers(5)
        if way == "all":
            assert [item async for item in stream] == ["0", "1", "2", "3", "4"]
        elif way == "break":
            async for item in stream:
                if item == "1":
                    break
        elif way == "aclose":
            await anext(stream)
            await anext(stream)
            await stream.aclose()  # type: ignore[attr-defined]
        else:

            async def consume() -> None:
                async for item in stream:
                    if item == "1":
                        await asyncio.Event().wait()

            task = asyncio.create_task(consume())
            for _ in range(10):
                await asyncio.sleep(0)
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task

    assert inspect.isasyncgenfunction(anumbers)
    asyncio.run(main())
    span = only(spans)
    assert attributes(span)[s.OI_OUTPUT] == ("01234" if way == "all" else "01")
    assert span.status.status_code is StatusCode.UNSET
    assert not [r for r in caplog.records if r.levelname == "ERROR"]


def test_each_step_of_a_stream_may_run_in_another_task(
    spans: CollectingExporter, caplog: pytest.LogCaptureFixture
) -> None:
    async def main() -> list[str]:
        stream = anumbers(3)
        return [await asyncio.create_task(stream.__anext__()) for _ in range(3)]  # type: ignore[arg-type]

    assert asyncio.run(main()) == ["0", "1", "2"]
    assert sg.flush(5)
    assert not [r for r in caplog.records if r.levelname == "ERROR"]


def test_a_function_that_returns_a_generator_or_coroutine_is_followed_to_its_end(spans: CollectingExporter) -> None:
    @sg.trace
    def returns_generator(q: str) -> Iterator[str]:
        return (c for c in q)

    @sg.trace
    def returns_coroutine(q: str) -> Any:
        async def later() -> str:
            await asyncio.sleep(0)
            return q

        return later()

    assert "".join(returns_generator("abc")) == "abc"
    assert asyncio.run(returns_coroutine("xyz")) == "xyz"
    assert sg.flush(5)
    assert [attributes(sp)[s.OI_OUTPUT] for sp in spans.spans] == ["abc", "xyz"]


# --- setters --------------------------------------------------------------------------------------------------------------


def test_setters_say_it_better_than_what_was_captured(spans: CollectingExporter) -> None:
    seen: list[sg.Sample] = []

    def look(sample: sg.Sample) -> int:
        seen.append(sample)
        return 1

    sg.configure(metrics=[look])

    @sg.trace
    def f(request: object) -> object:
        sg.set_input("question")
        sg.set_output("reply")
        sg.set_metadata({"tenant": "a"}, version=2)
        sg.set_metadata(tenant="b")
        sg.set_context(flag=True)
        sg.set_session("s1", user="u1")
        sg.set_retrieval_documents(["one", ("two", 0.5)])
        return object()

    f(object())
    assert sg.flush(5)
    (sample,) = seen
    assert (sample.input, sample.output) == ("question", "reply")
    assert sample.metadata["tenant"] == "b"
    assert sample.metadata["version"] == 2
    assert sample.context["flag"] is True
    assert sample.context["session_id"] == "s1"
    assert sample.context["user_id"] == "u1"
    assert [d["content"] for d in sample.documents] == ["one", "two"]


def test_documents_of_an_inner_call_are_seen_by_the_roots_sample(spans: CollectingExporter) -> None:
    seen: list[Any] = []
    sg.configure(metrics=[lambda sample: seen.append((sample.documents, sample.context.get("searched"))) or 1])

    @sg.trace(kind="retriever")
    def search(q: str) -> list[str]:
        return ["found"]

    @sg.trace
    def rag(q: str) -> str:
        search(q)
        return "x"

    @sg.trace
    def searched_in_vain(q: str) -> str:
        sg.set_retrieval_documents([])
        return "x"

    @sg.trace
    def never_searched(q: str) -> str:
        return "x"

    rag("q")
    searched_in_vain("q")
    never_searched("q")
    assert sg.flush(5)
    assert seen[0][0][0]["content"] == "found"
    assert (seen[1], seen[2]) != (seen[2], seen[1])
    assert seen[1][0] == seen[2][0] == []
    assert seen[1][1] is True


def test_a_setter_outside_of_a_call_warns_once(caplog: pytest.LogCaptureFixture, spans: CollectingExporter) -> None:
    for _ in range(3):
        sg.set_retrieval_documents(["x"])
    assert sum("outside of any traced call" in r.getMessage() for r in caplog.records) == 1


def test_a_setter_on_a_foreign_span_reaches_it(spans: CollectingExporter) -> None:
    with trace_api.get_tracer("other").start_as_current_span("GET"):
        sg.set_metadata(tenant="t")
    assert attributes(only(spans))[s.OI_METADATA] == '{"tenant":"t"}'


# --- no harm --------------------------------------------------------------------------------------------------------------


class Hostile:
    def __repr__(self) -> str:
        raise RuntimeError("no repr for you")

    def __getattr__(self, name: str) -> Any:
        raise RuntimeError(name)

    def __eq__(self, other: object) -> bool:
        raise ValueError

    def __bool__(self) -> bool:
        raise ValueError

    __hash__ = None  # type: ignore[assignment]


def test_values_that_fight_back_pass_untouched(spans: CollectingExporter) -> None:
    @sg.trace
    def f(x: object) -> object:
        return x

    cyclic: list[Any] = []
    cyclic.append(cyclic)
    things = [
        Hostile(),
        cyclic,
        10**5000,
        float("nan"),
        b"\xff",
        "\ud83d",
        {"a": {1, 2}},
        range(10**12),
        "x" * 5_000_000,
    ]
    for thing in things:
        assert f(thing) is thing
    assert sg.flush(10)
    assert len(spans.spans) == len(things)
    for span in spans.spans:
        for value in (span.attributes or {}).values():
            str(value).encode()
            assert len(str(value)) <= 1_100_000


def test_a_fault_of_ours_reaches_nobody(
    spans: CollectingExporter, monkeypatch: pytest.MonkeyPatch, swallowed_faults: list[Any]
) -> None:
    from spangrade.tracing import capture

    def broken(*_: object) -> None:
        raise RuntimeError("a bug of ours")

    for step in ("write_input", "write_output", "frozen_input", "frozen_output"):
        monkeypatch.setattr(capture, step, broken)
    assert module_level("a") == "A"
    assert list(numbers(2)) == ["0", "1"]
    assert {where for where, _ in swallowed_faults} >= {"trace.input", "trace.output"}
    swallowed_faults.clear()
