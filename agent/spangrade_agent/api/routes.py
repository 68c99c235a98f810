"""The registry of judges over HTTP.

| method and path | what |
|---|---|
| ``POST /v1/evaluators`` | create a judge (201), or reuse the one with the same configuration (200) |
| ``GET /v1/evaluators`` | list; ``?project_id=``, ``?name=``, ``?limit=`` 1 to 500, ``?after=`` |
| ``GET /v1/evaluators/{id}`` | one, with its versions |
| ``DELETE /v1/evaluators/{id}`` | forget a judge with all its versions, once it is paused |
| ``GET /v1/evaluators/{id}/versions/{version}`` | one version, with its configuration |
| ``POST /v1/evaluators/{id}/activate`` | let a version grade production traffic: ``{"version": 2}``, or the latest |
| ``POST /v1/evaluators/{id}/pause`` | let none |
| ``POST /v1/evaluators/preview`` | grade one sample now; nothing is stored. All previews together have the ceilings of ``registry.budget`` |
| ``GET /openapi.json`` | this, for programs |

Errors are problem objects: 400 no JSON, 401 no token, 404, 405, 409 as things stand it cannot be, 413, 415, 422 by field, 429 too
many previews, 503 the file cannot be used. It stands on the page's listener, behind the page's token.
"""

import re
import threading
from collections.abc import Callable, Mapping
from typing import Any, Final, TypeVar

from pydantic import BaseModel, ValidationError

from spangrade.errors import JudgeError
from spangrade.model.sample import Sample
from spangrade.scoring.redaction import Redact, redacted
from spangrade_agent.api import models as m
from spangrade_agent.api.openapi import document
from spangrade_agent.api.problems import of_field, of_validation, problem
from spangrade_agent.page.access import Gate
from spangrade_agent.page.api import answer_json
from spangrade_agent.page.asgi import Answer, Request
from spangrade_agent.registered import NotLive, Refused, RegisteredJudges
from spangrade_agent.registry import Record, RegistryFull, RegistryUnavailable

ROOT: Final = "/v1/evaluators"
MAX_REGISTRATION: Final = 512 * 1024
MAX_PREVIEW: Final = 4 * 1024 * 1024
MAX_PREVIEWS: Final = 4  # under way at once: each has a thread for as long as a model takes
_ONE: Final = re.compile(
    rf"{ROOT}/(?P<id>ev_[0-9a-f]{{24}})(?:/(?P<what>activate|pause|versions/(?P<version>\d{{1,6}})))?"
)
_KNOWN: Final[Mapping[str, tuple[str, ...]]] = {
    "config": tuple(m.JudgeConfig.model_fields),
    "live": tuple(m.LivePolicy.model_fields),
    "sample": tuple(m.PreviewSample.model_fields),
}
Model = TypeVar("Model", bound=BaseModel)


class _Refusal(Exception):
    """Carries the answer out of a handler."""

    def __init__(self, answer: Answer) -> None:
        super().__init__()
        self.answer = answer


