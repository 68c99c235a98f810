"""LlamaIndex's objects by repr: what stands in them comes back as it was written, whatever it is."""

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from spangrade.samples.llama_index import documents, unwrapped


def written(role: str, *blocks: str) -> str:
    """A ChatMessage as its repr has it."""
    return f"ChatMessage(role=<MessageRole.{role.upper()}: '{role}'>, additional_kwargs={{}}, blocks=[{', '.join(blocks)}])"


def text_block(text: str) -> str:
    return f"TextBlock(block_type='text', text={text!r})"


@settings(max_examples=100, deadline=None)
@given(st.lists(st.text(), min_size=1, max_size=3), st.sampled_from(["user", "system", "assistant"]))
def test_texts_come_back_as_they_were(texts: list[str], role: str) -> None:
    (message,) = unwrapped({"messages": [written(role, *map(text_block, texts))]})["messages"]
    assert message == {"role": role, "content": [{"type": "text", "text": text} for text in texts]}


def test_a_text_that_looks_like_a_block_is_no_block() -> None:
    sly = text_block("x") + "'\"\\ " + text_block("y")
    (message,) = unwrapped({"messages": [written("user", text_block(sly))]})["messages"]
    assert message["content"] == [{"type": "text", "text": sly}]


def test_other_blocks_are_named_by_their_type() -> None:
    image = (
        "ImageBlock(block_type='image', image=None, path=None, url='TextBlock(block_type=\\'text\\', text=\\'no\\')')"
    )
    (message,) = unwrapped({"messages": [written("user", text_block("What?"), image)]})["messages"]
    assert message["content"] == [{"type": "text", "text": "What?"}, {"type": "image"}]


@pytest.mark.parametrize(
    ("held", "found"),
    [
        ({"query_bundle": {"query_str": "When?", "embedding": None}}, "When?"),
        ({"query_bundle": {"query_str": None}}, {"query_bundle": {"query_str": None}}),
        ({"messages": [{"role": "user", "content": "hi"}]}, {"messages": [{"role": "user", "content": "hi"}]}),
        ({"messages": "ChatMessage("}, {"messages": "ChatMessage("}),
        ("text", "text"),
        (None, None),
    ],
)
def test_what_is_plain_or_unknown_stays_as_it_is(held: Any, found: Any) -> None:
    assert unwrapped(held) == found


def test_nodes_are_ids_and_scores() -> None:
    nodes = [
        f"<NodeWithScore(node=TextNode(id_={one}), score={score})>" for one, score in (("d1", 0.5), ("d(2)", None))
    ]
    assert documents(nodes) == [{"id": "d1", "score": 0.5}, {"id": "d(2)"}]
    for other in (["d1"], [], None, "text", [*nodes, "x"], [3]):
        assert documents(other) is None


@settings(max_examples=100, deadline=None)
@given(st.text(alphabet="ChatMessgTxBlock()[]='\"\\, urxU0f{}<>:", max_size=200))
def test_any_text_behind_the_beginning_is_read_without_a_fault(rest: str) -> None:
    unwrapped({"messages": ["ChatMessage(role=<MessageRole.USER: 'user'>" + rest]})
    documents([f"<NodeWithScore(node=TextNode(id_={rest}), score={rest})>"])
