"""`json_valid` and `json_schema`."""

import json
import socket
import sys
from collections.abc import Callable
from typing import Any

import pytest
from pydantic import BaseModel

from spangrade.errors import ConfigError
from spangrade.metrics.builtin.json_schema import json_schema
from spangrade.metrics.catalog import resolve
from spangrade.model.sample import Sample
from spangrade.model.score import Graded, ReturnError, Skip

Grade = Callable[..., Graded]


@pytest.mark.parametrize(
    ("output", "value", "says"),
    [
        ('{"a": 1}', 1, "valid JSON"),
        ("```json\n[1]\n```", 1, "in a Markdown fence"),
        ("```\n{}\n```  \n", 1, "in a Markdown fence"),
        ("```json\n[1]\n```\nHope it helps!", 0, "Expecting value"),
        ("Here: ```json\n[1]\n```", 0, "Expecting value"),
        ("```json\n[1]\n```\n```json\n[2]\n```", 0, "Expecting value"),
        ("NaN", 0, "NaN is not JSON"),
        ('{"a": -Infinity}', 0, "-Infinity is not JSON"),
        ("{'a': 1}", 0, "double quotes"),
        ('{"a": 1,}', 0, "line 1 column"),
        ('{"a": 1} {"b": 2}', 0, "Extra data"),
        ('{"a": 1', 0, "delimiter"),
        ("[" * 100_000, 0, "too deep"),
        ("1" * 10_000, 1, "valid JSON"),
        ('{"a": 1, "b": 2, "a": 3}', 1, "'a' is given twice"),
        ('"\\ud83d"', 1, "valid JSON"),
        ({"a": [1, None, True]}, 1, "structured"),
        ({"a": float("nan")}, 0, "nan is not JSON"),
        ("\ufeff{}", 0, "BOM"),
        ("true", 1, "valid JSON"),
    ],
)
def test_json_valid_is_strict_and_says_where(grade: Grade, output: Any, value: int, says: str) -> None:
    score = grade("json_valid", output=output)
    assert score.value == value
    assert says in (score.explanation or "")
    assert score.passed is bool(value)


SCHEMA = {
    "type": "object",
    "required": ["name", "items"],
    "additionalProperties": False,
    "properties": {
        "name": {"type": "string", "pattern": "^[a-z]+$"},
        "items": {"type": "array", "items": {"$ref": "#/$defs/item"}},
        "when": {"format": "date-time"},
        "mail": {"format": "email"},
        "link": {"format": "uri"},
    },
    "$defs": {"item": {"type": "object", "required": ["price"], "properties": {"price": {"type": "number"}}}},
}


@pytest.mark.parametrize(
    ("output", "says"),
    [
        ('{"name": "tea", "items": [{"price": 1.5}]}', ""),
        ({"name": "tea", "items": []}, ""),
        ('```json\n{"name": "tea", "items": []}\n```', ""),
        ('{"name": "tea", "items": [{"price": 1}, {"price": "x"}]}', "$.items[1].price: 'x' is not of type 'number'"),
        ('{"name": "tea", "items": [{}]}', "$.items[0]: 'price' is a required property"),
        ('{"items": []}', "$: 'name' is a required property"),
        ('{"name": "TEA", "items": []}', "$.name: 'TEA' does not match '^[a-z]+$'"),
        ('{"name": "tea", "items": [], "extra": 1}', "$: unexpected: 'extra'"),
        ('{"name": "tea", "items": [], "when": "2024-02-30T10:00:00Z"}', "is not a 'date-time'"),
        ('{"name": "tea", "items": [], "mail": "nobody"}', "is not a 'email'"),
        ('{"name": "tea", "items": [], "link": "no link"}', "is not a 'uri'"),
        ('{"name": "tea", "items": [], "name": "tea"}', "the key 'name' is given twice"),
        ("tea", "not JSON: Expecting value"),
        ("[]", "$: [] is not of type 'object'"),
    ],
)
def test_json_schema_says_what_is_wrong_and_where(grade: Grade, output: Any, says: str) -> None:
    score = grade(json_schema(SCHEMA), output=output)
    assert score.value == (0 if says else 1)
    assert says in (score.explanation or "")


@pytest.mark.parametrize(
    ("schema", "sentence"),
    [
        (None, "give the schema"),
        ({"type": "objekt"}, r"not a JSON Schema at \$.type"),
        ("{", "the schema is no JSON"),
        (7, "int is no JSON Schema"),
        ({"pattern": "("}, "is not a 'regex'"),
        ({"$ref": "https://example.com/s.json"}, "nothing is fetched"),
        ({"properties": {"a": {"$ref": "other.json#/x"}}}, "nothing is fetched"),
        ({"$ref": "#/$defs/gone"}, "which is not in it"),
        ({"const": object()}, "the schema is no JSON"),
    ],
)
def test_a_schema_that_cannot_work_is_refused_when_the_metric_is_made(schema: Any, sentence: str) -> None:
    with pytest.raises(ConfigError, match=sentence):
        json_schema(schema)


