"""Who closes a judge's connections, and when: at a shutdown those that we made, and no others."""

import threading
from typing import Any

import httpx
import pytest

import spangrade as sg
from spangrade.judges.providers import Endpoint, client_at, client_from_environment
from spangrade.judges.providers.openai_compatible import OpenAICompatible
from spangrade.testing import CollectingExporter, event_scores

from .conftest import JudgeServer, completion
from .test_judge_http import request

VERDICT = completion('{"reasoning": "it helps", "verdict": "pass"}')
HELPFUL = sg.LlmJudge(name="helpful", criteria="It helps.", scale="binary", model="m", live=True)


@pytest.fixture
def named(server: JudgeServer, monkeypatch: pytest.MonkeyPatch) -> JudgeServer:
    """The server, as the environment's endpoint for judges."""
    server.script = [VERDICT]
    monkeypatch.setenv("SPANGRADE_JUDGE_BASE_URL", server.base_url)
    return server


def test_shutdown_closes_the_judges_connections_and_the_next_configuration_opens_its_own(named: JudgeServer) -> None:
    client, _ = client_from_environment()
    assert isinstance(client, OpenAICompatible)
    for _ in range(2):
        exporter = CollectingExporter()
        sg.configure(judges=[sg.live(HELPFUL, rate=1.0)], exporter=exporter)
        with sg.trace("answer"):
            sg.set_output("yes")
        assert sg.flush(30)
        assert set(event_scores(exporter.spans[0])) == {"helpful"}
        assert client._connection._pools
        sg.shutdown()
        assert not client._connection._pools
    first, second = [got.peer for got in named.requests]
    assert first != second


def test_a_client_that_the_application_made_itself_is_its_own_to_close(server: JudgeServer) -> None:
    server.script = [VERDICT]
    mine = OpenAICompatible(server.base_url)
    judge = HELPFUL.with_client(mine)
    sg.configure(judges=[sg.live(judge, rate=1.0)], exporter=CollectingExporter())
    with sg.trace("answer"):
        sg.set_output("yes")
    assert sg.flush(30)
    sg.shutdown()
    assert mine._connection._pools
    mine.complete(request())
    mine.close()
    assert server.requests[0].peer == server.requests[1].peer


def test_the_authorities_that_are_trusted_are_read_once_however_many_threads_come_first(
    server: JudgeServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    real, read, second = httpx.create_ssl_context, [], threading.Event()

    def create(*args: Any, **options: Any) -> Any:
        read.append(1)
        if len(read) > 1:
            second.set()
        second.wait(0.2)  # so long the others have to come in, too
        return real(*args, **options)

    monkeypatch.setattr(httpx, "create_ssl_context", create)
    client = OpenAICompatible(server.base_url)
    threads = [threading.Thread(target=lambda: client.complete(request())) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    client.close()
    assert len(read) == 1


def test_threads_that_come_first_together_share_one_client(
    server: JudgeServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    both, real, found = threading.Barrier(2), OpenAICompatible.address, []

    def address(self: OpenAICompatible, base: httpx.URL) -> httpx.URL:
        both.wait(10)  # both threads are making one
        return real(self, base)

    monkeypatch.setattr(OpenAICompatible, "address", address)
    endpoint = Endpoint(base_url=f"{server.base_url}/together")
    threads = [threading.Thread(target=lambda: found.append(client_at(endpoint))) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found[0] is found[1] is client_at(endpoint)
