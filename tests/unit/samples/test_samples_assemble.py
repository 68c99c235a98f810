"""Root assembly, documents, and the context."""

import random
from collections.abc import Callable
from typing import Any

import pytest

from spangrade import semconv
from spangrade.model.sample import Sample
from spangrade.samples.assemble import root_sample, sample_of
from spangrade.samples.reading import Call

CallOf = Callable[..., Call]


class Group:
    """Calls of one trace by name; times in milliseconds."""

    def __init__(self, call_of: CallOf) -> None:
        self._call_of = call_of
        self.calls: dict[str, Call] = {}

    def add(
        self, name: str, kind: str, start: int, end: int, under: str | None = None, attributes: Any = None, **more: Any
    ) -> Call:
        """One call; content by default."""
        parent = self.calls[under].span.span_id if under else more.pop("parent", None)
        given = {"openinference.span.kind": kind.upper(), "input.value": f"{name} in", "output.value": f"{name} out"}
        call = self._call_of(
            given | (attributes or {}),
            name=name,
            span_id=len(self.calls) + 1,
            parent_span_id=parent,
            start_ns=10**18 + start * 10**6,
            end_ns=10**18 + end * 10**6,
            **more,
        )
        self.calls[name] = call
        return call

    def root(self, *tops: str, **more: Any) -> Sample:
        found = root_sample([self.calls[name] for name in tops], list(self.calls.values()), **more)
        assert found is not None
        return found[1]


@pytest.fixture
def group(call_of: CallOf) -> Group:
    return Group(call_of)


def documents(*texts: str) -> dict[str, Any]:
    return {f"retrieval.documents.{n}.document.content": text for n, text in enumerate(texts)}


def texts(sample: Sample) -> list[str]:
    return [document["content"] for document in sample.documents]


BARE = {"input.value": None, "output.value": None}


def test_one_top_gives_input_and_output(group: Group) -> None:
    """What is below it does not."""
    group.add("rag", "chain", 0, 100)
    group.add("chat", "llm", 10, 90, "rag")
    sample = group.root("rag")
    assert (sample.input, sample.output) == ("rag in", "rag out")
    assert sample.context["span_name"] == "rag"
    assert sample.context["duration_s"] == 0.1


def test_several_tops_give_the_first_input_and_the_last_output(group: Group) -> None:
    """Under an entry without content. The last to end carries the score, however long it began before."""
    group.add("answer", "llm", 5, 90, parent=99)
    group.add("rewrite", "llm", 0, 4, parent=99)
    group.add("title", "llm", 10, 50, parent=99)
    found = root_sample(list(group.calls.values()), [])
    assert found is not None
    carrier, sample = found
    assert carrier.span.name == "answer"
    assert (sample.input, sample.output) == ("rewrite in", "answer out")
    assert sample.context["duration_s"] == 0.09


def test_tops_of_other_kinds_are_never_root(group: Group) -> None:
    """A retriever beside the model call has the documents, not the answer."""
    group.add("search", "retriever", 0, 5, attributes=documents("F"))
    group.add("chat", "llm", 6, 10)
    sample = group.root("search", "chat")
    assert (sample.input, texts(sample)) == ("chat in", ["F"])
    assert root_sample([group.calls["search"]], []) is None


def test_a_top_without_content_leaves_both_to_what_is_below(group: Group) -> None:
    """An agent whose content is not captured, with model calls whose content is."""
    group.add("agent", "agent", 0, 100, attributes=BARE)
    group.add("one", "llm", 1, 10, "agent")
    group.add("two", "llm", 20, 90, "agent")
    found = root_sample([group.calls["agent"]], list(group.calls.values()))
    assert found is not None
    assert found[0].span.name == "agent"
    assert (found[1].input, found[1].output) == ("one in", "two out")


def test_a_top_with_an_input_but_no_output_has_no_output(group: Group) -> None:
    """A call that failed, or returned None, did not give its model's answer."""
    group.add("rag", "chain", 0, 100, attributes={"output.value": None}, status="error")
    group.add("chat", "llm", 10, 90, "rag")
    sample = group.root("rag")
    assert (sample.output, sample.context["status"]) == (None, "error")


def test_an_answer_below_a_failed_top_without_content_is_not_its_answer(group: Group) -> None:
    """Nobody knows that it reached the user."""
    group.add("rag", "chain", 0, 100, attributes=BARE, status="error")
    group.add("chat", "llm", 10, 90, "rag")
    assert group.root("rag").output is None


