"""`LocalMetric`: how a Sample becomes the function's arguments, and what is refused."""

from typing import Any

import pytest

from spangrade.errors import ConfigError
from spangrade.metrics.catalog import BUILTIN, resolve
from spangrade.metrics.local import LocalMetric, metric
from spangrade.model.sample import Sample
from spangrade.model.score import Skip

SAMPLE = Sample(input="q", output="a b", expected="e", documents=[{"content": "d"}], metadata={"m": 1})


def value(fn: Any) -> Any:
    verdict = (fn if isinstance(fn, LocalMetric) else metric(fn)).evaluate(SAMPLE)
    return verdict.scores[0].structured or verdict.scores[0].label  # type: ignore[union-attr]


def test_parameters_are_filled_by_name_and_alias() -> None:
    assert value(lambda output: [output]) == ["a b"]
    assert value(lambda question, answer, reference: [question, answer, reference]) == ["q", "a b", "e"]
    assert value(lambda response, *, contexts=(), extra=3: [response, contexts[0]["content"], extra]) == ["a b", "d", 3]
    assert value(lambda sample: [sample.input]) == ["q"]
    assert value(lambda anything: [anything.output]) == ["a b"]
    assert value(lambda item, output: [item["expected"], item["metadata"]["m"], output]) == ["e", 1, "a b"]
    assert value(lambda example, prediction: [example["input"], prediction]) == ["q", "a b"]


def test_a_positional_only_function_is_filled_in_its_order() -> None:
    def f(output: str, question: str, /) -> list[str]:
        return [output, question]

    assert value(f) == ["a b", "q"]


def test_a_callable_object_and_a_bound_method_are_metrics() -> None:
    class Length:
        def __call__(self, output: str) -> list[int]:
            return [len(output)]

        def method(self, sample: Sample) -> list[str]:
            return [sample.output]

    assert value(LocalMetric(Length())) == [3]
    assert LocalMetric(Length()).name == "Length"
    assert value(Length().method) == ["a b"]


@pytest.mark.parametrize(
    ("make", "sentence"),
    [
        (lambda: metric(lambda a, b, c: 1), "parameters a, b, c cannot be filled"),
        (lambda: metric(lambda output, tenant: 1), "parameters tenant cannot be filled"),
        (lambda: metric(lambda: 1), "cannot be filled"),
        (lambda: metric(requires=["outputs"])(lambda output: 1), "requires 'outputs'"),
        (lambda: metric(target="roots")(lambda output: 1), "target 'roots' is not one of root, llm"),
        (lambda: metric(threshold="high")(lambda output: 1), "threshold 'high' is not a number"),  # type: ignore[call-overload]
        (lambda: metric(threshold=float("nan"))(lambda output: 1), "threshold nan is not a number"),
        (lambda: metric(threshold=True)(lambda output: 1), "threshold True is not a number"),
        (lambda: metric(timeout=0)(lambda output: 1), "timeout 0"),
        (lambda: metric(timeout="5")(lambda output: 1), "timeout '5' is not a number of seconds"),  # type: ignore[call-overload]
        (lambda: metric(timeout=float("nan"))(lambda output: 1), "timeout nan"),
        (lambda: metric(config="v2")(lambda output: 1), "config 'v2' is not a dict"),  # type: ignore[call-overload]
        (lambda: metric(config="v2", version=2)(lambda output: 1), "config 'v2' is not a dict"),  # type: ignore[call-overload]
        (lambda: metric(requires=[None])(lambda output: 1), "requires None"),  # type: ignore[list-item]
        (lambda: metric(process=2)(lambda output: 1), "process 2 is neither True"),  # type: ignore[call-overload]
        (lambda: metric(name=" ")(lambda output: 1), "is empty"),
        (lambda: LocalMetric("overlap"), "is not a function"),  # type: ignore[arg-type]
    ],
)
def test_what_cannot_work_is_refused_when_it_is_made(make: Any, sentence: str) -> None:
    with pytest.raises(ConfigError, match=sentence):
        make()


def test_identity_is_name_config_and_target_and_not_threshold() -> None:
    def f(output: str) -> int:
        return 1

    plain = LocalMetric(f).info
    assert (plain.name, plain.version, plain.config_hash) == ("f", None, "")
    assert LocalMetric(f, threshold=0.5).info.key == plain.key
    one, two = metric(version=1)(f).info, metric(version=2)(f).info
    assert (one.version, two.version) == ("1", "2")
    assert one.config_hash != two.config_hash
    assert metric(config={"b": 1, "a": 2})(f).info.config_hash == metric(config={"a": 2, "b": 1})(f).info.config_hash


def test_a_metric_can_still_be_called_and_read_as_its_function() -> None:
    @metric(threshold=1)
    def double(output: int) -> int:
        """Twice."""
        return 2 * output

    assert double(4) == 8
    assert (double.__name__, double.__doc__) == ("double", "Twice.")


def test_builtins_are_found_by_name_and_paths_by_import() -> None:
    assert {"overlap", "json_valid", "length_words", "no_refusal"} <= set(BUILTIN)
    assert resolve("overlap") is resolve("overlap")
    assert resolve("spangrade.metrics.builtin.json_valid:json_valid") is resolve("json_valid")
    with pytest.raises(ConfigError, match="has no 'nothing'"):
        resolve("spangrade.metrics.builtin.json_valid:nothing")


# --- the built-in ones ---------------------------------------------------------------------------------------------------


def overlap(answer: Any, *documents: str) -> Any:
    return resolve("overlap").evaluate(Sample(output=answer, documents=[{"content": d} for d in documents]))


def test_overlap_tells_support_from_its_absence_and_quotes_the_weakest_sentence() -> None:
    source = "A refund takes five working days. Gift cards cannot be refunded."
    assert overlap("The refund takes five working days.", source).scores[0].value > 0.9
    wrong = overlap("The refund takes five working days. Elephants deliver it by moonlight.", source).scores[0]
    assert 0.3 < wrong.value < 0.7
    assert "Elephants deliver it by moonlight." in wrong.explanation
    assert "elephants" in wrong.explanation
    assert overlap("Elephants sing.", source).scores[0].passed is False


def test_overlap_skips_what_it_cannot_judge() -> None:
    for answer, documents in (("x", ()), ("the of and", ("a text",)), ("words here", ("",))):
        with pytest.raises(Skip):
            overlap(answer, *documents)


def test_overlap_reads_structured_answers_and_other_scripts() -> None:
    assert overlap({"days": "five working days"}, "It takes five working days").scores[0].value == 1
    assert overlap("Возврат занимает пять дней.", "Возврат занимает пять рабочих дней.").scores[0].value > 0.7


@pytest.mark.parametrize(
    ("text", "valid"),
    [
        ('{"a": 1}', 1),
        ("```json\n[1]\n```", 1),
        ("NaN", 0),
        ("{'a': 1}", 0),
        ("", None),
        ("x" * 10, 0),
        ("[" * 100_000, 0),
    ],
)
def test_json_valid(text: str, valid: int | None) -> None:
    if valid is None:
        with pytest.raises(Skip):
            resolve("json_valid").evaluate(Sample(output=text))
    else:
        assert resolve("json_valid").evaluate(Sample(output=text)).scores[0].value == valid


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("I'm sorry, I can't help with that.", 0),
        ("I don’t know.", 0),
        ("Five days.", 1),
        ("You cannot return gift cards.", 1),
    ],
)
def test_no_refusal(text: str, value: int) -> None:
    assert resolve("no_refusal").evaluate(Sample(output=text)).scores[0].value == value
