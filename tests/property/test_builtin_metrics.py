"""Every built-in on any Sample: a Verdict, a `Skip` or a `ReturnError`, never another exception; explanations are bounded."""

import math
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from spangrade.metrics.builtin import citations, json_schema, keywords, language_match, pii, regex, tool_calls_valid
from spangrade.metrics.builtin.table import BUILTIN
from spangrade.metrics.catalog import resolve
from spangrade.model.evaluator import Verdict
from spangrade.model.sample import Sample
from spangrade.model.score import MAX_EXPLANATION, ReturnError, Skip

#: Built-ins that need an option, and others with many of them.
CONFIGURED: dict[str, Any] = {
    "json_schema": json_schema.json_schema(
        {"type": "object", "patternProperties": {"^a": {"format": "date-time"}}, "required": ["a"]}
    ),
    "regex": regex.regex(r"\d+|[^\x00-\x7f]"),
    "regex on documents": regex.regex("a", must="not_match", field="documents"),
    "keywords": keywords.keywords(["a"], ["b", "日"], ["c d"]),
    "keywords in input": keywords.keywords(none_of=["e"], field="input", whole_words=False, case_sensitive=True),
    "citations of all styles": citations.citations(
        styles=["brackets", "lenticular", "parentheses", "superscript", "url"], first=0
    ),
    "pii everywhere": pii.pii(
        also=["nl_bsn", "in_aadhaar"], fields=["input", "output", "documents"], known_from=["metadata"]
    ),
    "language expected": language_match.language_match(
        expected=["en", "metadata.lang"], min_letters=1, min_confidence=0.0
    ),
    "tools given": tool_calls_valid.tool_calls_valid(
        [{"name": "find", "input_schema": {"type": "object", "required": ["q"]}}]
    ),
}
#: A second model for these; their own tests are where they are made.
_HEAVY = {"groundedness", "answer_relevance", "context_relevance"}
METRICS = list({**{name: None for name in BUILTIN if name not in _HEAVY}, **CONFIGURED})

TEXTS = st.one_of(
    st.text(alphabet=st.characters(codec=None), max_size=60),
    st.sampled_from(
        [
            "I can't help. [1] 【2】 ¹ (1)",
            "```json\n{}\n```",
            '{"a": NaN}',
            "a@b.io 4111 1111 1111 1111",
            "日本語。です",
            "1." * 30,
        ]
    ),
)
NUMBERS = st.one_of(st.integers(), st.floats(), st.booleans(), st.none(), st.just(10**400))
VALUES = st.recursive(
    st.one_of(TEXTS, NUMBERS, st.binary(max_size=4)),
    lambda inner: st.one_of(st.lists(inner, max_size=4), st.dictionaries(TEXTS, inner, max_size=4)),
    max_leaves=10,
)
DOCUMENTS = st.one_of(
    st.lists(
        st.one_of(
            TEXTS, VALUES, st.fixed_dictionaries({"content": VALUES}, optional={"id": VALUES, "metadata": VALUES})
        ),
        max_size=4,
    ),
    VALUES,
)
CALLS = st.lists(
    st.fixed_dictionaries(
        {"name": st.one_of(st.just("find"), VALUES)},
        optional={"arguments": st.one_of(st.just('{"q": 1}'), VALUES), "function": VALUES},
    ),
    max_size=3,
)
TOOLS = st.one_of(
    VALUES,
    st.lists(
        st.fixed_dictionaries({"name": st.just("find")}, optional={"input_schema": VALUES, "parameters": VALUES}),
        max_size=2,
    ),
)
USAGE = st.one_of(
    VALUES, st.dictionaries(st.sampled_from(["input_tokens", "output_tokens", "cache_read_tokens"]), NUMBERS)
)
CONTEXTS = st.fixed_dictionaries(
    {},
    optional={
        "usage": USAGE,
        "usage_by_model": st.one_of(VALUES, st.lists(USAGE, max_size=2)),
        "model": st.one_of(st.just("gpt-4o"), VALUES),
        "provider": st.one_of(st.just("openai"), VALUES),
        "duration_s": VALUES,
        "time_to_first_chunk_s": VALUES,
        "refusal": VALUES,
        "finish_reasons": VALUES,
        "tools": TOOLS,
        "tool_calls": st.one_of(CALLS, VALUES),
    },
)
SAMPLES = st.builds(
    Sample,
    input=VALUES,
    output=VALUES,
    documents=DOCUMENTS,
    context=CONTEXTS,
    metadata=st.dictionaries(st.just("lang"), VALUES),
)


@pytest.fixture(scope="module")
def metrics() -> dict[str, Any]:
    return {name: resolve(_named(name)) for name in METRICS}


def _named(name: str) -> Any:
    return CONFIGURED.get(name, name)


@pytest.mark.parametrize("name", METRICS)
@settings(max_examples=30)
@given(sample=SAMPLES)
def test_any_sample_gives_scores_a_skip_or_an_error_of_the_metrics_own(
    name: str, metrics: dict[str, Any], sample: Sample
) -> None:
    verdict, fault = None, None
    try:
        verdict = metrics[name].evaluate(sample)
    except (Skip, ReturnError) as raised:
        fault = str(raised)
    if verdict is None:
        assert fault
        assert len(fault) <= 1_000
        return
    assert isinstance(verdict, Verdict)
    for score in verdict.scores:
        assert score.value is None or math.isfinite(score.value)
        assert score.explanation is None or len(score.explanation) <= MAX_EXPLANATION
        if metrics[name].info.verdict:
            assert score.passed is not None


@pytest.mark.parametrize("name", METRICS)
def test_the_same_sample_gives_the_same_verdict_and_stays_as_it_was(name: str, metrics: dict[str, Any]) -> None:
    def make() -> Sample:
        return Sample(
            input="How long does a refund take?",
            output='The refund takes five working days [1]. Write to a@b.io. {"a": 1}',
            documents=[{"id": "1", "content": "The refund takes five working days."}],
            context={
                "usage": {"input_tokens": 10, "output_tokens": 5}, "model": "gpt-4o", "provider": "openai", "duration_s": 1.0,
                "time_to_first_chunk_s": 0.2, "tools": [{"name": "find"}], "tool_calls": [{"name": "find", "arguments": {"q": "x"}}],
            },
            metadata={"lang": "en"},
        )  # fmt: skip

    sample = make()
    outcomes = []
    for given_sample in (sample, sample, make()):
        try:
            outcomes.append(metrics[name].evaluate(given_sample))
        except Skip as fault:
            outcomes.append(str(fault))
    assert outcomes[0] == outcomes[1] == outcomes[2]
    assert sample == make()


@pytest.mark.parametrize("name", [name for name in BUILTIN if name not in _HEAVY])
def test_every_built_in_says_in_a_page_what_it_measures_what_it_does_not_and_whence(name: str) -> None:
    import importlib

    module = importlib.import_module(BUILTIN[name].path.partition(":")[0])
    page = module.__doc__ or ""
    assert f"`{name}`" in page.split("\n\n")[0]
    for word in ("What it measures", "What it does not", "Source"):
        assert word in page.replace("What they", "What it").replace("measure:", "measures:").replace(
            "do not", "does not"
        ), word
    assert 400 < len(page) < 4_000


def test_every_built_in_has_version_1() -> None:
    for name in METRICS:
        assert resolve(_named(name)).info.version == "1", name