def test_documents_of_the_last_retrieval_that_ended_before_the_last_model_call(group: Group) -> None:
    """Not of one for the call before, nor of one after."""
    group.add("agent", "agent", 0, 100)
    group.add("first", "retriever", 1, 5, "agent", documents("A"))
    group.add("think", "llm", 6, 10, "agent")
    group.add("second", "retriever", 11, 15, "agent", documents("B"))
    group.add("answer", "llm", 20, 30, "agent")
    group.add("later", "retriever", 40, 50, "agent", documents("C"))
    sample = group.root("agent")
    assert texts(sample) == ["B"]
    assert [r["name"] for r in sample.context["retrievals"]] == ["first", "later"]
    assert sample.context["retrievals"][0] == {
        "name": "first", "kind": "retriever", "query": "first in", "documents": [{"content": "A"}],
    }  # fmt: skip


def test_documents_found_while_the_only_model_call_ran(group: Group) -> None:
    """A traced function of kind llm that searches inside itself."""
    group.add("llm", "llm", 0, 100)
    group.add("search", "retriever", 10, 20, "llm", documents("A"))
    assert texts(group.root("llm")) == ["A"]


def test_without_a_model_call_the_last_retrieval_counts(group: Group) -> None:
    """The model is not instrumented."""
    group.add("rag", "chain", 0, 100)
    group.add("search", "retriever", 10, 20, "rag", documents("A"))
    group.add("rerank", "reranker", 30, 40, "rag", {"reranker.output_documents.0.document.content": "B"})
    assert texts(group.root("rag")) == ["B"]


def test_documents_set_by_hand_come_first(group: Group) -> None:
    """On the top; else on the innermost call, the last to start."""
    by_hand = {"gen_ai.retrieval.documents": '["hand"]'}
    group.add("rag", "chain", 0, 100)
    group.add("search", "retriever", 1, 5, "rag", documents("found"))
    group.add("outer", "chain", 6, 90, "rag", {"gen_ai.retrieval.documents": '["outer"]'})
    group.add("inner", "chain", 7, 80, "outer", by_hand)
    group.add("chat", "llm", 20, 30, "inner")
    assert texts(group.root("rag")) == ["hand"]
    assert [r["name"] for r in group.root("rag").context["retrievals"]] == ["search"]
    group.calls["rag"] = group.add("rag", "chain", 0, 100, attributes={"gen_ai.retrieval.documents": "[]"})
    assert texts(group.root("rag")) == []
    assert group.root("rag").context["searched"] is True


def test_searched_and_found_nothing_differs_from_never_searched(group: Group) -> None:
    """C057."""
    group.add("rag", "chain", 0, 100)
    assert "searched" not in group.root("rag").context
    group.add("search", "retriever", 1, 5, "rag", {"output.value": "[]", "output.mime_type": "application/json"})
    sample = group.root("rag")
    assert (texts(sample), sample.context["searched"]) == ([], True)


def test_a_retriever_that_says_nothing_does_not_hide_one_that_does(group: Group) -> None:
    """It searched, but what it found is not known."""
    group.add("rag", "chain", 0, 100)
    group.add("search", "retriever", 1, 5, "rag", documents("A"))
    group.add("mute", "retriever", 6, 9, "rag", {"output.value": None})
    group.add("chat", "llm", 10, 20, "rag")
    assert texts(group.root("rag")) == ["A"]


def test_a_tool_can_be_the_retrieval(group: Group) -> None:
    """Search as a tool, its documents set by hand inside."""
    group.add("agent", "agent", 0, 100)
    group.add("search", "tool", 1, 5, "agent", {"gen_ai.retrieval.documents": '["A"]'})
    group.add("chat", "llm", 10, 20, "agent")
    assert texts(group.root("agent")) == ["A"]


def test_the_conversation_is_that_of_the_last_model_call(group: Group) -> None:
    """Model and system too, where the top has none."""
    talk = {"gen_ai.input.messages": '[{"role": "system", "content": "S"}, {"role": "user", "content": "Q"}]'}
    group.add("rag", "chain", 0, 100)
    group.add("rewrite", "llm", 1, 5, "rag", {"llm.model_name": "small"})
    group.add("chat", "llm", 10, 20, "rag", talk | {"llm.model_name": "large"})
    context = group.root("rag").context
    assert (context["model"], context["system"]) == ("large", "S")
    assert context["messages"] == [{"role": "system", "content": "S"}, {"role": "user", "content": "Q"}]


