"""Judges of the registry on production traffic: register from the SDK, activate, one OTLP call, a score of that version."""

import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import spangrade as sg
from spangrade.model.outcome import Outcome
from spangrade_agent.app import Agent
from spangrade_agent.config import AgentConfig
from spangrade_agent.page.settings import PageSettings
from tests.agent.registry_agent import CONFIG, KEY, Running, problem, running
from tests.unit.judges.conftest import JudgeServer, Received, Reply, graded

make = pytest.fixture(running)
JUDGE = sg.LlmJudge("helpful", "It answers what was asked.", model="judge-test-1", live=True)


@pytest.fixture
def server() -> Iterator[JudgeServer]:
    made = JudgeServer()
    yield made
    made.close()


def counts(agent: Agent, name: str = "helpful") -> dict[str, int]:
    found = [one for one in agent.ledger.snapshot().values() if one.name == name]
    assert all(one.pending == 0 for one in found)
    return {"met": sum(one.met for one in found), "scored": sum(one.of(Outcome.SCORED) for one in found)}


def test_a_judge_registered_by_the_sdk_grades_production_calls_once_it_is_activated(
    make: Callable[..., Running],
) -> None:
    agent = make({"rate": 1.0})
    with agent.client() as client:
        made = JUDGE.register(client)
    assert (made.name, made.version, made.status, made.project_id) == ("helpful", 1, "paused", "default")
    assert made.config_hash == JUDGE.info.config_hash
    agent.call()
    assert (agent.server.requests, counts(agent.agent)) == ([], {"met": 0, "scored": 0})

    view = agent.ask("POST", f"/v1/evaluators/{made.id}/activate").json()
    assert (view["status"], view["active_version"]) == ("active", 1)
    agent.call()
    (asked,) = agent.server.requests
    assert asked.headers["authorization"] == f"Bearer {KEY}"
    assert asked.body["model"] == "judge-test-1"
    result = agent.results()[0]["helpful"]
    assert (result["value"], result["version"]) == (0.75, "1")
    assert counts(agent.agent) == {"met": 1, "scored": 1}

    agent.ask("POST", f"/v1/evaluators/{made.id}/pause")
    agent.call()
    assert (len(agent.server.requests), counts(agent.agent)) == (1, {"met": 1, "scored": 1})


def test_a_changed_config_is_a_new_version_and_grades_where_live_ones_are_allowed(make: Callable[..., Running]) -> None:
    agent = make({"allow_live": True, "rate": 1.0})
    with agent.client() as client:
        first = JUDGE.register(client)
        again = JUDGE.register(client)
        agent.call()
        second = sg.LlmJudge("helpful", "It answers, and is polite.", model="judge-test-1", live=True).register(client)
        agent.call()
    assert again == first
    assert (first.version, first.status, second.version, second.status) == (1, "active", 2, "active")
    assert second.id == first.id
    assert [found["helpful"]["version"] for found in agent.results()] == ["2", "1"]
    back = agent.ask("POST", f"/v1/evaluators/{first.id}/activate", {"version": 1}).json()
    assert (back["version"], back["active_version"]) == (1, 1)
    agent.call()
    assert agent.results()[0]["helpful"]["version"] == "1"
    assert counts(agent.agent) == {"met": 3, "scored": 3}


def test_a_new_version_does_not_grade_before_it_is_activated_and_the_old_one_goes_on(
    make: Callable[..., Running],
) -> None:
    agent = make({"rate": 1.0})
    first = agent.put(live=True)
    agent.ask("POST", f"/v1/evaluators/{first['id']}/activate")
    second = agent.put({"criteria": "Something else."}, live=True)
    assert (second["version"], second["status"], second["active_version"]) == (2, "paused", 1)
    agent.call()
    assert agent.results()[0]["helpful"]["version"] == "1"


def test_a_paused_judge_stays_paused_when_its_application_registers_again(make: Callable[..., Running]) -> None:
    agent = make({"allow_live": True})
    made = agent.put(live=True)
    assert made["status"] == "active"
    agent.ask("POST", f"/v1/evaluators/{made['id']}/pause")
    assert agent.put(live=True)["status"] == "paused"
    assert agent.put({"criteria": "A new one."}, live=True)["status"] == "paused"


def test_a_pair_under_way_ends_under_the_version_that_it_began_with(
    make: Callable[..., Running], server: JudgeServer
) -> None:
    entered, go_on = threading.Event(), threading.Event()

    def respond(received: Received) -> Reply:
        if "SLOW" in str(received.body):
            entered.set()
            assert go_on.wait(30)
        return graded()

    server._respond = respond
    agent = make({"allow_live": True, "rate": 1.0})
    agent.put({"criteria": "SLOW"}, live=True)
    call = threading.Thread(target=agent.call)
    call.start()
    assert entered.wait(30)
    agent.put({"criteria": "quick"}, live=True)
    go_on.set()
    call.join(30)
    agent.call()
    assert [found["helpful"]["version"] for found in agent.results()] == ["2", "1"]
    assert counts(agent.agent) == {"met": 2, "scored": 2}


