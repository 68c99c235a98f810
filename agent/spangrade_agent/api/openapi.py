"""The OpenAPI 3.1 document of the registry, made of the models that validate its requests and make its answers."""

from collections.abc import Mapping, Sequence
from functools import cache
from typing import Any, Final

from pydantic import BaseModel
from pydantic.json_schema import models_json_schema

from spangrade._version import __version__
from spangrade_agent.api import models as m
from spangrade_agent.api.problems import PROBLEM

_REF: Final = "#/components/schemas/{model}"
_REQUESTS: Final[Sequence[type[BaseModel]]] = (m.Registration, m.Preview, m.Activation, m.Nothing)
_ANSWERS: Final[Sequence[type[BaseModel]]] = (
    m.EvaluatorView, m.EvaluatorWhole, m.EvaluatorList, m.VersionWhole, m.PreviewView, m.Problem,
)  # fmt: skip
_ID: Final = {"name": "id", "in": "path", "required": True, "schema": {"type": "string", "pattern": m.EVALUATOR_ID}}
_VERSION: Final = {
    "name": "version",
    "in": "path",
    "required": True,
    "schema": {"type": "integer", "minimum": 1, "maximum": 999_999},
}
_ERRORS: Final[Mapping[int, str]] = {
    400: "no JSON, or a query that cannot be read",
    401: "no token, or a wrong one",
    404: "there is no such thing, or no registry",
    405: "another method",
    409: "as things stand it cannot be: not live, full, or a twin grades already",
    413: "the body is too long",
    415: "the body is not said to be JSON",
    421: "another Host than the page's",
    422: "a field that cannot be taken; `errors` names it",
    429: "too many previews are under way",
    503: "the registry's file cannot be used now",
}
_ALWAYS: Final = (401, 404, 405, 421, 503)
_POSTED: Final = (400, 413, 415, 422)


@cache
def document() -> dict[str, Any]:
    """The document; the same object each time."""
    pairs: list[tuple[type[BaseModel], Any]] = [(model, "validation") for model in _REQUESTS]
    pairs += [(model, "serialization") for model in _ANSWERS]
    names, schemas = models_json_schema(pairs, ref_template=_REF)
    refs = {model.__name__: schema for (model, _mode), schema in names.items()}

    def answers(statuses: Sequence[int], model: type[BaseModel], errors: Sequence[int]) -> dict[str, Any]:
        found = {str(status): _content("application/json", refs[model.__name__], "as asked") for status in statuses}
        return found | {
            str(status): _content(PROBLEM, refs["Problem"], _ERRORS[status]) for status in sorted((*_ALWAYS, *errors))
        }

    def get(
        name: str, summary: str, model: type[BaseModel], *parameters: Any, errors: Sequence[int] = ()
    ) -> dict[str, Any]:
        return {
            "operationId": name,
            "summary": summary,
            "parameters": list(parameters),
            "responses": answers((200,), model, errors),
        }

    def post(
        name: str, summary: str, asked: type[BaseModel], model: type[BaseModel], *parameters: Any,
        statuses: Sequence[int] = (200,), errors: Sequence[int] = (), required: bool = True,
    ) -> dict[str, Any]:  # fmt: skip
        body = {"required": required, "content": {"application/json": {"schema": refs[asked.__name__]}}}
        responses = answers(statuses, model, (*_POSTED, *errors))
        return {
            "operationId": name, "summary": summary, "parameters": list(parameters), "requestBody": body, "responses": responses,
        }  # fmt: skip

    root = "/v1/evaluators"
    paths = {
        root: {
            "get": get("listEvaluators", "List", m.EvaluatorList, *_query(), errors=(400, 422)),
            "post": post(
                "registerEvaluator",
                "Create, or reuse by configuration",
                m.Registration,
                m.EvaluatorView,
                statuses=(200, 201),
                errors=(409,),
            ),
        },
        f"{root}/preview": {
            "post": post(
                "previewEvaluator", "Grade one sample; nothing is stored", m.Preview, m.PreviewView, errors=(429,)
            )
        },
        f"{root}/{{id}}": {
            "get": get("getEvaluator", "One, with its versions", m.EvaluatorWhole, _ID),
            "delete": {
                "operationId": "deleteEvaluator",
                "summary": "Forget one that is paused, with all its versions",
                "parameters": [_ID],
                "responses": {
                    "204": {"description": "it is gone"},
                    **answers((), m.Nothing, (400, 409, 413, 415, 422)),
                },
            },
        },
        f"{root}/{{id}}/versions/{{version}}": {
            "get": get("getVersion", "One version, with its configuration", m.VersionWhole, _ID, _VERSION)
        },
        f"{root}/{{id}}/activate": {
            "post": post(
                "activateEvaluator",
                "Let a version grade production traffic",
                m.Activation,
                m.EvaluatorView,
                _ID,
                errors=(409,),
                required=False,
            )
        },
        f"{root}/{{id}}/pause": {
            "post": post(
                "pauseEvaluator", "Let none of its versions grade", m.Nothing, m.EvaluatorView, _ID, required=False
            )
        },
    }
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "Spangrade agent: registry of judges",
            "version": __version__,
            "description": "Judges that applications register. Where their models run, and with which key, is the agent's to say.",
        },
        "paths": paths,
        "components": {
            "schemas": schemas["$defs"],
            "securitySchemes": {
                "token": {"type": "http", "scheme": "bearer", "description": "page.token, where one is set"}
            },
        },
        "security": [{"token": []}],
    }


def _content(kind: str, schema: Any, description: str) -> dict[str, Any]:
    return {"description": description, "content": {kind: {"schema": schema}}}


def _query() -> list[dict[str, Any]]:
    properties: Mapping[str, Mapping[str, Any]] = m.ListQuery.model_json_schema()["properties"]
    return [
        {"name": name, "in": "query", "required": False, "schema": _plain(schema)}
        for name, schema in properties.items()
    ]


def _plain(schema: Mapping[str, Any]) -> dict[str, Any]:
    """Without the null, which no query can hold: a parameter is left out then."""
    choices = [choice for choice in schema.get("anyOf", ()) if choice.get("type") != "null"]
    return {**choices[0]} if choices else {name: value for name, value in schema.items() if name != "title"}