def test_usage_is_the_sum_of_the_model_calls_each_once(group: Group) -> None:
    """C070: not the agent's total; of nested model calls the outer, or the inner where the outer is silent."""

    def tokens(prompt: int, completion: int) -> dict[str, int]:
        return {"llm.token_count.prompt": prompt, "llm.token_count.completion": completion}

    group.add("agent", "agent", 0, 100, attributes={"gen_ai.usage.input_tokens": 999})
    group.add("one", "llm", 1, 5, "agent", tokens(10, 1))
    group.add("two", "llm", 6, 9, "agent", tokens(20, 2))
    group.add("two again", "llm", 7, 8, "two", tokens(20, 2))
    group.add("silent", "llm", 10, 15, "agent")
    group.add("inside", "llm", 11, 14, "silent", tokens(30, 3))
    assert group.root("agent").context["usage"] == {"input_tokens": 60, "output_tokens": 6}


def test_an_agents_own_total_counts_when_no_model_call_is_seen(group: Group) -> None:
    """And of nested totals only the outer one."""
    group.add("outer", "agent", 0, 100, attributes={"gen_ai.usage.input_tokens": 113})
    group.add("inner", "agent", 1, 50, "outer", {"gen_ai.usage.input_tokens": 113})
    assert group.root("outer").context["usage"] == {"input_tokens": 113}


def test_tool_calls_meet_their_results(group: Group) -> None:
    """From tool spans by id or by name, from tool messages by id; a tool nobody asked for is there too."""
    asked = {
        "gen_ai.output.messages": '[{"role": "assistant", "parts": ['
        '{"type": "tool_call", "id": "c1", "name": "plugs", "arguments": {"city": "Lisbon"}},'
        '{"type": "tool_call", "name": "trams"}, {"type": "tool_call", "id": "c3", "name": "rain"}]}]'
    }
    told = {"gen_ai.input.messages": '[{"role": "tool", "tool_call_id": "c3", "content": "dry"}]'}
    group.add("agent", "agent", 0, 100)
    group.add("think", "llm", 1, 5, "agent", asked)
    group.add("plugs", "tool", 6, 8, "agent", {"tool.name": "plugs", "tool.id": "c1", "output.value": "type F"})
    group.add("trams", "tool", 6, 9, "agent", {"tool.name": "trams", "output.value": "late"})
    group.add("clock", "tool", 9, 10, "agent", {"output.value": "noon"})
    group.add("answer", "llm", 11, 20, "agent", told)
    assert group.root("agent").context["tool_calls"] == [
        {"id": "c1", "name": "plugs", "arguments": {"city": "Lisbon"}, "result": "type F"},
        {"name": "trams", "arguments": "trams in", "result": "late"},
        {"id": "c3", "name": "rain", "result": "dry"},
        {"name": "clock", "arguments": "clock in", "result": "noon"},
    ]


def test_what_the_application_said_is_in_context_and_metadata(group: Group) -> None:
    """set_context of inner calls too, the outer one last; a name of ours is ours; metadata is the top's."""
    group.add("rag", "chain", 0, 100, None, {semconv.CONTEXT: '{"a": 1, "kind": "mine"}', "metadata": '{"m": 1}'})
    group.add("chat", "llm", 1, 5, "rag", {semconv.CONTEXT: '{"a": 2, "b": 3}', "metadata": '{"noise": 1}'})
    sample = group.root("rag")
    assert (sample.context["a"], sample.context["b"], sample.context["kind"]) == (1, 3, "chain")
    assert sample.metadata == {"m": 1}


def test_session_and_user_are_found_anywhere_in_the_group(group: Group) -> None:
    """The top's own come first."""
    group.add("rag", "chain", 0, 100, None, {"user.id": "u1"})
    group.add("chat", "llm", 1, 5, "rag", {"user.id": "u2", "session.id": "s2"})
    context = group.root("rag").context
    assert (context["user_id"], context["session_id"]) == ("u1", "s2")


def test_truncated_when_a_source_was(group: Group) -> None:
    """A retrieval that lost attributes makes the sample incomplete; an unused one does not."""
    group.add("rag", "chain", 0, 100)
    group.add("unused", "retriever", 1, 2, "rag", documents("A"), dropped_attributes=3)
    group.add("search", "retriever", 3, 5, "rag", documents("B"))
    group.add("chat", "llm", 10, 20, "rag")
    assert "truncated" not in group.root("rag").context
    group.add("search2", "retriever", 6, 8, "rag", documents("C"), dropped_attributes=40)
    context = group.root("rag").context
    assert (context["truncated"], context["dropped_attributes"]) == (True, 40)


