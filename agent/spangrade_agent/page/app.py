"""The page's ASGI application: the gate, the routes, and the headers that every answer has.

| path | what |
|---|---|
| ``/`` | counts and recent samples; ``?before=``, ``?evaluator=``, ``?label=``, ``?refresh=5`` |
| ``/samples/<id>`` | one sample |
| ``/api/samples``, ``/api/samples/<id>`` | the same as JSON; ``?limit=`` 1 to 500, ``?before=``, ``?evaluator=``, ``?label=`` |
| ``/api/traces/<trace id>`` | every sample of a trace, and what the store keeps of text |
| ``/api/traces/<trace id>/explain`` | what each of its calls was taken for, and why its scores are what they are |
| ``/api/outcomes`` | the counts |
| ``/v1/evaluators...``, ``/openapi.json`` | the registry of judges, see `spangrade_agent.api.routes` |
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Final, Protocol

from spangrade.model.policy import Placed
from spangrade.scoring.clock import Clock, SystemClock
from spangrade.scoring.outcomes import Ledger
from spangrade_agent.page.access import Gate
from spangrade_agent.page.api import answer_json, outcomes_json, sample_json, samples_json, trace_json
from spangrade_agent.page.asgi import Answer, AsgiApp, Request, application, text
from spangrade_agent.page.explained import explained_json
from spangrade_agent.page.incomplete import incomplete
from spangrade_agent.page.overview import PER_PAGE, REFRESH_S, Kept, View, overview
from spangrade_agent.page.settings import PageSettings, host_of
from spangrade_agent.page.story import login, missing, story
from spangrade_agent.page.style import CSP
from spangrade_agent.store import SampleStore

HTML: Final = "text/html; charset=utf-8"
MAX_LIMIT: Final = 500
TRACES: Final = "/api/traces/"
SAFE_HEADERS: Final = (
    ("content-security-policy", CSP),
    ("referrer-policy", "no-referrer"),
    ("cache-control", "no-store"),
    ("cross-origin-resource-policy", "same-origin"),
    ("cross-origin-opener-policy", "same-origin"),
    ("x-frame-options", "DENY"),
)


class Programs(Protocol):
    """What answers beside the page, for programs: it looks at methods itself."""

    def takes(self, path: str) -> int | None:
        """The most bytes that a body at this path may have; None: the path is the page's."""
        ...

    def answer(self, request: Request, gate: Gate) -> Answer:
        """What is at the request's path; asks the gate first."""
        ...


class NotAsked(ValueError):
    """A query that cannot be meant; the message says what can."""


def page_app(
    store: SampleStore | None,
    ledger: Ledger,
    settings: PageSettings,
    clock: Clock | None = None,
    programs: Programs | None = None,
    placed: Callable[[], Sequence[Placed]] = tuple,
) -> AsgiApp:
    """The page over ``store`` (None: ``store: off``) and ``ledger``, and ``programs``; ``placed``: what scores now, for
    explanations. Requests are answered off the event loop.

    Serve it without an access log: the token may stand in an address once.
    """
    routes = _Routes(store, ledger, settings, clock or SystemClock(), placed)
    gate = Gate(settings, _unauthorized)

    def takes(path: str) -> int | None:
        return None if programs is None else programs.takes(path)

    def answer(request: Request) -> Answer:
        if programs is not None and takes(request.path) is not None:
            given = programs.answer(request, gate)
        else:
            given = gate.refusal(request) or routes.answer(request)
        return replace(given, headers=(*SAFE_HEADERS, *given.headers))

    return application(answer, where="page", threaded=True, takes=takes)


def _unauthorized(request: Request) -> Answer:
    challenge = ("www-authenticate", 'Bearer realm="spangrade"')
    if request.path.startswith("/api/"):
        said = "give the token of page.token as 'Authorization: Bearer <token>'"
        return replace(answer_json(401, {"error": said}), headers=(challenge,))
    return Answer(401, login(), HTML, (challenge,))