def test_nothing_is_ever_fetched(monkeypatch: pytest.MonkeyPatch, grade: Grade) -> None:
    """Not even where a reference only shows up while validating."""

    def refuse(*_: Any, **__: Any) -> Any:
        raise AssertionError("a connection was made")

    monkeypatch.setattr(socket, "create_connection", refuse)
    monkeypatch.setattr(socket, "getaddrinfo", refuse)
    schema = {"$id": "https://example.com/root", "properties": {"a": {"$ref": "https://example.com/other"}}}
    try:
        metric = json_schema(schema)
    except ConfigError:
        return
    with pytest.raises(ReturnError, match="leads nowhere"):
        grade(metric, output='{"a": 1}')


def test_a_draft_of_its_own_is_kept(grade: Grade) -> None:
    old = {
        "$schema": "http://json-schema.org/draft-07/schema#",
        "definitions": {"n": {"type": "number"}},
        "$ref": "#/definitions/n",
    }
    assert grade(json_schema(old), output="1").value == 1
    assert grade(json_schema(json.dumps(old)), output='"x"').value == 0
    assert grade(json_schema(True), output="1").value == 1
    assert grade(json_schema({"$ref": "https://json-schema.org/draft/2020-12/schema"}), output='{"type": 5}').value == 0


def test_a_pydantic_model_is_a_schema(grade: Grade) -> None:
    class Offer(BaseModel):
        price: float

    assert grade(json_schema(Offer), output='{"price": 2}').value == 1
    assert "'price' is a required property" in (grade(json_schema(Offer), output="{}").explanation or "")


@pytest.mark.parametrize(
    "schema",
    [
        {"pattern": "^(a|aa)+$"},
        {"patternProperties": {"^(a|aa)+$": True}},
        {"patternProperties": {"^(a|aa)+$": True}, "additionalProperties": False},
        {"additionalProperties": {"pattern": "^(a|aa)+$"}},
    ],
)
def test_a_pattern_without_end_is_an_error_and_no_failed_answer(grade: Grade, schema: Any) -> None:
    evil = "a" * 60 + "b"
    with pytest.raises(ReturnError, match="took longer than 1 s"):
        grade(json_schema(schema), output=json.dumps(evil if "pattern" in schema else {evil: evil}))


def test_pattern_properties_and_additional_ones_hold_as_the_standard_says(grade: Grade) -> None:
    schema = {
        "properties": {"n": True},
        "patternProperties": {"^s_": {"type": "string"}},
        "additionalProperties": {"type": "integer"},
    }
    assert grade(json_schema(schema), output='{"n": null, "s_a": "x", "other": 3}').value == 1
    assert "$.s_a: 1 is not" in (grade(json_schema(schema), output='{"s_a": 1}').explanation or "")
    assert "$.other: 'x' is not" in (grade(json_schema(schema), output='{"other": "x"}').explanation or "")
    assert grade(json_schema({"pattern": "^x"}), output="5").value == 1  # of text only


def test_a_schema_that_refers_to_itself_ends(grade: Grade) -> None:
    tree = {
        "$defs": {"t": {"properties": {"c": {"$ref": "#/$defs/t"}}, "additionalProperties": False}},
        "$ref": "#/$defs/t",
    }
    assert grade(json_schema(tree), output='{"c": {"c": {}}}').value == 1
    assert grade(json_schema(tree), output='{"c": {"c": {"x": 1}}}').value == 0
    with pytest.raises(ReturnError, match="refers to itself"):
        grade(json_schema({"$ref": "#"}), output="1")


def test_the_schema_tells_two_metrics_apart_and_so_does_its_depth() -> None:
    def deep(leaf: str) -> Any:
        schema: Any = {"type": leaf}
        for _ in range(40):
            schema = {"properties": {"a": schema}}
        return schema

    one, two = json_schema(deep("string")).info, json_schema(deep("number")).info
    assert one.config_hash != two.config_hash
    assert (
        json_schema({"type": "string", "minLength": 1}).info.key
        == json_schema({"minLength": 1, "type": "string"}).info.key
    )


def test_without_the_extra_it_is_skipped_with_the_way_out(monkeypatch: pytest.MonkeyPatch, grade: Grade) -> None:
    monkeypatch.setitem(sys.modules, "jsonschema", None)
    metric = json_schema({"type": "object"})
    with pytest.raises(Skip, match=r'pip install "spangrade\[schema\]"'):
        grade(metric, output="{}")


def test_by_name_it_asks_for_its_schema() -> None:
    with pytest.raises(ConfigError, match="give the schema"):
        resolve("json_schema")


def test_an_empty_object_is_an_answer_and_an_empty_text_is_none(grade: Grade) -> None:
    assert grade(json_schema({"type": "object"}), output={}).value == 1
    with pytest.raises(Skip, match="output missing"):
        json_schema({"type": "object"}).evaluate(Sample(output=" "))