def test_partial_is_said(group: Group) -> None:
    """When not everything had arrived."""
    group.add("rag", "chain", 0, 100)
    assert group.root("rag", partial=True).context["assembly"] == "partial"
    assert "assembly" not in group.root("rag").context


def test_evaluators_are_no_part_of_it(group: Group) -> None:
    """Nor what is below one."""
    group.add("rag", "chain", 0, 100)
    group.add("grade", "evaluator", 10, 200, parent=1)
    group.add("judge", "llm", 11, 190, "grade", {"llm.token_count.prompt": 500, "llm.model_name": "judge"})
    context = group.root("rag", "grade").context
    assert "usage" not in context
    assert "model" not in context


def test_a_resent_span_is_one_call(group: Group) -> None:
    """C094."""
    group.add("rag", "chain", 0, 100)
    call = group.add("chat", "llm", 1, 5, "rag", {"llm.token_count.prompt": 5})
    found = root_sample([group.calls["rag"]] * 2, [call] * 29)
    assert found is not None
    assert found[1].context["usage"] == {"input_tokens": 5}


def test_one_call_alone(group: Group) -> None:
    """sample_of: its own content; documents and tool results from its group."""
    group.add("rag", "chain", 0, 100)
    group.add("search", "retriever", 1, 5, "rag", documents("A"))
    chat = group.add("chat", "llm", 10, 20, "rag", {"llm.token_count.prompt": 5})
    group.add("later", "retriever", 30, 40, "rag", documents("B"))
    everything = list(group.calls.values())
    sample = sample_of(chat, everything)
    assert (sample.input, sample.output, texts(sample)) == ("chat in", "chat out", ["A"])
    assert sample.context["usage"] == {"input_tokens": 5}
    assert texts(sample_of(chat)) == []
    assert texts(sample_of(group.calls["later"], everything)) == ["B"]
    assert texts(sample_of(group.calls["rag"], everything)) == ["A"]


def test_a_model_call_has_the_documents_set_on_the_call_above_it(group: Group) -> None:
    """They are what it was given."""
    group.add("rag", "chain", 0, 100, None, {"gen_ai.retrieval.documents": '["hand"]'})
    chat = group.add("chat", "llm", 10, 20, "rag")
    assert texts(sample_of(chat, list(group.calls.values()))) == ["hand"]


def test_a_tool_has_its_own_documents(group: Group) -> None:
    """Not those of a retrieval before it."""
    group.add("agent", "agent", 0, 100)
    group.add("search", "retriever", 1, 5, "agent", documents("A"))
    tool = group.add("tool", "tool", 6, 9, "agent", {"gen_ai.retrieval.documents": '["B"]'})
    assert texts(sample_of(tool, list(group.calls.values()))) == ["B"]


def test_retrievals_are_bounded_together(group: Group) -> None:
    """What did not fit is counted."""
    group.add("rag", "chain", 0, 100, attributes={"gen_ai.retrieval.documents": '["hand"]'})
    for n in range(60):
        group.add(f"r{n}", "retriever", n, n + 1, "rag", documents("x" * 10_000, "y"))
    retrievals = group.root("rag").context["retrievals"]
    assert len(retrievals) == 50
    assert retrievals[0]["documents"][1] == {"content": "y"}
    assert retrievals[-1] == {
        "name": "r59", "kind": "retriever", "query": "r59 in", "documents": [], "documents_given": 2,
    }  # fmt: skip


def test_documents_that_were_cut_say_so(group: Group) -> None:
    """C059: given and kept."""
    held = '[{"content": "A", "metadata": {"spangrade.cut": {"given": 300, "kept": 1}}}]'
    group.add("rag", "chain", 0, 100, attributes={"gen_ai.retrieval.documents": held})
    assert group.root("rag").context["documents_cut"] == {"given": 300, "kept": 1}


def test_a_call_below_a_span_that_is_no_call_still_belongs_to_the_agent_around_it(group: Group) -> None:
    """The link is broken by an HTTP span that is not here; its time tells."""
    agent = group.add("agent", "agent", 0, 100)
    group.add("chat", "llm", 10, 20, attributes={"llm.token_count.prompt": 5}, parent=777)
    group.add("elsewhere", "llm", 90, 120, attributes={"llm.token_count.prompt": 70}, parent=777)
    assert sample_of(agent, list(group.calls.values())).context["usage"] == {"input_tokens": 5}


