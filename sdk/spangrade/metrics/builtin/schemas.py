"""JSON Schema as `json_schema` and `tool_calls_valid` use it: Draft 2020-12 by default, nothing fetched, patterns that end.

jsonschema is imported here, when the first schema is compiled.
"""

from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final
from urllib.parse import unquote

from spangrade._log import once
from spangrade._text import bounded
from spangrade.errors import ConfigError
from spangrade.metrics.builtin.options import extra
from spangrade.metrics.builtin.searching import Pattern
from spangrade.model.sample import thaw

MAX_FAULTS: Final = 5
_MAX_SEEN: Final = 50
_MAX_MESSAGE: Final = 200
_NEVER_CHECKED: Final = frozenset(
    {"int32", "int64", "float", "double", "password", "byte", "binary"}
)  # OpenAPI's words


class BadSchema(ValueError):
    """What is wrong with a schema."""


class Validator:
    """A compiled schema.

    Args:
        schema: JSON Schema as a dict or bool; ``$schema`` chooses the draft, 2020-12 without it.
        formats: whether ``format`` is checked.

    Raises:
        Skip: the extra ``schema`` is not installed.
        BadSchema: it is no JSON Schema, or it refers to something outside itself.
    """

    def __init__(self, schema: Any, *, formats: bool = True) -> None:
        jsonschema = extra("jsonschema", "schema")
        referencing = extra("referencing", "schema")
        schema = thaw(schema)
        self._best_match = jsonschema.exceptions.best_match
        self._unresolvable = extra("referencing.exceptions", "schema").Unresolvable
        if not isinstance(schema, (dict, bool)):
            raise BadSchema(f"{type(schema).__name__} is no JSON Schema; give an object")
        draft = jsonschema.validators.validator_for(schema, default=jsonschema.Draft202012Validator)
        try:
            draft.check_schema(schema)
        except jsonschema.SchemaError as fault:
            raise BadSchema(f"not a JSON Schema at {fault.json_path}: {bounded(fault.message, _MAX_MESSAGE)}") from None
        except RecursionError:
            raise BadSchema("nested too deep") from None
        self._patterns: dict[str, Pattern] = {}
        _check(schema, self._compile, draft.FORMAT_CHECKER.checkers if formats else None)
        limited = jsonschema.validators.extend(draft, self._keywords(jsonschema.ValidationError))
        # An empty registry retrieves nothing: a reference to elsewhere is an error and no request.
        self._validator = limited(
            schema, registry=referencing.Registry(), format_checker=draft.FORMAT_CHECKER if formats else None
        )

    def faults(self, value: Any) -> tuple[list[str], int]:
        """``(sentences, how many)``: at most `MAX_FAULTS` sentences with the JSON path, the most telling first.

        Raises:
            TookTooLong: a pattern of the schema was stopped.
            BadSchema: a reference leads nowhere.
        """
        errors = []
        try:
            for error in self._validator.iter_errors(thaw(value)):
                errors.append(error)
                if len(errors) >= _MAX_SEEN:
                    break
            best = self._best_match(errors)
        except self._unresolvable as fault:
            raise BadSchema(f"a reference leads nowhere: {bounded(str(fault), _MAX_MESSAGE)}") from None
        except RecursionError:
            raise BadSchema("the schema or the value refers to itself without end") from None
        ordered = [best, *(error for error in errors if error is not best)] if best is not None else []
        return [_sentence(error) for error in ordered[:MAX_FAULTS]], len(errors)

    def _compile(self, pattern: str) -> None:
        self._patterns.setdefault(pattern, Pattern(pattern, what="schema"))

    def _found(self, pattern: str, text: str) -> bool:
        if pattern not in self._patterns:
            self._compile(pattern)
        return self._patterns[pattern].search(text) is not None

    def _keywords(self, error: Any) -> dict[str, Callable[..., Iterator[Any]]]:
        """The keywords that search with a pattern, with one that ends."""

        def pattern(validator: Any, given: str, instance: Any, _schema: Any) -> Iterator[Any]:
            if validator.is_type(instance, "string") and not self._found(given, instance):
                yield error(f"{_short(instance)} does not match {given!r}")

        def pattern_properties(validator: Any, given: Mapping[str, Any], instance: Any, _schema: Any) -> Iterator[Any]:
            if validator.is_type(instance, "object"):
                for key, held in instance.items():
                    for one, subschema in given.items():
                        if self._found(one, key):
                            yield from validator.descend(held, subschema, path=key, schema_path=one)

        def additional_properties(validator: Any, given: Any, instance: Any, schema: Any) -> Iterator[Any]:
            if not validator.is_type(instance, "object"):
                return
            named, patterns = schema.get("properties", {}), schema.get("patternProperties", {})
            others = [k for k in instance if k not in named and not any(self._found(one, k) for one in patterns)]
            if validator.is_type(given, "object"):
                for key in others:
                    yield from validator.descend(instance[key], given, path=key)
            elif not given and others:
                yield error(f"unexpected: {', '.join(repr(key[:40]) for key in others[:5])}")

        return {
            "pattern": pattern,
            "patternProperties": pattern_properties,
            "additionalProperties": additional_properties,
        }