class _Routes:
    def __init__(
        self,
        store: SampleStore | None,
        ledger: Ledger,
        settings: PageSettings,
        clock: Clock,
        placed: Callable[[], Sequence[Placed]],
    ) -> None:
        self._placed = placed
        self._store, self._ledger, self._settings, self._clock = store, ledger, settings, clock
        self._fixed: Mapping[str, Callable[[Request], Answer]] = {
            "/": self._overview,
            "/api/samples": self._samples,
            "/api/outcomes": lambda _request: outcomes_json(ledger.snapshot()),
        }

    def answer(self, request: Request) -> Answer:
        """What is at the request's path."""
        programs = request.path.startswith("/api/")
        try:
            route = self._fixed.get(request.path)
            if route is not None:
                return route(request)
            if request.path.startswith(TRACES):
                trace_id, _, what = request.path.removeprefix(TRACES).partition("/")
                if what in ("", "explain"):
                    return self._trace(trace_id, explained=what == "explain")
            return self._one(request.path, programs=programs)
        except NotAsked as fault:
            return answer_json(400, {"error": str(fault)}) if programs else text(400, str(fault))

    def _one(self, path: str, *, programs: bool) -> Answer:
        parent, _, name = path.rpartition("/")
        expected = "/api/samples" if programs else "/samples"
        sample = self._store.get(name) if self._store is not None and parent == expected else None
        if programs:
            return (
                answer_json(404, {"error": "there is nothing at this address"})
                if sample is None
                else sample_json(sample)
            )
        if sample is None or self._store is None:
            return Answer(404, missing(self._settings), HTML)
        kept = self._store.keeps != "none"
        return Answer(200, story(self._settings, sample, self._clock.time_ns(), kept=kept), HTML)

    def _trace(self, trace_id: str, *, explained: bool) -> Answer:
        if self._store is None:
            return answer_json(404, {"error": "this agent keeps no samples (store: off)"})
        found = self._store.of_trace(trace_id)
        if explained and (notes := self._store.notes_of(trace_id)):
            return explained_json(notes, found, self._store.keeps, self._placed())
        if not found:
            return answer_json(404, {"error": "no sample of this trace is here: it never was, or was let go"})
        return trace_json(trace_id, found, self._store.keeps)

    def _overview(self, request: Request) -> Answer:
        query = _query(request)
        seconds = _whole(query, "refresh", None)
        if seconds is not None and seconds not in REFRESH_S:
            raise NotAsked(f"refresh is one of {', '.join(map(str, REFRESH_S))}")
        view = View(query.get("before"), query.get("evaluator"), query.get("label"), seconds)
        kept, samples = Kept(None), []
        if self._store is not None:
            stats = self._store.stats()
            busy, results = (stats.left.get(reason, 0) for reason in ("busy", "busy_results"))
            kept = Kept(self._store.keeps, stats.samples, stats.bytes, busy, results)
            samples = self._store.recent(PER_PAGE + 1, view.before, view.evaluator, view.label)
        called = host_of(request.header("host") or "localhost")
        counts, budgets = self._ledger.snapshot(), self._ledger.budgets()
        lacking = incomplete(self._ledger.tally)
        page = overview(self._settings, view, counts, kept, samples, self._clock.time_ns(), called, budgets, lacking)
        return Answer(200, page, HTML)

    def _samples(self, request: Request) -> Answer:
        query = _query(request)
        limit = _whole(query, "limit", 100)
        if limit is None or not 1 <= limit <= MAX_LIMIT:
            raise NotAsked(f"limit is a whole number from 1 to {MAX_LIMIT}")
        if self._store is None:
            return samples_json([], limit)
        found = self._store.recent(limit + 1, query.get("before"), query.get("evaluator"), query.get("label"))
        return samples_json(found, limit)


def _query(request: Request) -> dict[str, str]:
    """The query's fields that say something: a form sends its empty ones too."""
    if request.query is None:
        raise NotAsked("the query cannot be read")
    return {name: value for name, value in request.query.items() if value}


def _whole(query: Mapping[str, str], name: str, otherwise: int | None) -> int | None:
    said = query.get(name)
    if said is None:
        return otherwise
    if not (said.isascii() and said.isdigit() and len(said) <= 6):
        raise NotAsked(f"{name} is a whole number")
    return int(said)
