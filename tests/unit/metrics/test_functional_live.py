"""Functional metrics on Samples: what fills their inputs, what their results say as scores, and the pipeline around them."""

import asyncio
import functools
import inspect
import os
from collections.abc import Callable, Sequence
from enum import Enum
from pathlib import Path
from typing import Annotated, Any

import pytest
from pydantic import BaseModel

import spangrade as sg
from spangrade import ConfigError, MetricResult, Sample
from spangrade import semconv as s
from spangrade.metrics.catalog import resolve
from spangrade.model.evaluator import Evaluator
from spangrade.model.outcome import Outcome
from spangrade.model.score import Graded, ReturnError, Skip
from spangrade.otel.engine import current_engine
from spangrade.scoring.evaluators import placed_evaluators
from spangrade.testing import CollectingExporter, event_scores

SAMPLE = Sample(
    input="When?",
    output="In three days.",
    expected="Three days.",
    documents=[{"content": "It takes three days.", "id": "a", "score": 0.5}, {"content": "Drones."}],
    context={"model": "m", "usage": {"input_tokens": 7}},
    metadata={"tenant": "acme", "service.name": "shop"},
    trace_id="0" * 31 + "1",
    item_id="item",
)


def graded(metric: Any, sample: Sample = SAMPLE) -> Graded:
    verdict = metric.evaluate(sample)
    if inspect.isawaitable(verdict):
        verdict = asyncio.run(_awaited(verdict))
    (score,) = verdict.scores
    assert isinstance(score, Graded)
    return score


async def _awaited(verdict: Any) -> Any:
    return await verdict


def filled(fn: Callable[..., Any], sample: Sample = SAMPLE, **options: Any) -> Any:
    """What arrived in ``fn``, which returns it."""
    got = []
    wrapped = sg.ranking_metric(allowed_values=1, **options)(_recording(fn, got))
    wrapped.evaluate(sample)
    return got[0]


def _recording(fn: Callable[..., Any], got: list[Any]) -> Callable[..., Any]:
    @functools.wraps(fn)
    def recording(*args: Any, **kwargs: Any) -> list[int]:
        got.append(fn(*args, **kwargs))
        return [1]

    return recording


# --- what fills the inputs -----------------------------------------------------------------------------------------------


def test_inputs_are_the_samples_fields_by_name() -> None:
    texts = filled(lambda input, output, expected: (input, output, expected))  # noqa: A006
    assert texts == ("When?", "In three days.", "Three days.")
    assert filled(lambda documents: [d["id"] for d in documents[:1]]) == ["a"]
    assert filled(lambda context, metadata: (context["model"], metadata["tenant"])) == ("m", "acme")
    assert filled(lambda trace_id, item_id: (trace_id[-1], item_id)) == ("1", "item")


def test_inputs_are_other_tools_words_too() -> None:
    def f(user_input: str, response: str, reference: str, retrieved_contexts: list[str]) -> Any:
        return user_input, response, reference, retrieved_contexts

    assert filled(f) == ("When?", "In three days.", "Three days.", ["It takes three days.", "Drones."])


def test_documents_are_texts_where_texts_are_asked_for_and_dicts_elsewhere() -> None:
    def texts(contexts: Sequence[str] | None, documents: Annotated[tuple[str, ...], "any"]) -> Any:
        return contexts, documents

    def dicts(contexts: list[dict[str, Any]], documents: Any) -> Any:
        return contexts[0]["id"], documents[0]["id"]

    assert filled(texts) == (["It takes three days.", "Drones."], ("It takes three days.", "Drones."))
    assert filled(dicts) == ("a", "a")
    assert filled(texts, Sample()) == ([], ())


def test_documents_arrive_as_models() -> None:
    class Document(BaseModel):
        content: str
        score: float | None = None

    def f(documents: list[Document]) -> Any:
        return documents

    assert filled(f)[0] == Document(content="It takes three days.", score=0.5)


def test_inputs_are_found_by_declared_paths() -> None:
    def f(tenant: str, texts: list[str], scores: list[float | None], first: str, service: str, tokens: int) -> Any:
        return tenant, texts, scores, first, service, tokens

    paths = {
        "tenant": "metadata.tenant",
        "texts": "documents[].content",
        "scores": "documents[].score",
        "first": "documents[0].id",
        "service": "metadata.service.name",
        "tokens": "context.usage.input_tokens",
    }
    texts = ["It takes three days.", "Drones."]
    assert filled(f, inputs=paths) == ("acme", texts, [0.5, None], "a", "shop", 7)
    assert filled(lambda output: output, inputs={"output": "input"}) == "When?"  # a path wins over the name