def test_the_rate_of_a_registration_is_within_what_the_configuration_allows(make: Callable[..., Running]) -> None:
    agent = make({"allow_live": True, "max_rate": 0.2, "max_per_minute": 30, "budget": {"calls_per_hour": 100}})
    for rate in (0.5, {"length_words.fail": 0.5, "else": 0.01}):
        said = problem(agent.ask("POST", "/v1/evaluators", {"config": CONFIG, "live": {"rate": rate}}), 422)
        assert "a rate of 0.5 is more than this agent allows, 0.2" in said["live.rate"]
        assert "registry.max_rate" in said["live.rate"]
    agent.put(live={"rate": 0.15, "max_per_minute": 60, "budget": {"calls_per_hour": 7, "calls_per_day": 50}})
    (placed,) = [one for one in agent.agent.pipeline.placed if one.evaluator.info.kind == "llm"]
    assert (placed.policy.rate, placed.policy.max_per_minute) == (0.15, 30)
    assert placed.policy.budget == {"calls_per_hour": 7, "calls_per_day": 50}
    agent.put(live=True)
    (placed,) = [one for one in agent.agent.pipeline.placed if one.evaluator.info.kind == "llm"]
    assert (placed.policy.rate, placed.policy.budget) == (0.1, {"calls_per_hour": 100})


def test_only_models_of_the_agents_endpoints_can_be_named_and_nothing_of_the_environment_unless_it_says_so(
    make: Callable[..., Running], monkeypatch: pytest.MonkeyPatch
) -> None:
    agent = make()
    monkeypatch.setenv("SPANGRADE_JUDGE_BASE_URL", agent.server.base_url)
    body = {"config": {**CONFIG, "model": "gpt-4.1"}}
    for path, more in (("", {}), ("/preview", {"sample": {"output": "x"}})):
        said = problem(agent.ask("POST", f"/v1/evaluators{path}", {**body, **more}), 422)
        assert "no endpoint of this agent serves 'gpt-4.1'" in said["config.model"]
        assert "judge_endpoints" in said["config.model"]
    assert agent.server.requests == []
    allowing = make({"allow_environment": True})
    assert allowing.ask("POST", "/v1/evaluators", body).status_code == 201
    found = allowing.ask("POST", "/v1/evaluators/preview", {**body, "sample": {"output": "x"}}).json()
    assert (found["score"], found["error"]) == (0.75, None)
    assert "authorization" not in agent.server.requests[0].headers  # the other endpoint's key is that endpoint's


def test_a_restart_keeps_what_was_registered_and_what_grades(make: Callable[..., Running]) -> None:
    first = make({"allow_live": True, "rate": 1.0})
    made = first.put(live=True)
    first.agent.stop(10)
    second = make({"rate": 1.0})
    assert second.ask("GET", f"/v1/evaluators/{made['id']}").json()["versions"][0]["config_hash"] == made["config_hash"]
    second.call()
    assert second.results()[0]["helpful"]["version"] == "1"


def test_an_active_judge_whose_endpoint_is_gone_says_why_it_does_not_grade(make: Callable[..., Running]) -> None:
    first = make({"allow_live": True, "rate": 1.0})
    made = first.put(live=True)
    assert made["problem"] is None
    first.agent.stop(10)
    second = make(judge_endpoints=[])
    second.call()
    assert (
        "no endpoint of this agent serves 'judge-test-1'"
        in second.ask("GET", f"/v1/evaluators/{made['id']}").json()["problem"]
    )
    assert set(second.results()[0]) == {"length_words"}


def test_what_another_agent_changes_in_the_file_grades_here_too(make: Callable[..., Running]) -> None:
    one, other = make({"rate": 1.0}), make({"rate": 1.0})
    made = one.put(live=True)
    one.ask("POST", f"/v1/evaluators/{made['id']}/activate")
    assert other.agent.registered is not None
    other.agent.registered.look()
    other.call()
    assert other.results()[0]["helpful"]["version"] == "1"


def test_the_same_judge_of_two_projects_or_of_the_file_grades_once(make: Callable[..., Running]) -> None:
    agent = make({"allow_live": True, "rate": 1.0}, judges=[{**CONFIG, "live": {"rate": 1.0}}])
    mine = agent.put(live=True, project_id="mine")
    assert "grades already" in mine["problem"]
    agent.call()
    assert len(agent.server.requests) == 1
    said = problem(agent.ask("POST", f"/v1/evaluators/{mine['id']}/activate"), 409)
    assert "the agent's configuration" in said[""]


def test_a_judge_that_was_not_registered_as_live_cannot_be_activated(make: Callable[..., Running]) -> None:
    agent = make()
    made = agent.put()
    said = problem(agent.ask("POST", f"/v1/evaluators/{made['id']}/activate"), 409)
    assert "live=True" in said[""]


def test_the_page_names_what_grades_now(make: Callable[..., Running]) -> None:
    agent = make({"allow_live": True})
    assert "helpful" not in agent.ask("GET", "/").text
    agent.put(live=True)
    assert "length_words, helpful" in agent.ask("GET", "/").text


def test_nothing_is_placed_where_scoring_is_off(make: Callable[..., Running], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SPANGRADE_SCORING", "off")
    agent = make({"allow_live": True, "rate": 1.0})
    agent.put(live=True)
    assert agent.agent.pipeline.placed == []


def test_a_registry_without_a_page_is_refused_with_a_sentence(tmp_path: Path) -> None:
    config: dict[str, Any] = {"page": False, "registry": {"path": str(tmp_path / "r.db")}}
    with pytest.raises(sg.ConfigError, match="page: false"):
        Agent(AgentConfig.model_validate(config))


def test_off_the_loopback_the_registry_wants_a_token_as_the_page_does(tmp_path: Path) -> None:
    with pytest.raises(sg.ConfigError, match=r"page\.token is not set"):
        PageSettings(listen="0.0.0.0:8080")
