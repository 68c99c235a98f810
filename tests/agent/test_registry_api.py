"""The registry over HTTP: what it answers, and what it refuses with which sentence, over real sockets."""

import http.client
import json
import sqlite3
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from spangrade.judges.prices import ListPrice
from spangrade_agent.api import routes
from tests.agent.registry_agent import CONFIG, KEY, Running, problem, running
from tests.unit.judges.conftest import JudgeServer, Received, Reply, graded

make = pytest.fixture(running)
TOKEN = "a-token-of-sixteen-letters"
ROOT = "/v1/evaluators"


@pytest.fixture
def server() -> Iterator[JudgeServer]:
    made = JudgeServer()
    yield made
    made.close()


def raw(agent: Running, method: str, path: str, body: bytes = b"", **headers: str) -> tuple[int, dict[str, str], str]:
    """A request as it stands: no header is added but the length."""
    connection = http.client.HTTPConnection(str(agent.agent.addresses.page), timeout=30)
    connection.request(method, path, body, {name.replace("_", "-"): value for name, value in headers.items()})
    answer = connection.getresponse()
    found = answer.status, {name.lower(): value for name, value in answer.getheaders()}, answer.read().decode()
    connection.close()
    return found


def test_a_judge_is_created_reused_listed_and_shown_with_its_versions(make: Callable[..., Running]) -> None:
    agent = make()
    first = agent.ask("POST", ROOT, {"config": CONFIG})
    again = agent.ask("POST", ROOT, {"config": {**CONFIG, "scale": "1-5", "fields": ["input", "output"]}})
    changed = agent.ask(
        "POST", ROOT, {"config": {**CONFIG, "criteria": "It is polite."}, "live": {"rate": 0.5, "when": "a.fail"}}
    )
    assert (first.status_code, again.status_code, changed.status_code) == (201, 200, 201)
    assert again.json() == first.json()
    made = first.json()
    assert (made["version"], made["status"], made["active_version"], made["live"]) == (1, "paused", None, False)
    one = agent.ask("GET", f"{ROOT}/{made['id']}").json()
    assert [(v["version"], v["live"]) for v in one["versions"]] == [
        (1, False),
        (2, {"rate": 0.5, "when": "a.fail", "max_per_minute": None, "budget": None, "group": None}),
    ]
    assert one["config"]["criteria"] == "It is polite."
    version = agent.ask("GET", f"{ROOT}/{made['id']}/versions/1").json()
    assert version["config"]["criteria"] == CONFIG["criteria"]
    assert agent.ask("HEAD", f"{ROOT}/{made['id']}").status_code == 200


def test_the_list_is_by_project_and_name_and_goes_on_where_it_ended(make: Callable[..., Running]) -> None:
    agent = make()
    ids = [agent.put({"name": name}, project_id=project)["id"] for project in ("a", "b") for name in ("x", "y", "z")]
    page, after = [], ""
    while True:
        found = agent.ask("GET", f"{ROOT}?limit=4{after}").json()
        page += [one["id"] for one in found["evaluators"]]
        if found["next"] is None:
            break
        after = f"&after={found['next']}"
    assert page == ids
    only = agent.ask("GET", f"{ROOT}?project_id=b&name=y").json()
    assert [one["id"] for one in only["evaluators"]] == [ids[4]]


def test_a_preview_grades_with_the_agents_key_and_stores_nothing(make: Callable[..., Running]) -> None:
    agent = make(redact={"patterns": ["[0-9]{16}"]})
    sample = {"input": "My card is 1234567812345678.", "output": "Thanks.", "documents": ["d", {"content": "e"}]}
    found = agent.ask("POST", f"{ROOT}/preview", {"config": CONFIG, "sample": sample}).json()
    assert (found["score"], found["explanation"], found["error"]) == (0.75, "It answers the question.", None)
    (asked,) = agent.server.requests
    assert asked.headers["authorization"] == f"Bearer {KEY}"
    assert "1234567812345678" not in json.dumps(asked.body) + found["prompt"]
    assert "[redacted]" in found["prompt"]
    assert agent.ask("GET", ROOT).json()["evaluators"] == []
    assert agent.agent.ledger.snapshot() == {}


def test_a_preview_that_fails_says_why_without_a_number_and_without_the_key(make: Callable[..., Running]) -> None:
    agent = make()
    agent.server.script = [Reply(401, {"error": {"message": f"wrong key {KEY}"}})]
    found = agent.ask("POST", f"{ROOT}/preview", {"config": CONFIG, "sample": {"output": "x"}})
    assert found.json()["score"] is None
    assert found.json()["error"].startswith("http_status: ")
    assert KEY not in found.text
    empty = agent.ask("POST", f"{ROOT}/preview", {"config": CONFIG, "sample": {"output": ""}}).json()
    assert empty["error"] == "skipped: nothing in output"


