"""Laminar, from its documentation."""

from collections.abc import Callable

import pytest

from spangrade.samples.extract import is_content_key, quick_kind
from spangrade.samples.reading import Call


@pytest.mark.parametrize(
    ("word", "kind"),
    [
        ("DEFAULT", "chain"),
        ("LLM", "llm"),
        ("TOOL", "tool"),
        ("EVALUATOR", "evaluator"),
        ("HUMAN_EVALUATOR", "evaluator"),
    ],
)
def test_its_types_are_our_kinds(word: str, kind: str) -> None:
    assert quick_kind({"lmnr.span.type": word, "lmnr.span.input": "{}"}) == kind


def test_a_decorated_function_and_a_model_call(call_of: Callable[..., Call]) -> None:
    """Arguments by name; messages of the model's API; the session among the properties."""
    reading = call_of(
        {
            "lmnr.span.type": "DEFAULT",
            "lmnr.span.input": '{"question": "Which plug?"}',
            "lmnr.span.output": '"Type F."',
            "lmnr.association.properties.session_id": "s1",
            "lmnr.association.properties.metadata.tier": "gold",
        }
    ).reading
    assert (reading.input, reading.output, reading.session_id) == ("Which plug?", "Type F.", "s1")
    assert reading.metadata == {"tier": "gold"}
    model = call_of(
        {
            "lmnr.span.type": "LLM",
            "lmnr.span.input": '[{"role": "system", "content": "Be kind"}, {"role": "user", "content": "Hi"}]',
            "lmnr.span.output": '[{"role": "assistant", "content": "Hello"}]',
            "gen_ai.response.model": "m-1",
        }
    ).reading
    assert (model.input, model.output, model.system, model.model) == ("Hi", "Hello", "Be kind", "m-1")
    assert is_content_key("lmnr.span.input")
