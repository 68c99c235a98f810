"""Errors as problem objects (RFC 9457), which name the field and the way out."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from http import HTTPStatus
from typing import Final

from pydantic import ValidationError

from spangrade_agent.api.models import FieldProblem, Problem
from spangrade_agent.page.api import answer_json
from spangrade_agent.page.asgi import Answer

PROBLEM: Final = "application/problem+json"
_AGENTS_OWN: Final = frozenset(
    {"base_url", "api_key", "api_key_file", "headers", "proxy", "ca_file", "provider", "client"}
)
_TAGS: Final = (
    "LivePolicy",
    "function-",
    "constrained-",
    "list[",
    "dict[",
    "bool",
    "str",
    "float",
    "int",
)  # of unions: not keys
_MOST: Final = 20


def problem(
    status: int, detail: str, errors: Sequence[FieldProblem] = (), headers: tuple[tuple[str, str], ...] = ()
) -> Answer:
    """An error; ``detail`` is a sentence."""
    made = Problem(title=HTTPStatus(status).phrase, status=status, detail=detail, errors=list(errors))
    return replace(answer_json(status, made.model_dump()), content_type=PROBLEM, headers=headers)


def of_field(status: int, field: str, message: str) -> Answer:
    """An error of one field."""
    return problem(status, "the request cannot be taken", [FieldProblem(field=field, message=message)])


def of_validation(fault: ValidationError, known: Mapping[str, Sequence[str]]) -> Answer:
    """What pydantic says of a body, without what stood there. ``known``: the keys that a place (with dots) may have."""
    errors = fault.errors(include_url=False, include_input=False, include_context=False)
    if any(error["type"] == "json_invalid" for error in errors):
        return problem(400, "the body is not JSON: send one JSON object", [])
    found: dict[str, list[str]] = {}
    for error in errors[:_MOST]:
        place = [str(part) for part in error["loc"] if not str(part).startswith(_TAGS)]
        said = found.setdefault(".".join(place) or "(the body)", [])
        said.append(_message(error["type"], error["msg"], place, known))
    # Several for one field: it may be one thing or another, and is neither.
    found_problems = [FieldProblem(field=field, message=", or: ".join(said)) for field, said in found.items()]
    return problem(422, "the request cannot be taken", found_problems)


def _message(kind: str, message: str, place: Sequence[str], known: Mapping[str, Sequence[str]]) -> str:
    if kind == "missing":
        return "is missing"
    if kind != "extra_forbidden":
        return message.removeprefix("Value error, ")
    if place and place[-1] in _AGENTS_OWN:
        return (
            "is not a registration's to say: addresses and keys come from judge_endpoints in the agent's configuration"
        )
    there = known.get(".".join(place[:-1]))
    return "is not known" + (f"; there are {', '.join(there)}" if there else "")