def test_previews_do_not_take_the_page_away_from_others(make: Callable[..., Running], server: JudgeServer) -> None:
    all_in, go_on = threading.Barrier(routes.MAX_PREVIEWS + 1), threading.Event()

    def respond(_received: Received) -> Reply:
        all_in.wait(30)
        assert go_on.wait(30)
        return graded()

    server._respond = respond
    agent = make()
    body = {"config": CONFIG, "sample": {"output": "x"}}
    found: list[int] = []

    def preview() -> None:
        found.append(agent.ask("POST", f"{ROOT}/preview", body, timeout=60).status_code)

    threads = [threading.Thread(target=preview) for _ in range(routes.MAX_PREVIEWS)]
    for thread in threads:
        thread.start()
    all_in.wait(30)
    refused = agent.ask("POST", f"{ROOT}/preview", body)
    assert "previews are under way" in problem(refused, 429)[""]
    assert refused.headers["retry-after"] == "2"
    assert agent.ask("GET", ROOT).status_code == 200
    go_on.set()
    for thread in threads:
        thread.join(30)
    assert found == [200] * routes.MAX_PREVIEWS


@pytest.mark.parametrize(
    ("changes", "field", "said"),
    [
        ({"config": {"base_url": "http://evil"}}, "config.base_url", "judge_endpoints in the agent's configuration"),
        ({"config": {"api_key": "k"}}, "config.api_key", "judge_endpoints in the agent's configuration"),
        ({"config": {"critera": "x"}}, "config.critera", "is not known; there are name, criteria"),
        ({"config": {"name": ""}}, "config.name", "at least 1 character"),
        ({"config": {"name": "x" * 129}}, "config.name", "at most 128 characters"),
        ({"config": {"name": " "}}, "config.name", "is blank"),
        ({"config": {"criteria": 7}}, "config.criteria", "valid string"),
        ({"config": {"criteria": "x" * 40_000}}, "config.criteria", "at most 32768"),
        ({"config": {"scale": "1-10"}}, "config.scale", "'1-5' or 'binary'"),
        ({"config": {"scale": "binary", "levels": {"5": "x"}}}, "config.levels", "levels are for scale '1-5'"),
        ({"config": {"fields": ["input"]}}, "config.fields", "leave out 'output'"),
        ({"config": {"fields": ["output", "output"]}}, "config.fields", "one twice"),
        ({"config": {"examples": [{"output": "x"}]}}, "config.examples", "has no level"),
        ({"config": {"examples": [{}] * 6}}, "config.examples", "at most 5 items"),
        ({"config": {"temperature": 3}}, "config.temperature", "less than or equal to 2"),
        ({"config": {"target": "moon"}}, "config.target", "not one of root, llm"),
        ({"config": {"template": "another"}}, "config.template", "prompts differ"),
        ({"config": {"model": None}}, "config.model", "names no model"),
        ({"threshold": 2}, "threshold", "less than or equal to 1"),
        ({"live": {"rate": 0}}, "live.rate", "greater than 0"),
        ({"live": {"rates": 0.1}}, "live.rates", "is not known; there are rate, when"),
        ({"live": {"when": "nonsense"}}, "live", "when 'nonsense'"),
        ({"live": {"rate": {"a.fail": 2}}}, "live.rate.a.fail", "less than or equal to 1"),
        ({"live": {"min_per_minute": 9}}, "live.min_per_minute", "is not known"),
        ({"live": {"budget": {"usd_per_day": 1}}}, "live.budget", "price"),
        ({"live": {"budget": {"moons": 1}}}, "live", "budget key 'moons'"),
        ({"live": "yes"}, "live", "valid boolean, or: "),
        ({"project_id": "a b"}, "project_id", "should match pattern"),
        ({"project": "x"}, "project", "is not known"),
    ],
)
def test_what_cannot_be_registered_is_refused_by_field_with_the_way_out(
    make: Callable[..., Running], changes: dict[str, Any], field: str, said: str
) -> None:
    agent = make()
    config = changes.pop("config", {})
    found = problem(agent.ask("POST", ROOT, {"config": {**CONFIG, **config}, **changes}), 422)
    assert field in found, found
    assert said in found[field]
    assert agent.ask("GET", ROOT).json()["evaluators"] == []