def _short(value: Any) -> str:
    return repr(bounded(value, 80)) if isinstance(value, str) else bounded(repr(value), 80)


def _sentence(error: Any) -> str:
    return f"{bounded(error.json_path, _MAX_MESSAGE)}: {bounded(error.message, _MAX_MESSAGE)}"


def _check(schema: Any, compile_pattern: Callable[[str], None], formats: Mapping[str, Any] | None) -> None:
    """Patterns that compile, references that stay inside, and a line in the log for formats that nobody here checks."""
    ids = {item["$id"] for item in _subschemas(schema) if isinstance(item.get("$id"), str)}
    for item in _subschemas(schema):
        for reference in (item.get("$ref"), item.get("$dynamicRef")):
            if not isinstance(reference, str):
                continue
            if reference.startswith(("https://json-schema.org/draft/", "http://json-schema.org/draft-")):
                continue  # the drafts' own schemas come with jsonschema
            document, _, pointer = reference.partition("#")
            if document and not ids:
                raise BadSchema(
                    f"it refers to {reference[:200]!r}, and nothing is fetched; put that schema under $defs"
                )
            if not ids and pointer.startswith("/") and not _leads_somewhere(schema, pointer):
                raise BadSchema(f"it refers to {reference[:200]!r}, which is not in it")
        named = item.get("patternProperties")
        for pattern in (item.get("pattern"), *(named if isinstance(named, dict) else ())):
            if isinstance(pattern, str) and pattern:
                try:
                    compile_pattern(pattern)
                except ConfigError as fault:
                    raise BadSchema(str(fault)) from None
        form = item.get("format")
        if formats is not None and isinstance(form, str) and form not in formats and form not in _NEVER_CHECKED:
            once(
                f"schema:format:{form[:40]}",
                "a schema's format is not checked: no package for it is installed",
                format=form[:40],
            )


def _leads_somewhere(schema: Any, pointer: str) -> bool:
    """Whether a JSON pointer (RFC 6901) finds something."""
    at = schema
    for part in pointer.split("/")[1:]:
        key = unquote(part).replace("~1", "/").replace("~0", "~")
        if isinstance(at, dict) and key in at:
            at = at[key]
        elif isinstance(at, list) and key.isdecimal() and int(key) < len(at):
            at = at[int(key)]
        else:
            return False
    return True


def _subschemas(schema: Any) -> Iterator[dict[str, Any]]:
    """Every object that may be a schema; what stands in an example or a constant is none."""
    todo = [schema]
    while todo:
        item = todo.pop()
        if isinstance(item, dict):
            yield item
            todo += [
                value for key, value in item.items() if key not in ("const", "enum", "default", "examples", "example")
            ]
        elif isinstance(item, list):
            todo += item
