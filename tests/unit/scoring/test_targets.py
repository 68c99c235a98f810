"""Which calls an evaluator scores: kinds, rules, one logical call once, evaluators' traffic never; in both hosts the same."""

from collections.abc import Callable
from typing import Any

import pytest

from spangrade import semconv as s
from spangrade.model.outcome import Outcome
from spangrade.model.sample import Sample
from spangrade.model.span import SpanData
from spangrade.scoring.seam import Offer, Ticket

from .hosts import HOSTS, Seen, in_agent, in_process

TRACE = 0x5EED
Trace = list[SpanData]
Run = Callable[..., list[tuple[str, Any]]]


def span(
    number: int,
    kind: str | None,
    start: int,
    end: int,
    under: int | None = None,
    scope: str = "one",
    name: str = "",
    **attributes: Any,
) -> SpanData:
    """Times in milliseconds; ``kind`` None: no call. Text under ``i`` and ``o``."""
    held: dict[str, Any] = {} if kind is None else {s.OI_KIND: kind.upper()}
    held |= {s.OI_INPUT: attributes.pop("i", None), s.OI_OUTPUT: attributes.pop("o", None)}
    held |= {key.replace("__", "."): value for key, value in attributes.items()}
    return SpanData(
        TRACE, number, under, name or f"s{number}", 10**18 + start * 10**6, 10**18 + end * 10**6,
        {key: value for key, value in held.items() if value is not None},
        scope_name=scope, parent_is_remote=None if under is None else False,
    )  # fmt: skip


@pytest.fixture
def run(harness: Any) -> Run:
    """The samples of a trace for a target as ``(span name, output)``, the same in both hosts and in every order."""

    def all_hosts(trace: Trace, target: Any) -> list[tuple[str, Any]]:
        found: list[list[Sample]] = []
        for host in HOSTS:
            seen = Seen(target)
            h = harness(seen.metric)
            host(h, trace)
            assert h.counts("seen").of(Outcome.SCORED) == h.counts("seen").met == len(seen.samples)
            found.append(
                sorted(seen.samples, key=lambda sample: (str(sample.context["span_name"]), str(sample.output)))
            )
        for other in found[1:]:
            assert other == found[0]
        return [(sample.context["span_name"], sample.output) for sample in found[0]]

    return all_hosts


RAG: Trace = [
    span(1, "chain", 0, 100, name="rag", i="q", o="a"),
    span(2, "retriever", 10, 20, 1, name="search", i="q", retrieval__documents__0__document__content="type F"),
    span(3, "llm", 30, 60, 1, name="chat", i="q", o="a"),
    span(4, "tool", 65, 70, 1, name="look", i="{}", o="found"),
    span(5, "agent", 75, 90, 1, name="clerk", i="q", o="done", tenant="acme", tags=("beta", "x"), safe=True),
]


@pytest.mark.parametrize(
    ("target", "names"),
    [
        ("root", ["rag"]),
        ("llm", ["chat"]),
        ("retriever", ["search"]),
        ("tool", ["look"]),
        ("agent", ["clerk"]),
        ("chain", ["rag"]),
        ("name = s*", ["search"]),
        ({"name": "?hat"}, ["chat"]),
        ("attributes.tenant = ac*", ["clerk"]),
        ({"attributes": {"tenant": "acme", "safe": True}}, ["clerk"]),
        ("attributes.tags = beta", ["clerk"]),
        ("kind = llm and name = c*", ["chat"]),
        ({"scope": "one"}, ["chat", "clerk", "look", "rag", "search"]),
        ({"attributes.tenant": "nobody"}, []),
    ],
)
def test_a_target_picks_its_calls(run: Run, target: Any, names: list[str]) -> None:
    assert [name for name, _ in run(RAG, target)] == names


def test_a_model_call_has_the_documents_that_were_found_before_it_in_every_order(harness: Any) -> None:
    """Also when nothing but model calls is asked for."""
    for seed in range(6):
        seen = Seen("llm")
        h = harness(seen.metric)
        in_agent(h, RAG, seed)
        assert [d["content"] for d in seen.samples[0].documents] == ["type F"]
    seen = Seen("llm")
    in_process(harness(seen.metric), RAG)
    assert [d["content"] for d in seen.samples[0].documents] == ["type F"]