def test_a_body_that_is_missing_no_json_not_said_to_be_json_or_too_long_is_refused(
    make: Callable[..., Running],
) -> None:
    agent = make()
    kind = {"content_type": "application/json"}
    for body in (b"{", b"nonsense", b'{"a": "\\ud800"}', b"\xff", b"[" * 100_000):
        assert raw(agent, "POST", ROOT, body, **kind)[0] == 400, body[:20]
    assert raw(agent, "POST", ROOT, b"[]", **kind)[0] == 422
    status, _, said = raw(agent, "POST", ROOT, b"", **kind)
    assert (status, json.loads(said)["errors"]) == (422, [{"field": "config", "message": "is missing"}])
    good = json.dumps({"config": CONFIG}).encode()
    for given in ("text/plain", "application/x-www-form-urlencoded", "application/jsonp", ""):
        status, headers, said = raw(agent, "POST", ROOT, good, content_type=given)
        assert (status, headers["content-type"]) == (415, "application/problem+json")
        assert "Content-Type: application/json" in said
    status, headers, said = raw(agent, "POST", ROOT, b" " * (routes.MAX_REGISTRATION + 1), **kind)
    assert (status, headers["connection"]) == (413, "close")
    assert str(routes.MAX_REGISTRATION) in said
    assert raw(agent, "POST", ROOT, good, content_type="application/json; charset=utf-8")[0] == 201


def test_a_long_body_in_chunks_is_not_read_to_its_end(make: Callable[..., Running]) -> None:
    agent = make()
    sent = 0

    def chunks() -> Iterator[bytes]:
        nonlocal sent
        for _ in range(1_000):
            sent += 65_536
            yield b" " * 65_536

    connection = http.client.HTTPConnection(str(agent.agent.addresses.page), timeout=30)
    try:
        connection.request("POST", ROOT, chunks(), {"content-type": "application/json"}, encode_chunked=True)
    except (BrokenPipeError, ConnectionResetError):
        pass
    else:
        assert connection.getresponse().status == 413
    connection.close()
    assert sent < 65_536 * 1_000
    assert agent.ask("GET", ROOT).status_code == 200


def test_a_strangers_web_page_cannot_post_through_somebodys_browser(make: Callable[..., Running]) -> None:
    """What a browser sends from another origin without asking first: texts and forms, with its Origin; and the cookie."""
    agent = make({"allow_live": True})
    made = agent.put(live=True)
    for kind in ("text/plain", "application/x-www-form-urlencoded", "multipart/form-data"):
        for path in (ROOT, f"{ROOT}/{made['id']}/pause"):
            assert raw(agent, "POST", path, b"", content_type=kind, origin="http://evil.example")[0] == 415
    assert raw(agent, "POST", f"{ROOT}/{made['id']}/pause", b"", origin="http://evil.example")[0] == 415
    status, headers, _ = raw(agent, "OPTIONS", ROOT, origin="http://evil.example", access_control_request_method="POST")
    assert status == 405
    assert not any(name.startswith("access-control") for name in headers)
    assert raw(agent, "GET", ROOT, host="evil.example")[0] == 421
    assert agent.ask("GET", f"{ROOT}/{made['id']}").json()["status"] == "active"
    assert raw(agent, "POST", f"{ROOT}/{made['id']}/pause")[0] == 200  # curl -X POST


def test_everything_wants_the_token_as_a_header_and_takes_no_cookie(make: Callable[..., Running]) -> None:
    agent = make(page={"token": TOKEN})
    refused = agent.ask("POST", ROOT, {"config": CONFIG})
    assert "Authorization: Bearer" in problem(refused, 401)[""]
    assert refused.headers["www-authenticate"].startswith("Bearer")
    cookie = agent.ask("GET", f"/?token={TOKEN}").headers["set-cookie"].partition(";")[0]
    assert agent.ask("GET", "/", headers={"cookie": cookie}).status_code == 200
    for method, path in (
        ("GET", ROOT),
        ("POST", ROOT),
        ("POST", f"{ROOT}/preview"),
        ("GET", "/openapi.json"),
        ("GET", "/v1/x"),
    ):
        assert agent.ask(method, path, headers={"cookie": cookie}).status_code == 401
        assert agent.ask(method, f"{path}?token={TOKEN}").status_code == 401
        assert agent.ask(method, path, headers={"authorization": "Bearer wrong"}).status_code == 401
    agent.headers["authorization"] = f"Bearer {TOKEN}"
    assert agent.put()["version"] == 1
    assert agent.ask("GET", "/openapi.json").json()["openapi"] == "3.1.0"


def test_another_method_is_405_with_what_there_is_and_another_address_404(make: Callable[..., Running]) -> None:
    agent = make()
    made = agent.put()
    for method, path, allowed in (
        ("DELETE", ROOT, "GET, POST, HEAD"),
        ("PUT", f"{ROOT}/{made['id']}", "GET, DELETE, HEAD"),
        ("GET", f"{ROOT}/preview", "POST"),
        ("GET", f"{ROOT}/{made['id']}/activate", "POST"),
        ("POST", "/openapi.json", "GET, HEAD"),
        ("POST", f"{ROOT}/{made['id']}/versions/1", "GET, HEAD"),
    ):
        answer = agent.ask(method, path)
        assert (problem(answer, 405), answer.headers["allow"]) != ({}, ""), path
        assert answer.headers["allow"] == allowed
    for path in (
        f"{ROOT}/ev_{'0' * 24}",
        f"{ROOT}/nonsense",
        f"{ROOT}/{made['id']}/versions/7",
        f"{ROOT}/{made['id']}/x",
        "/v1/",
    ):
        problem(agent.ask("GET", path), 404)
    assert agent.ask("POST", "/", {}).status_code == 405
    said = problem(agent.ask("POST", f"{ROOT}/{made['id']}/activate", {"version": 7}), 422)
    assert "there are 1 to 1" in said["version"]
    for query in ("limit=0", "limit=x", "after=x", f"after=ev_{'0' * 24}", "colour=red"):
        problem(agent.ask("GET", f"{ROOT}?{query}"), 422)