def test_what_a_partial_has_bound_stays_bound_and_decorated_functions_show_what_they_take() -> None:
    def f(output: str, expected: str) -> Any:
        return output, expected

    def decorated(fn: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(fn)
        def by_name(**kwargs: Any) -> Any:
            return fn(**kwargs)

        return by_name

    def narrowed(fn: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(fn)
        def only(output: str) -> Any:
            return fn(output, "fixed")

        return only

    got: list[Any] = []
    sg.ranking_metric(name="p", allowed_values=1)(functools.partial(_recording(f, got), expected="bound")).evaluate(
        SAMPLE
    )
    assert got == [("In three days.", "bound")]
    assert filled(decorated(f)) == ("In three days.", "Three days.")
    pair = sg.ranking_metric(narrowed(lambda output, expected: [output, expected]))
    assert pair.score(output="x") == ["x", "fixed"]
    assert graded(pair).structured == ["In three days.", "fixed"]


def test_one_input_may_be_the_sample_itself() -> None:
    def f(whole: Sample, output: str) -> Any:
        return whole, output

    assert filled(f) == (SAMPLE, "In three days.")
    assert filled(lambda sample: sample) is SAMPLE


def test_what_the_sample_does_not_have_leaves_the_default_or_skips_the_sample() -> None:
    def f(tenant: str = "nobody", expected: str | None = None, also: str | None = None) -> Any:
        return tenant, expected, also

    paths = {"tenant": "metadata.tenant", "also": "context.also"}
    assert filled(f, Sample(), inputs=paths) == ("nobody", None, None)
    for fn, options, said in (
        (lambda tenant: tenant, {"inputs": {"tenant": "metadata.tenant"}}, "metadata.tenant missing"),
        (lambda expected: expected, {}, "expected missing"),
        (lambda reference: reference, {}, "expected missing"),
        (lambda output: output, {"requires": "documents"}, "documents missing"),
    ):
        with pytest.raises(Skip, match=f"^{said}$"):
            filled(fn, Sample(output="x"), **options)


def test_more_inputs_are_filled_by_path_alone() -> None:
    def f(output: str, **more: str) -> Any:
        return more

    assert filled(f, inputs={"tenant": "metadata.tenant", "gone": "metadata.gone"}) == {"tenant": "acme"}


def test_a_mistyped_field_is_an_error_that_says_how_to_take_another_part() -> None:
    def f(input: str) -> Any:  # noqa: A002
        return input

    sample = Sample(input={"question": "When?", "user": 7})
    with pytest.raises(TypeError, match=r"input: Input should be a valid string.*inputs={name: path}"):
        filled(f, sample)
    assert filled(f, sample, inputs={"input": "input.question"}) == "When?"


def test_a_parameter_that_nothing_fills_is_refused_when_it_is_placed_and_not_before() -> None:
    @sg.discrete_metric
    def judged(output: str, rubric: str, note: str = "") -> str:
        return "pass"

    assert judged.score(output="a", rubric="b") == "pass"
    for place in (lambda: placed_evaluators([judged], []), lambda: sg.configure(metrics=[judged])):
        with pytest.raises(ConfigError) as refused:
            place()
        said = str(refused.value)
        assert "metric 'judged': parameter 'rubric' cannot be filled from a Sample" in said
        assert "name it like one of its fields (input, output, expected, documents, context, metadata" in said
        assert "inputs={'rubric': 'metadata.rubric'}" in said
        assert "note" not in said
    mapped = sg.discrete_metric(inputs={"rubric": "metadata.rubric"})(judged.fn)
    assert resolve(mapped) is mapped
    assert placed_evaluators([mapped], [])[0].evaluator is mapped


@pytest.mark.parametrize(
    ("inputs", "said"),
    [
        ({"tenat": "metadata.tenant"}, r"inputs names 'tenat'; the function has tenant"),
        ({"tenant": "meta.tenant"}, r"inputs\['tenant'\]: path 'meta.tenant' begins with no field of a Sample"),
        ({"tenant": "metadata..tenant"}, r"cannot be read from '\.\.tenant' on"),
        ({"tenant": "documents.content"}, r"write documents\[\]\.content or documents\[0\]\.content"),
        ({"tenant": 5}, "5 is no path"),
    ],
)
def test_a_mapping_that_cannot_work_is_refused_when_the_metric_is_made(inputs: Any, said: str) -> None:
    with pytest.raises(ConfigError, match=said):
        sg.discrete_metric(inputs=inputs)(lambda tenant: "pass")


# --- what results say ----------------------------------------------------------------------------------------------------


class Mood(Enum):
    GOOD = "good"
    BAD = 2


@pytest.mark.parametrize(
    ("allowed", "returned", "label", "passed"),
    [
        (["pass", "fail"], "pass", "pass", True),
        (["pass", "fail"], "fail", "fail", False),
        (["good", "bad"], "bad", "bad", None),
        (["skipped", "error"], "error", "error", None),
        ([1, 2, 3], 2, "2", None),
        ([True, False], True, "true", True),
        ([True, False], False, "false", False),
        (list(Mood), Mood.GOOD, "good", None),
        (list(Mood), Mood.BAD, "BAD", None),
    ],
)
def test_a_category_is_a_label_and_pass_and_fail_are_a_verdict(
    allowed: Any, returned: Any, label: str, passed: bool | None
) -> None:
    found = graded(sg.discrete_metric(name="m", allowed_values=allowed)(lambda output: returned))
    assert found == Graded("m", label=label, passed=passed)
    without = graded(sg.discrete_metric(name="m", allowed_values=allowed, verdict=False)(lambda output: returned))
    assert without == Graded("m", label=label)


@pytest.mark.parametrize(
    ("options", "value", "passed"),
    [
        ({}, 0.5, True),
        ({}, 0, False),
        ({"threshold": 0.6}, 0.5, False),
        ({"threshold": 0.6, "lower_is_better": True}, 0.5, True),
        ({"verdict": False}, 0.5, None),
        ({"threshold": 0.6, "verdict": False}, 0.5, None),
        ({}, True, True),
    ],
)
def test_a_number_is_a_value_that_passes_by_the_threshold(options: Any, value: Any, passed: bool | None) -> None:
    found = graded(sg.numeric_metric(name="m", **options)(lambda output: MetricResult(value, "because")))
    assert (found.value, found.passed, found.explanation) == (float(value), passed, "because")
    assert found.label == (None if passed is None else "pass" if passed else "fail")


def test_a_ranking_is_a_structured_value() -> None:
    found = graded(
        sg.ranking_metric(name="m", allowed_values=3)(lambda output: MetricResult(["b", {"id": 1}, 2], "by id"))
    )
    assert found == Graded("m", structured=["b", {"id": 1}, 2], explanation="by id")


def test_a_long_reason_is_cut_and_one_that_is_no_text_is_text() -> None:
    long = graded(sg.discrete_metric(lambda output: MetricResult("pass", "x" * 2_000_000)))
    assert len(str(long.explanation)) < 9_000
    for metric in (
        sg.discrete_metric(lambda output: MetricResult("pass", 5)),
        sg.numeric_metric(lambda output: MetricResult(1, 5)),
    ):  # type: ignore[arg-type]
        assert graded(metric).explanation == "5"


@pytest.mark.parametrize(
    ("returned", "said"),
    [
        ("perhaps", r"m returned 'perhaps', expected one of \['pass', 'fail'\]"),
        (None, "m returned None"),
        (MetricResult(None, "the judge gave up"), "^the judge gave up$"),
        (MetricResult("perhaps"), "m returned 'perhaps'"),
    ],
)
def test_no_value_is_an_error_with_the_reason(returned: Any, said: str) -> None:
    with pytest.raises(ReturnError, match=said):
        graded(sg.discrete_metric(name="m")(lambda output: returned))


def test_what_the_function_raises_is_the_error_itself() -> None:
    with pytest.raises(ZeroDivisionError):
        graded(sg.numeric_metric(lambda output: 1 / 0))


# --- identity ------------------------------------------------------------------------------------------------------------


def test_the_metric_is_an_evaluator_sync_or_async() -> None:
    async def later(output: str) -> str:
        return "pass"

    for fn, is_async in ((lambda output: "pass", False), (later, True)):
        metric = sg.discrete_metric(name="m", version=3, timeout=7, target="llm", requires=("answer",))(fn)
        assert isinstance(metric, Evaluator)
        assert (metric.is_async, metric.timeout) == (is_async, 7)
        info = metric.info
        assert (info.name, info.kind, info.version, info.target, info.requires) == (
            "m",
            "code",
            "3",
            "llm",
            ("output",),
        )
        assert graded(metric).label == "pass"


@pytest.mark.parametrize(
    ("metric", "can"),
    [
        (sg.discrete_metric, True),
        (sg.discrete_metric(allowed_values=["pass", "unsure"]), True),
        (sg.discrete_metric(allowed_values=["good", "bad"]), False),
        (sg.discrete_metric(allowed_values=[True, False]), True),
        (sg.discrete_metric(verdict=False), False),
        (sg.numeric_metric, True),
        (sg.numeric_metric(verdict=False), False),
        (sg.ranking_metric, False),
    ],
)
def test_only_what_can_pass_or_fail_says_that_it_gives_a_verdict(metric: Any, can: bool) -> None:
    assert metric(lambda output: None).info.verdict is can


def test_the_config_hash_tells_what_is_graded_apart_and_not_how_it_is_judged() -> None:
    def of(make: Any = sg.numeric_metric, **options: Any) -> str:
        return str(make(name="m", **options)(lambda output, x=1: 1).info.config_hash)

    same = {of(), of(allowed_values=(0.0, 1.0)), of(threshold=0.5), of(lower_is_better=True), of(timeout=9)}
    different = {
        of(),
        of(allowed_values=(0, 2)),
        of(version=1),
        of(version=2),
        of(config={"a": 1}),
        of(inputs={"x": "metadata.x"}),
        of(inputs={"x": "metadata.y"}),
        of(target="llm"),
        of(sg.discrete_metric),
        of(sg.discrete_metric, allowed_values=["pass", "fail", "unsure"]),
        of(sg.ranking_metric),
    }
    assert len(same) == 1
    assert len(different) == 11
    assert of(sg.discrete_metric, allowed_values={"a", "b"}) == of(sg.discrete_metric, allowed_values={"b", "a"})


# --- end to end ----------------------------------------------------------------------------------------------------------


@sg.trace
def answer(question: str) -> str:
    sg.set_retrieval_documents(["Three days.", "Drones."])
    sg.set_metadata(tenant="acme")
    return "Three days."


def test_functional_metrics_score_live_calls(exporter: CollectingExporter) -> None:
    @sg.discrete_metric(inputs={"texts": "documents[].content"})
    def supported(response: str, texts: list[str]) -> MetricResult:
        return MetricResult("pass" if response in texts else "fail", reason="looked it up")

    @sg.discrete_metric(allowed_values=["short", "long"])
    async def size(output: str) -> str:
        return "short" if len(output) < 100 else "long"

    @sg.numeric_metric(threshold=3, allowed_values=(0, 10), lower_is_better=True, version=2)
    def words(output: str) -> int:
        return len(output.split())

    @sg.ranking_metric(allowed_values=2)
    def order(contexts: list[str]) -> list[int]:
        return sorted(range(len(contexts)), key=lambda i: len(contexts[i]))

    @sg.discrete_metric
    def unsure(output: str) -> str:
        return "unsure"

    @sg.numeric_metric
    def against(output: str, expected: str) -> float:
        return 1.0

    sg.configure(metrics=[supported, size, words, order, unsure, against], exporter=exporter)
    assert answer("when") == "Three days."
    assert sg.flush(10)
    (span,) = exporter.named("answer")
    scores = event_scores(span)
    assert set(scores) == {"supported", "size", "words", "order", "unsure"}
    assert scores["supported"][s.SCORE_LABEL] == "pass"
    assert scores["supported"][s.EXPLANATION] == "looked it up"
    assert scores["supported"][s.PASSED] is True
    assert scores["size"][s.SCORE_LABEL] == "short"
    assert s.PASSED not in scores["size"]
    assert (scores["words"][s.SCORE_VALUE], scores["words"][s.SCORE_LABEL]) == (2.0, "pass")
    assert scores["order"][s.VALUE_JSON] == "[1,0]"
    assert scores["unsure"][s.ERROR_TYPE] == "ReturnError"
    assert s.SCORE_VALUE not in scores["unsure"]
    assert s.SCORE_LABEL not in scores["unsure"]
    assert "expected one of ['pass', 'fail']" in scores["unsure"][s.EXPLANATION]
    engine = current_engine()
    assert engine is not None
    (skipped,) = [c for c in engine.ledger.snapshot().values() if c.name == "against"]
    assert skipped.outcomes == {(Outcome.SKIPPED, "expected missing"): 1}


def test_two_of_one_name_and_config_are_refused() -> None:
    def make() -> Any:
        return sg.discrete_metric(name="twice")(lambda output: "pass")

    with pytest.raises(ConfigError, match="two evaluators are named 'twice' with the same config"):
        placed_evaluators([make(), make()], [])


def test_a_file_names_a_functional_metric_and_one_runs_in_a_worker_process(
    tmp_path: Path, exporter: CollectingExporter, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.syspath_prepend(str(Path(__file__).parents[3]))
    file = tmp_path / "spangrade.yaml"
    place = "tests.unit.metrics.metrics_for_tests"
    file.write_text(f"metrics: [{{use: '{place}:whose'}}, {{use: '{place}:elsewhere'}}]\n")
    sg.configure(config_file=str(file), exporter=exporter)
    answer("when")
    assert sg.flush(60)
    (span,) = exporter.named("answer")
    # A worker that a loaded machine starts late: its score comes as a span of its own.
    late = [dict(one.attributes or {}) for one in exporter.spans if one.name.startswith("evaluation ")]
    scores = event_scores(span) | {str(attributes[s.EVALUATION_NAME]): attributes for attributes in late}
    assert scores["whose"][s.SCORE_LABEL] == "acme"
    assert scores["whose"][s.EXPLANATION] == "the application says so"
    assert scores["elsewhere"][s.SCORE_VALUE] not in (0, os.getpid())
