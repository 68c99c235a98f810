"""`regex` and `keywords`."""

import re
import sys
from collections.abc import Callable
from typing import Any

import pytest

from spangrade.errors import ConfigError
from spangrade.metrics.builtin.keywords import keywords
from spangrade.metrics.builtin.regex import regex
from spangrade.metrics.catalog import resolve
from spangrade.model.score import Graded, ReturnError, Skip

Grade = Callable[..., Graded]


@pytest.mark.parametrize(
    ("options", "output", "value"),
    [
        ({"pattern": r"\d+"}, "5 days", 1),
        ({"pattern": r"\d+"}, "five days", 0),
        ({"pattern": r"\d+", "must": "not_match"}, "5 days", 0),
        ({"pattern": r"\d+", "must": "not_match"}, "five days", 1),
        ({"pattern": "^x$"}, "a\nx\nb", 0),
        ({"pattern": "^x$", "flags": re.MULTILINE}, "a\nx\nb", 1),
        ({"pattern": "^X$", "flags": re.MULTILINE | re.IGNORECASE}, "a\nx\nb", 1),
        ({"pattern": "^X$", "flags": "im"}, "a\nx\nb", 1),
        ({"pattern": "^X$", "flags": ["ignorecase", "MULTILINE"]}, "a\nx\nb", 1),
        ({"pattern": r'"price": \d'}, {"price": 3}, 1),
        ({"pattern": r"(?<=€)\d+(?!\d)"}, "€12", 1),
        ({"pattern": r"(\w+) \1"}, "the the", 1),
    ],
)
def test_regex_matches_or_must_not(grade: Grade, options: Any, output: Any, value: int) -> None:
    score = grade(regex(**options), output=output)
    assert score.value == value
    assert score.passed is bool(value)


@pytest.mark.parametrize("engine", ["with", "without"])
def test_regex_works_with_and_without_the_extra(monkeypatch: pytest.MonkeyPatch, grade: Grade, engine: str) -> None:
    if engine == "without":
        monkeypatch.setitem(sys.modules, "regex", None)
    metric = regex(r"order (\d+)")
    assert "at character 3: “order 12”" in (grade(metric, output="my order 12").explanation or "")


def test_a_pattern_without_end_is_stopped_and_is_no_match(grade: Grade) -> None:
    for must in ("match", "not_match"):
        with pytest.raises(ReturnError, match="took longer than 1 s on 61 characters"):
            grade(regex(r"^(a|aa)+$", must=must), output="a" * 60 + "b")


@pytest.mark.parametrize(
    ("make", "sentence"),
    [
        (regex, "give the pattern"),
        (lambda: regex("("), "is not a regular expression"),
        (lambda: regex(5), "is not a regular expression"),  # type: ignore[arg-type]
        (lambda: regex("a", must="contain"), "must 'contain' is not one of match, not_match"),
        (lambda: regex("a", flags="q"), "flags 'q' are not flags"),
        (lambda: regex("a", flags=1 << 20), "are not flags"),
        (lambda: regex("a", field="answer"), "field 'answer' is not one of"),
        (keywords, "at least one word"),
        (lambda: keywords(all_of=["a", " "]), "all_of holds ' '"),
        (lambda: keywords(none_of=5), "none_of 5 is not a list"),  # type: ignore[arg-type]
        (lambda: keywords(["a"], field="outputs"), "field 'outputs'"),
        (lambda: resolve("regex"), "give the pattern"),
        (lambda: resolve("keywords"), "at least one word"),
    ],
)
def test_a_rule_that_cannot_work_is_refused(make: Any, sentence: str) -> None:
    with pytest.raises(ConfigError, match=sentence):
        make()


@pytest.mark.parametrize(
    ("options", "output", "value", "says"),
    [
        ({"all_of": ["refund", "days"]}, "A Refund takes five DAYS.", 1, "hold"),
        ({"all_of": ["refund", "days"]}, "A refund.", 0, "missing: days"),
        ({"any_of": ["a", "b"]}, "only b", 1, "hold"),
        ({"any_of": ["x", "z"]}, "only b", 0, "none of: x, z"),
        ({"none_of": "cat"}, "concatenate", 1, "hold"),
        ({"none_of": "cat"}, "my cat", 0, "should not be there: cat"),
        ({"none_of": "cat", "whole_words": False}, "concatenate", 0, "cat"),
        ({"all_of": "ACME", "case_sensitive": True}, "acme", 0, "missing"),
        ({"all_of": "C++"}, "Use c++.", 1, "hold"),
        ({"all_of": ".NET"}, "ASP.NET runs on .net", 1, "hold"),
        ({"none_of": "C"}, "Use C++", 0, "C"),
        ({"all_of": "gift card"}, "a gift\n   card", 1, "hold"),
        ({"all_of": "gift card"}, "a giftcard", 0, "missing"),
        ({"all_of": "café"}, "the cafe\u0301", 1, "hold"),
        ({"all_of": "don't"}, "we don’t", 1, "hold"),
        ({"all_of": "退款"}, "可以退款。", 1, "hold"),
        ({"all_of": "STRASSE"}, "die Straße", 1, "hold"),
        ({"all_of": "मदद"}, "मददगार", 0, "missing"),
        ({"all_of": ["yes", "5"]}, {"answer": ["yes", 5]}, 1, "hold"),
        ({"all_of": ["answer"]}, {"answer": "yes"}, 0, "missing"),
        ({"all_of": ["a.b"]}, "axb", 0, "missing"),
    ],
)
def test_keywords_are_found_as_words(grade: Grade, options: Any, output: Any, value: int, says: str) -> None:
    score = grade(keywords(**options), output=output)
    assert score.value == value
    assert says in (score.explanation or "")


def test_rules_may_look_at_another_field_and_skip_where_it_is_empty(grade: Grade) -> None:
    assert grade(keywords(["hello"], field="input"), input="Hello!", output="x").value == 1
    assert grade(regex("d1", field="documents"), documents=[{"id": "d1", "content": ""}]).value == 1
    for metric in (keywords(["hello"], field="input"), regex("a", field="input")):
        with pytest.raises(Skip, match="input missing"):
            grade(metric, output="x")


def test_two_rules_are_two_metrics_and_the_same_rule_is_one() -> None:
    assert regex("a").info.key != regex("b").info.key
    assert regex("a", flags="i").info.key == regex("a", flags=re.I).info.key != regex("a").info.key
    assert keywords(["a"]).info.key != keywords(any_of=["a"]).info.key
    assert keywords(["a"]).info.key == keywords(("a",)).info.key == keywords("a").info.key
