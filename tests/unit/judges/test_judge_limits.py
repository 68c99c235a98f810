"""What the limiter does to calls over a real socket: the circuit, the retry budget, the bound on calls at once, the configuration."""

import threading

import pytest

from spangrade.config import JudgeEndpointEntry
from spangrade.errors import JudgeError
from spangrade.judges import LlmJudge
from spangrade.judges.breaker import FAILURES, OPEN_S
from spangrade.judges.limiter import RETRY_RESERVE
from spangrade.judges.providers.base import JudgeRequest, Message
from spangrade.judges.providers.endpoint import from_environment
from spangrade.judges.providers.openai_compatible import OpenAICompatible
from spangrade.model.sample import Sample
from spangrade.scoring.evaluators import endpoints_of

from .conftest import FakeTime, JudgeServer, Received, Reply, graded

REQUEST = JudgeRequest("m", (Message("system", "s"), Message("user", "u")))


def kinds(client: OpenAICompatible, calls: int) -> list[str]:
    found = []
    for _ in range(calls):
        try:
            client.complete(REQUEST)
            found.append("ok")
        except JudgeError as fault:
            found.append(fault.kind)
    return found


def test_an_endpoint_that_fails_is_left_alone_until_one_probe_succeeds(
    server: JudgeServer, client: OpenAICompatible, fake_time: FakeTime
) -> None:
    server.script = [Reply(500, {"error": {}})]
    assert kinds(client, FAILURES + 3) == ["http_status"] * FAILURES + ["circuit_open"] * 3
    asked = len(server.requests)
    fake_time.now += OPEN_S
    assert kinds(client, 2) == ["http_status", "circuit_open"]
    assert len(server.requests) == asked + 1  # a probe is not repeated
    fake_time.now += 2 * OPEN_S
    server.script = [graded()]
    assert kinds(client, 2) == ["ok", "ok"]


@pytest.mark.parametrize(
    "reply", [Reply(401, {"error": {}}), Reply(429, {"error": {"code": "insufficient_quota"}})], ids=["401", "quota"]
)
def test_a_key_that_is_refused_or_has_no_money_is_asked_for_once(
    reply: Reply, server: JudgeServer, client: OpenAICompatible
) -> None:
    server.script = [reply]
    assert kinds(client, 3) == ["http_status", "circuit_open", "circuit_open"]
    assert len(server.requests) == 1


def test_an_error_that_is_the_calls_own_leaves_the_circuit_closed(
    server: JudgeServer, client: OpenAICompatible
) -> None:
    server.script = [Reply(404, {"error": {"message": "no such model"}})]
    assert kinds(client, FAILURES + 2) == ["http_status"] * (FAILURES + 2)


def test_retries_end_with_their_budget(server: JudgeServer, client: OpenAICompatible) -> None:
    server.script = [reply for _ in range(30) for reply in (Reply(503, {"error": {}}), graded())]
    found = kinds(client, 20)
    retried = len(server.requests) - len(found)
    assert retried <= RETRY_RESERVE + 0.1 * len(found)
    assert "http_status" in found  # the first that had no retry left


def test_never_more_calls_at_once_than_max_concurrency() -> None:
    lock, now, most = threading.Lock(), 0, 0
    both = threading.Barrier(2)

    def respond(_received: Received) -> Reply:
        nonlocal now, most
        with lock:
            now += 1
            most = max(most, now)
        both.wait(20)  # two are here at once, or none gets on
        with lock:
            now -= 1
        return graded()

    server = JudgeServer(respond=respond)
    client = OpenAICompatible(server.base_url, "k", max_concurrency=2)
    threads = [threading.Thread(target=client.complete, args=(REQUEST,)) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(30)
    client.close()
    server.close()
    assert (len(server.requests), most) == (8, 2)


def test_the_bound_comes_from_the_environment_or_the_file(monkeypatch: pytest.MonkeyPatch, server: JudgeServer) -> None:
    monkeypatch.setenv("SPANGRADE_JUDGE_BASE_URL", server.base_url)
    monkeypatch.setenv("SPANGRADE_JUDGE_MAX_CONCURRENCY", "3")
    assert from_environment("m")[0].max_concurrency == 3
    gate = LlmJudge("j", "c", model="m").gate
    assert gate is not None
    assert gate.state().limit == 3
    (endpoint,) = endpoints_of([JudgeEndpointEntry(base_url=server.base_url, api_key="k", max_concurrency=5)])
    placed = LlmJudge("j", "c", model="m").at([endpoint])
    assert placed.gate is endpoint.limiter
    assert placed.gate is not None
    assert placed.gate.state().limit == 5


def test_the_environments_bound_holds_for_every_endpoint_that_has_none_of_its_own(
    monkeypatch: pytest.MonkeyPatch, server: JudgeServer
) -> None:
    monkeypatch.setenv("SPANGRADE_JUDGE_MAX_CONCURRENCY", "4")
    (endpoint,) = endpoints_of([JudgeEndpointEntry(base_url=server.base_url, api_key="of-the-file")])
    of_the_file = LlmJudge("j", "c", model="m").at([endpoint])
    by_hand = LlmJudge("j", "c", model="m").with_client(OpenAICompatible(server.base_url, "by-hand"))
    its_own = LlmJudge("j", "c", model="m").with_client(OpenAICompatible(server.base_url, "own", max_concurrency=6))
    assert [judge.gate.state().limit for judge in (of_the_file, by_hand, its_own) if judge.gate] == [4, 4, 6]
    monkeypatch.setenv("SPANGRADE_JUDGE_MAX_CONCURRENCY", "none")
    with pytest.raises(JudgeError, match="SPANGRADE_JUDGE_MAX_CONCURRENCY='none'"):
        OpenAICompatible(server.base_url, "by-hand")


def test_a_bound_that_is_none_is_an_error_that_names_it(monkeypatch: pytest.MonkeyPatch, server: JudgeServer) -> None:
    monkeypatch.setenv("SPANGRADE_JUDGE_BASE_URL", server.base_url)
    for text in ("0", "-1", "many", "1.5"):
        monkeypatch.setenv("SPANGRADE_JUDGE_MAX_CONCURRENCY", text)
        judge = LlmJudge("j", "c", model="m")
        assert judge.gate is None
        with pytest.raises(JudgeError, match=r"SPANGRADE_JUDGE_MAX_CONCURRENCY=.* 1 or more") as refused:
            judge.evaluate(Sample(output="x"))
        assert refused.value.kind == "configuration"