def test_a_model_call_below_a_model_call_is_that_call_again(run: Run) -> None:
    """C070, C066: a framework's span, an HTTP span or a chain between, and the provider's. The outer one counts."""
    trace = [
        span(1, "agent", 0, 100, name="clerk"),
        span(2, "llm", 10, 50, 1, name="framework", i="again", o="Hello again"),
        span(3, None, 11, 49, 2, "http"),
        span(4, "llm", 12, 48, 3, "two", "provider", i="again", o="Hello again"),
        span(5, "chain", 60, 90, 2, "three", "step"),
    ]
    assert run(trace, "llm") == [("framework", "Hello again")]


def test_what_the_outer_one_does_not_say_the_inner_one_does(harness: Any) -> None:
    """Content capture is off for the framework."""
    trace = [
        span(2, "llm", 10, 50, name="framework", llm__model_name="gpt-x"),
        span(3, "llm", 12, 48, 2, "two", "provider", llm__input_messages__0__message__role="user",
             llm__input_messages__0__message__content="Hi", llm__output_messages__0__message__content="Hello"),
    ]  # fmt: skip
    for host in (in_process, in_agent):
        seen = Seen("llm")
        host(harness(seen.metric), trace)
        (sample,) = seen.samples
        assert (sample.input, sample.output, sample.context["span_name"]) == ("Hi", "Hello", "framework")
        assert sample.context["messages"] == [{"role": "user", "content": "Hi"}]
        assert sample.context["model"] == "gpt-x"


def test_a_model_call_that_a_tool_makes_is_another_call(run: Run) -> None:
    trace = [
        span(1, "llm", 0, 100, name="outer", i="q", o="a"),
        span(2, "tool", 10, 90, 1, name="look", i="{}", o="r"),
        span(3, "llm", 20, 80, 2, name="inner", i="q2", o="r"),
    ]
    assert [name for name, _ in run(trace, "llm")] == ["inner", "outer"]


def test_two_instrumentations_side_by_side_tell_one_call_and_the_first_to_end_counts(run: Run) -> None:
    """Siblings, or cousins: one of the two did not make its span the current one."""
    trace = [
        span(1, "chain", 0, 100, name="rag", i="q", o="a"),
        span(2, "chain", 5, 95, 1, name="step", i="q", o="b"),
        span(3, "llm", 10, 50, 1, "openinference", "outside", i="Hi", o="Hello"),
        span(4, "llm", 11, 49, 2, "traceloop", "inside", i=" Hi", o="Hello\n"),
    ]
    assert [name for name, _ in run(trace, "llm")] == ["inside"]


def test_the_same_response_id_says_it_whatever_the_text(run: Run) -> None:
    ids = {"gen_ai__response__id": "r1"}
    trace = [
        span(1, "chain", 0, 100, name="rag", i="q", o="a"),
        span(3, "llm", 10, 50, 1, "openinference", "outside", i="Hi", o="Hello", **ids),
        span(4, "llm", 11, 49, 1, "traceloop", "inside", **ids),
        span(5, "llm", 12, 48, 1, "traceloop", "other", i="Hi", o="Hello", gen_ai__response__id="r2"),
    ]
    assert [name for name, _ in run(trace, "llm")] == ["inside", "other"]


def test_equal_calls_made_side_by_side_stay_as_many_as_they_are(run: Run) -> None:
    """Three equal questions at once, each told by two instrumentations: three samples. By one instrumentation: three."""
    both = [span(1, "chain", 0, 100, name="rag", i="q", o="a")]
    for n in range(3):
        both.append(span(10 + n, "llm", 10 + n, 60 + n, 1, "a", f"a{n}", i="Hi", o="Hello"))
        both.append(span(20 + n, "llm", 11 + n, 50 + n, 1, "b", f"b{n}", i="Hi", o="Hello"))
    assert [name for name, _ in run(both, "llm")] == ["b0", "b1", "b2"]
    assert len(run([one for one in both if one.scope_name != "b"], "llm")) == 3


def test_calls_one_after_the_other_are_never_one(run: Run) -> None:
    trace = [
        span(1, "chain", 0, 100, name="rag", i="q", o="a"),
        span(3, "llm", 10, 20, 1, "a", "first", i="Hi", o="Hello"),
        span(4, "llm", 30, 40, 1, "b", "second", i="Hi", o="Hello"),
    ]
    assert [name for name, _ in run(trace, "llm")] == ["first", "second"]


