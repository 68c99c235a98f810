"""`json_schema`: whether the answer is JSON of a given shape.

What it measures: 1 when the answer is strict JSON (see `json_valid`; a whole answer in a Markdown fence counts) and valid against a
JSON Schema, else 0 with what is wrong and the JSON path of it, the most telling fault first. ``format`` is checked (date, date-time,
time, email, hostname, ipv4, ipv6, uri, uuid, regex). An object with a key given twice fails: what it says depends on who reads it.

What it does not: whether the values are true. Nothing is ever fetched: a ``$ref`` to another address is refused when the metric is
made. A pattern that would search for ever is stopped after a second, and that call is an error and no failed answer.

Needs ``pip install "spangrade[schema]"``; without it every sample is skipped with that sentence.

Source: JSON Schema Draft 2020-12, or the draft that ``$schema`` names. No threshold: 0 fails, 1 passes.
"""

import json
from typing import Any

from spangrade.errors import ConfigError
from spangrade.metrics.builtin.jsontext import read_json
from spangrade.metrics.builtin.schemas import MAX_FAULTS, BadSchema, Validator
from spangrade.metrics.builtin.searching import TookTooLong
from spangrade.metrics.local import LocalMetric
from spangrade.model.sample import Sample, is_empty, thaw
from spangrade.model.score import ReturnError, Score, Skip


def json_schema(
    schema: Any = None,
    *,
    formats: bool = True,
    field: str = "output",
    name: str = "json_schema",
    target: str = "root",
) -> LocalMetric:
    """A metric that is 1 when the answer is JSON that is valid against ``schema``.

    Args:
        schema: a JSON Schema as a dict, as JSON text, or a pydantic model class.
        formats: False takes ``format`` as a remark, as the standard does.
        field: ``output``, or ``input`` or ``expected``.
        name: of the score; give each schema its own.
        target: what is scored, as in `LocalMetric`.

    Raises:
        ConfigError: no schema, one that is none, or one that refers to something outside itself.
    """
    what = f"metric {name!r}"
    given = _schema(what, schema)
    if field not in ("output", "input", "expected"):
        raise ConfigError(f"{what}: field {field!r} is not one of output, input, expected")
    validator: Validator | None = None
    missing = ""
    try:
        validator = Validator(given, formats=formats)
    except Skip as fault:
        missing = str(fault)
    except BadSchema as fault:
        raise ConfigError(f"{what}: {fault}") from None

    def rule(sample: Sample) -> Score:
        if validator is None:
            raise Skip(missing)
        if is_empty(getattr(sample, field)) and not isinstance(getattr(sample, field), (dict, list)):
            raise Skip(f"{field} missing")
        try:
            read = read_json(getattr(sample, field))
        except ValueError as fault:
            return Score(0, explanation=f"not JSON: {fault}")
        if read.repeated is not None:
            return Score(0, explanation=f"the key {read.repeated[:80]!r} is given twice in one object")
        try:
            faults, count = validator.faults(read.value)
        except (TookTooLong, BadSchema) as fault:
            raise ReturnError(str(fault)) from None
        if not faults:
            return Score(1, explanation="valid against the schema" + (", in a Markdown fence" if read.fenced else ""))
        more = f"; and {count - MAX_FAULTS} more" if count > MAX_FAULTS else ""
        return Score(0, explanation="; ".join(faults) + more)

    # As text, since a deep schema as a value would be cut, and the hash could not tell two apart.
    config = {"schema": json.dumps(given, sort_keys=True), "formats": formats, "field": field, "version": 1}
    return LocalMetric(rule, name, None, config, (), target)


def _schema(what: str, given: Any) -> Any:
    if isinstance(given, str):
        try:
            given = json.loads(given)
        except ValueError as fault:
            raise ConfigError(f"{what}: the schema is no JSON: {fault}") from None
    elif isinstance(given, type) and hasattr(given, "model_json_schema"):
        given = given.model_json_schema()
    if given is None:
        raise ConfigError(
            f"{what}: give the schema, as in json_schema({{'type': 'object'}}) or config: {{schema: {{type: object}}}}"
        )
    if not isinstance(given, (dict, bool)):
        raise ConfigError(
            f"{what}: {type(given).__name__} is no JSON Schema; give a dict, JSON text or a pydantic model"
        )
    try:
        json.dumps(given)
    except (TypeError, ValueError, RecursionError) as fault:
        raise ConfigError(f"{what}: the schema is no JSON: {fault}") from None
    return thaw(given)
