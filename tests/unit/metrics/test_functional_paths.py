"""Paths into a Sample: the grammar, what is found, and what is not."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from spangrade import ConfigError, Sample
from spangrade.metrics.functional_paths import MISSING, SamplePath

SAMPLE = Sample(
    input={"question": "When?", "history": [{"role": "user"}, {"role": "model"}], "0": "a key"},
    output="In three days.",
    documents=[{"content": "a", "metadata": {"lang": "en"}}, {"content": "b"}],
    context={"messages": [{"parts": [{"text": "x"}, {"text": "y"}]}, {"parts": []}]},
    metadata={
        "tenant": "acme",
        "service.name": "shop",
        "a": {"b": 1},
        "a.b": 2,
        "deep.er": {"x.y": {"z": 3}},
        "none": None,
    },
)


def read(path: str, sample: Sample = SAMPLE) -> Any:
    return SamplePath(path, "metric 'm'").read(sample)


@pytest.mark.parametrize(
    ("path", "found"),
    [
        ("output", "In three days."),
        ("answer", "In three days."),
        ("question.question", "When?"),
        ("metadata.tenant", "acme"),
        ("metadata.service.name", "shop"),
        ('metadata["service.name"]', "shop"),
        ("metadata['service.name']", "shop"),
        ("metadata.a.b", 1),  # a key of its own before a dotted one
        ('metadata["a.b"]', 2),
        ("metadata.deep.er.x.y.z", 3),
        ("documents[].content", ["a", "b"]),
        ("contexts[].content", ["a", "b"]),
        ("documents[0].content", "a"),
        ("documents[-1].content", "b"),
        ("documents[].metadata.lang", ["en", None]),
        ("documents[][]", [None, None]),
        ("context.messages[].parts[].text", [["x", "y"], []]),
        ("context.messages[0].parts[1].text", "y"),
        ("input.history[-2].role", "user"),
        ("input.0", "a key"),
        ("documents", SAMPLE.documents),
    ],
)
def test_a_path_finds_what_is_there(path: str, found: Any) -> None:
    assert read(path) == found


@pytest.mark.parametrize(
    "path",
    [
        "expected", "metadata.gone", "metadata.none", "metadata.tenant.more", "metadata.service.gone", "documents[2].content",
        "documents[-3]", "output.upper", "output[0]", "output[].x", "input.history.role", "metadata[0]", "input.question[]",
        'metadata["tenant.x"]', "trace_id", "item_id.x",
    ],
)  # fmt: skip
def test_what_is_not_there_is_missing(path: str) -> None:
    assert read(path) is MISSING


def test_each_over_an_empty_list_is_an_empty_list_and_over_nothing_is_missing() -> None:
    assert read("documents[].content", Sample()) == []
    assert read("context.messages[].text", Sample()) is MISSING


@pytest.mark.parametrize(
    ("path", "said"),
    [
        ("", "'' is no path"),
        (None, "None is no path"),
        ("tenant", "begins with no field of a Sample"),
        (".output", "begins with no field"),
        ("[0]", "begins with no field"),
        ("outputs.x", "begins with no field"),
        ("output.", r"cannot be read from '\.' on"),
        ("output..x", r"cannot be read from '\.\.x' on"),
        ("output[", r"cannot be read from '\[' on"),
        ("output[x]", r"cannot be read from '\[x\]' on"),
        ("output[1.5]", r"cannot be read from '\[1\.5\]' on"),
        ("output x", "cannot be read from ' x' on"),
        ("output]x", r"cannot be read from '\]x' on"),
        (r'metadata["\q"]', "is no JSON text"),
        ("documents.content", r"write documents\[\]\.content or documents\[0\]\.content"),
        ("contexts.content", r"write contexts\[\]\.content"),
        ("output[99999999999]", "cannot be read"),
    ],
)
def test_what_is_no_path_is_refused_with_the_grammar(path: Any, said: str) -> None:
    with pytest.raises(ConfigError, match=said) as refused:
        SamplePath(path, "metric 'm'")
    assert str(refused.value).startswith("metric 'm': ")


KEYS = st.text(min_size=1, max_size=12)
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(KEYS, inner, max_size=3),
    max_leaves=8,
)


def step(key: Any) -> str:
    return f"[{key}]" if isinstance(key, int) else f"[{json.dumps(key)}]"


@given(st.dictionaries(KEYS, VALUES, min_size=1), st.data())
def test_any_place_in_any_value_has_a_path(value: dict[str, Any], data: st.DataObject) -> None:
    here: Any = Sample(metadata=value).metadata
    path = "metadata"
    while isinstance(here, (dict, list)) and here and data.draw(st.booleans()):
        key = data.draw(st.sampled_from(list(here) if isinstance(here, dict) else range(len(here))))
        path, here = path + step(key), here[key]
    found = read(path, Sample(metadata=value))
    assert found is MISSING if here is None else found == here


@given(
    st.text(max_size=30) | st.from_regex(r"(input|documents|metadata)([.\[\]\"'a-z0-9]{0,12})", fullmatch=True), VALUES
)
def test_any_text_is_refused_or_reads_any_sample_without_a_fault(text: str, value: Any) -> None:
    sample = Sample(input=value, metadata={"a": value}, documents=[{"content": value}])
    try:
        path = SamplePath(text, "m")
    except ConfigError:
        return
    before = repr(sample)
    path.read(sample)
    assert repr(sample) == before