def test_retrievers_and_tools_seen_twice_count_once(run: Run) -> None:
    """By their documents and results; an ensemble's inner retrievers are retrievals of their own."""
    found = {"retrieval__documents__0__document__content": "type F"}
    trace = [
        span(1, "chain", 0, 100, name="rag", i="q", o="a"),
        span(2, "retriever", 10, 40, 1, "langchain", "retriever", i="q", **found),
        span(3, "retriever", 11, 39, 2, "chroma", "query", i="q", **found),
        span(4, "retriever", 12, 20, 3, "bm25", "inner", i="other words", **found),
        span(5, "tool", 50, 60, 1, "adk", "execute_tool", i="{}", o="r"),
        span(6, "tool", 51, 59, 1, "mcp", "tools/call", i="{}", o="r"),
    ]
    assert [name for name, _ in run(trace, "retriever")] == ["inner", "query"]
    assert [name for name, _ in run(trace, "tool")] == ["tools/call"]


def test_a_rule_that_names_a_span_means_that_span(run: Run) -> None:
    """One that does not takes a call that is seen twice once."""
    trace = [
        span(2, "llm", 10, 50, None, "one", "framework", i="Hi", o="Hello", tenant="acme"),
        span(3, "llm", 12, 48, 2, "two", "provider", i="Hi", o="Hello", tenant="acme"),
    ]
    assert [name for name, _ in run(trace, {"name": "provider"})] == ["provider"]
    assert [name for name, _ in run(trace, "attributes.tenant = acme")] == ["framework"]
    assert len(run(trace, "name = *r*")) == 1


EVALUATORS = {
    "ours": {s.OI_KIND: "EVALUATOR"},
    "genai": {s.OPERATION_NAME: "evaluation"},
    "langfuse": {"langfuse.observation.type": "evaluator"},
    "trulens": {"ai.observability.span_type": "eval"},
}


@pytest.mark.parametrize("vendor", EVALUATORS)
@pytest.mark.parametrize("target", ["root", "llm", "chain", "name = *"])
def test_what_is_below_an_evaluator_is_never_scored(run: Run, vendor: str, target: str) -> None:
    """C083; with spans of no kind between, and the evaluator as the local root or below the application's call."""
    grade = SpanData(TRACE, 5, 1, "grade", 10**18 + 70 * 10**6, 10**18 + 99 * 10**6, EVALUATORS[vendor],
                     parent_is_remote=False)  # fmt: skip
    below = [
        span(6, None, 71, 98, 5),
        span(7, "chain", 72, 97, 6, name="judge chain", i="rate", o="5"),
        span(8, "llm", 73, 96, 7, name="judge", i="rate", o="5"),
    ]
    mine = [span(1, "chain", 0, 100, name="rag", i="q", o="a"), span(2, "llm", 10, 20, 1, name="chat", i="q", o="a")]
    names = {name for name, _ in run([*mine, grade, *below], target)}
    assert names == {"root": {"rag"}, "llm": {"chat"}, "chain": {"rag"}, "name = *": {"rag", "chat"}}[target]
    alone = SpanData(TRACE, 5, None, "grade", grade.start_ns, grade.end_ns, EVALUATORS[vendor])
    assert run([alone, *below], target) == []


def test_a_call_whose_local_root_never_comes_is_graded_at_a_flush_and_its_span_waits_for_nothing(harness: Any) -> None:
    seen = Seen("llm")
    h = harness(seen.metric)
    h.pipeline.offer(Offer(RAG[2], Ticket(), None, h.clock.monotonic()))
    assert h.pipeline.drain(5, judges=True)
    assert seen.names == ["chat"]
    assert h.sink.waiting == dict.fromkeys(h.sink.waiting, 0)


def test_spans_that_are_no_calls_do_not_part_a_call_from_what_is_above_it(run: Run, harness: Any) -> None:
    """Documents set by hand above, usage below: through an HTTP span, also where another call ran at the same time."""
    by_hand = {"gen_ai__retrieval__documents": '["hand"]'}
    trace = [
        span(1, "chain", 0, 100, name="rag", i="q", o="a"),
        span(2, "agent", 5, 95, 1, name="one", i="q", o="a", **by_hand),
        span(3, None, 10, 60, 2),
        span(4, "llm", 20, 50, 3, name="chat", i="q", o="a", llm__token_count__prompt=5),
        span(5, "agent", 6, 94, 1, name="other", i="q", o="b"),
    ]
    assert [name for name, _ in run(trace, "agent")] == ["one", "other"]
    for seed in range(3):
        seen = Seen("agent")
        in_agent(harness(seen.metric), trace, seed)
        usage = {sample.context["span_name"]: sample.context.get("usage") for sample in seen.samples}
        assert usage == {"one": {"input_tokens": 5}, "other": None}
        seen = Seen("llm")
        in_agent(harness(seen.metric), trace, seed)
        assert [document["content"] for document in seen.samples[0].documents] == ["hand"]