class Api:
    """What the page's listener has for programs. ``judges``: None where the configuration names no registry."""

    def __init__(self, judges: RegisteredJudges | None, redact: Redact | None = None) -> None:
        self._judges = judges
        self._redact = redact
        self._previews = threading.BoundedSemaphore(MAX_PREVIEWS)

    def takes(self, path: str) -> int | None:
        """See `spangrade_agent.page.app.Programs`."""
        if path == f"{ROOT}/preview":
            return MAX_PREVIEW
        return MAX_REGISTRATION if path.startswith("/v1/") or path == "/openapi.json" else None

    def answer(self, request: Request, gate: Gate) -> Answer:
        """See `spangrade_agent.page.app.Programs`."""
        refusal = gate.refusal_of_programs(request)
        if refusal is not None:
            challenge = (("www-authenticate", 'Bearer realm="spangrade"'),) if refusal[0] == 401 else ()
            return problem(*refusal, headers=challenge)
        try:
            return self._answer(request)
        except _Refusal as refused:
            return refused.answer
        except ValidationError as fault:
            return of_validation(fault, _KNOWN)
        except Refused as fault:
            return of_field(422, fault.field, str(fault))
        except (NotLive, RegistryFull) as fault:
            return problem(409, str(fault))
        except RegistryUnavailable as fault:
            return problem(503, str(fault), headers=(("retry-after", "5"),))

    def _answer(self, request: Request) -> Answer:
        methods = self._at(request.path)
        method = "GET" if request.method == "HEAD" else request.method
        handler = methods.get(method)
        if handler is None:
            allowed = ", ".join([*methods, "HEAD"] if "GET" in methods else methods)
            raise _Refusal(problem(405, f"{request.path} takes {allowed}", headers=(("allow", allowed),)))
        return handler(request)

    def _at(self, path: str) -> Mapping[str, Callable[[Request], Answer]]:
        if path == "/openapi.json":
            return {"GET": lambda _request: answer_json(200, document())}
        judges = self._judges
        if judges is None:
            raise _Refusal(
                problem(
                    404,
                    "this agent has no registry of judges: give it one, registry: {path: ...}, in its configuration",
                )
            )
        if path == ROOT:
            return {
                "GET": lambda request: self._list(judges, request),
                "POST": lambda request: self._put(judges, request),
            }
        if path == f"{ROOT}/preview":
            return {"POST": lambda request: self._preview(judges, request)}
        found = _ONE.fullmatch(path)
        record = judges.registry.get(found["id"]) if found is not None else None
        if found is None or record is None:
            raise _Refusal(problem(404, f"there is no such evaluator; GET {ROOT} lists those that there are"))
        if found["version"] is not None:
            return {"GET": lambda _request: self._version(record, int(found["version"]))}
        if found["what"] == "activate":
            return {"POST": lambda request: self._activate(judges, record, request)}
        if found["what"] == "pause":
            return {"POST": lambda request: self._pause(judges, record, request)}
        return {
            "GET": lambda _request: _given(200, m.evaluator_whole(record, judges.problem(record))),
            "DELETE": lambda request: self._delete(judges, record, request),
        }

    # --- each ------------------------------------------------------------------------------------------------------------

    def _list(self, judges: RegisteredJudges, request: Request) -> Answer:
        if request.query is None:
            raise _Refusal(problem(400, "the query cannot be read"))
        query = m.ListQuery.model_validate(request.query)
        found = [
            record
            for record in judges.registry.all()
            if query.project_id in (None, record.project_id) and query.name in (None, record.name)
        ]
        if query.after is not None:
            at = next((n for n, record in enumerate(found, 1) if record.id == query.after), None)
            if at is None:
                raise _Refusal(of_field(422, "after", "is no id of this list; leave it out to begin at the first"))
            found = found[at:]
        shown = found[: query.limit]
        more = shown[-1].id if len(found) > len(shown) else None
        views = [m.evaluator_view(record, problem=judges.problem(record)) for record in shown]
        return _given(200, m.EvaluatorList(evaluators=views, next=more))

    def _put(self, judges: RegisteredJudges, request: Request) -> Answer:
        asked = _body(request, m.Registration)
        live = asked.live if isinstance(asked.live, bool) else asked.live.model_dump(exclude_none=True)
        record, version, new = judges.register(asked.project_id, _config(asked.config), asked.threshold, live)
        return _given(201 if new else 200, m.evaluator_view(record, version, judges.problem(record)))

    def _preview(self, judges: RegisteredJudges, request: Request) -> Answer:
        asked = _body(request, m.Preview)
        judge = judges.judge(_config(asked.config), asked.threshold)
        given = asked.sample
        documents: list[Any] = [{"content": d} if isinstance(d, str) else d for d in given.documents]
        sample = Sample(given.input, given.output, given.expected, documents, metadata=dict(given.metadata))
        if not self._previews.acquire(blocking=False):
            said = f"{MAX_PREVIEWS} previews are under way, as many as there may be; try again in a moment"
            raise _Refusal(problem(429, said, headers=(("retry-after", "2"),)))
        try:
            if self._redact is not None:
                sample = redacted(sample, self._redact)
            found = judges.previews.graded(judge, sample)
        except JudgeError as fault:
            return _given(200, m.PreviewView(score=None, explanation=None, prompt="", error=f"{fault.kind}: {fault}"))
        finally:
            self._previews.release()
        view = m.PreviewView(score=found.score, explanation=found.explanation, prompt=found.prompt, error=found.error)
        return _given(200, view)

    def _version(self, record: Record, number: int) -> Answer:
        version = record.numbered(number)
        if version is None:
            raise _Refusal(problem(404, f"there is no version {number}; there are 1 to {record.latest.version}"))
        return _given(200, m.version_view(record, version))

    def _activate(self, judges: RegisteredJudges, record: Record, request: Request) -> Answer:
        return self._one(judges, judges.activate(record, _body(request, m.Activation).version))

    def _pause(self, judges: RegisteredJudges, record: Record, request: Request) -> Answer:
        _body(request, m.Nothing)
        return self._one(judges, judges.pause(record))

    def _delete(self, judges: RegisteredJudges, record: Record, request: Request) -> Answer:
        _body(request, m.Nothing)
        if not judges.delete(record):
            raise _Refusal(problem(409, f"{record.name!r} grades production traffic: pause it, then delete it"))
        return Answer(204)

    def _one(self, judges: RegisteredJudges, record: Record | None) -> Answer:
        if record is None:
            raise _Refusal(problem(404, "there is no such evaluator any more"))
        version = None if record.active is None else record.numbered(record.active)
        return _given(200, m.evaluator_view(record, version, judges.problem(record)))


def _body(request: Request, shape: type[Model]) -> Model:
    if request.body is None:
        close = (("connection", "close"),)  # the rest of it is not read
        most = MAX_PREVIEW if shape is m.Preview else MAX_REGISTRATION
        raise _Refusal(problem(413, f"the body is longer than {most} bytes, or did not come in time", headers=close))
    kind = (request.header("content-type") or "").partition(";")[0].strip().lower()
    # A browser names an origin with everything that it posts. From a stranger's page it can post texts and forms without
    # asking us, and JSON not.
    if kind != "application/json" and (request.body or kind or "origin" in request.headers):
        raise _Refusal(problem(415, "the body must be JSON, said by 'Content-Type: application/json'"))
    return shape.model_validate_json(request.body or b"{}")


def _config(config: m.JudgeConfig) -> dict[str, Any]:
    """As `LlmJudge` takes it."""
    given = config.model_dump()
    return {
        **given,
        "fields": tuple(given["fields"]),
        "levels": given["levels"] or None,
        "examples": tuple(given["examples"]),
    }


def _given(status: int, view: BaseModel) -> Answer:
    return answer_json(status, view.model_dump(mode="json"))