def test_a_registry_that_is_full_is_a_conflict_that_says_what_makes_room(make: Callable[..., Running]) -> None:
    agent = make({"max_evaluators": 1})
    agent.put()
    assert "registry.max_evaluators" in problem(agent.ask("POST", ROOT, {"config": {**CONFIG, "name": "b"}}), 409)[""]
    assert agent.put({"criteria": "x"})["version"] == 2


def test_a_judge_is_deleted_once_it_is_paused_and_makes_room(make: Callable[..., Running]) -> None:
    agent = make({"max_evaluators": 1, "allow_live": True})
    made = agent.put(live=True)
    address = f"{ROOT}/{made['id']}"
    assert "pause it" in problem(agent.ask("DELETE", address), 409)[""]
    agent.ask("POST", f"{address}/pause")
    gone = agent.ask("DELETE", address)
    assert (gone.status_code, gone.content) == (204, b"")
    assert "content-length" not in gone.headers
    for method, path in (("DELETE", address), ("GET", address), ("POST", f"{address}/activate")):
        problem(agent.ask(method, path), 404)
    assert agent.ask("GET", ROOT).json()["evaluators"] == []
    again = agent.put({"name": "another"})
    assert again["version"] == 1
    assert again["id"] != made["id"]


@pytest.mark.parametrize("budget", [{"calls_per_day": 2}, {"usd_per_day": 2.5}])
def test_all_previews_together_keep_within_the_registrys_budget(
    make: Callable[..., Running], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, budget: dict[str, float]
) -> None:
    monkeypatch.setattr(ListPrice, "cost", lambda _self, _input, _output: 0.5)  # a call, and so a dollar is the most
    agent = make({"budget": budget}, budget_store=str(tmp_path / "budget.sqlite"))
    ask = {"calls_per_day": 2, "usd_per_day": 4}[next(iter(budget))]
    body = {"config": CONFIG, "sample": {"input": "q", "output": "x"}}
    for _ in range(ask):
        assert agent.ask("POST", f"{ROOT}/preview", body).json()["score"] == 0.75
    refused = agent.ask("POST", f"{ROOT}/preview", {**body, "config": {**CONFIG, "criteria": "another"}}).json()
    assert (refused["score"], refused["error"].partition(":")[0]) == (None, "over_budget")
    assert "registry.budget" in refused["error"]
    assert len(agent.server.requests) == ask


def test_a_preview_of_a_model_without_a_price_is_refused_where_the_budget_is_money(
    make: Callable[..., Running], tmp_path: Path
) -> None:
    agent = make({"budget": {"usd_per_day": 5}}, budget_store=str(tmp_path / "budget.sqlite"))
    found = agent.ask("POST", f"{ROOT}/preview", {"config": CONFIG, "sample": {"output": "x"}}).json()
    assert found["error"].startswith("over_budget: no price is known for the model 'judge-test-1'")
    assert not agent.server.requests


def test_a_file_that_somebody_holds_is_503_and_the_page_goes_on(
    make: Callable[..., Running], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("spangrade_agent.registry.BUSY_S", 0.01)
    agent = make()
    other = sqlite3.connect(tmp_path / "registry.db", isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    answer = agent.ask("POST", ROOT, {"config": CONFIG})
    assert "try again" in problem(answer, 503)[""]
    assert agent.ask("GET", "/").status_code == 200
    other.execute("ROLLBACK")
    other.close()
    assert agent.put()["version"] == 1


def test_an_agent_without_a_registry_says_how_to_have_one(make: Callable[..., Running]) -> None:
    agent = make(registry=False)
    said = problem(agent.ask("POST", ROOT, {"config": CONFIG}), 404)
    assert "registry: {path: ...}" in said[""]


def test_the_default_model_is_the_agents_where_the_registration_names_none(
    make: Callable[..., Running], monkeypatch: pytest.MonkeyPatch
) -> None:
    agent = make()
    monkeypatch.setenv("SPANGRADE_JUDGE_MODEL", "judge-default")
    assert agent.put({"model": None})["config"]["model"] == "judge-default"