def test_ids_that_form_a_ring_end(group: Group) -> None:
    """Nobody's ids are trusted."""
    one = group.add("one", "chain", 0, 10, parent=2)
    two = group.add("two", "llm", 1, 9, parent=1)
    assert sample_of(one, [two]).input == "one in"
    assert group.root("one").output == "one out"


def test_the_order_of_arrival_does_not_matter(group: Group) -> None:
    """Same calls, same Sample, and same carrier, with equal times too."""
    group.add("a", "llm", 0, 10, attributes={semconv.CONTEXT: '{"k": "a"}'}, parent=77)
    group.add("b", "llm", 0, 10, attributes={semconv.CONTEXT: '{"k": "b"}'}, parent=77)
    group.add("r1", "retriever", 0, 0, attributes=documents("1"), parent=77)
    group.add("r2", "retriever", 0, 0, attributes=documents("2"), parent=77)
    calls = list(group.calls.values())
    expected = root_sample(calls[:2], calls)
    assert expected is not None
    assert expected[0].span.name == "b"
    for seed in range(10):
        random.Random(seed).shuffle(calls)
        tops = [c for c in calls if c.kind == "llm"]
        assert root_sample(tops, calls) == expected


def test_the_sample_cannot_be_changed(group: Group) -> None:
    """Promise 7."""
    group.add("search", "retriever", 1, 5, attributes=documents("A"))
    sample = sample_of(group.calls["search"])
    with pytest.raises(TypeError, match="snapshot"):
        sample.documents[0]["content"] = "B"


def test_a_clock_that_cuts_starts_to_milliseconds_does_not_lose_the_documents(group: Group) -> None:
    """JavaScript's: the model seems to have ended before the retrieval that it waited for."""
    group.add("rag", "chain", 0, 100)
    group.add("find", "retriever", 10, 13, "rag", documents("found"))
    group.add("chat", "llm", 12, 12, "rag")
    assert texts(group.root("rag")) == ["found"]


def test_tokens_of_a_call_that_two_instrumentations_tell_side_by_side_are_counted_once(group: Group) -> None:
    """Siblings: openinference and Traceloop on one client. Where the first to end has no count the other's counts."""
    tokens = {"llm.token_count.prompt": 10, "llm.token_count.completion": 1, "input.value": "Hi", "output.value": "Yo"}
    silent = {"input.value": "Hi", "output.value": "Yo"}
    group.add("rag", "chain", 0, 100)
    group.add("one", "llm", 10, 20, "rag", tokens, scope_name="openinference")
    group.add("two", "llm", 11, 19, "rag", tokens, scope_name="traceloop")
    group.add("three", "llm", 30, 40, "rag", tokens, scope_name="openinference")
    group.add("four", "llm", 31, 39, "rag", silent, scope_name="traceloop")
    assert group.root("rag").context["usage"] == {"input_tokens": 20, "output_tokens": 2}


def test_tokens_of_a_model_call_that_a_tool_made_inside_of_a_model_call_are_its_own(group: Group) -> None:
    """The wrapper's total is of its own steps."""
    tokens = {"llm.token_count.prompt": 10}
    group.add("outer", "llm", 0, 100, None, tokens)
    group.add("step", "chain", 1, 20, "outer")
    group.add("again", "llm", 2, 19, "step", tokens)
    group.add("tool", "tool", 30, 90, "outer")
    group.add("other", "llm", 31, 80, "tool", {"llm.token_count.prompt": 5})
    assert group.root("outer").context["usage"] == {"input_tokens": 15}


def test_a_tool_and_a_retrieval_that_two_instrumentations_tell_are_there_once(group: Group) -> None:
    """The chosen retrieval is not among the others under its other name."""
    group.add("agent", "agent", 0, 100)
    group.add("search", "retriever", 1, 9, "agent", documents("A"), scope_name="langchain")
    group.add("query", "retriever", 2, 8, "search", documents("A") | {"input.value": "search in"}, scope_name="chroma")
    group.add("look", "tool", 10, 15, "agent", {"tool.name": "look"}, scope_name="adk")
    group.add("tools/call", "tool", 11, 14, "agent", {"tool.name": "look", "input.value": "look in",
                                                      "output.value": "look out"}, scope_name="mcp")  # fmt: skip
    group.add("chat", "llm", 20, 30, "agent")
    context = group.root("agent").context
    assert "retrievals" not in context
    assert len(context["tool_calls"]) == 1
