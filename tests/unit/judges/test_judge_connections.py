"""Who closes a judge's connections, and when: at a shutdown those that we made, and no others."""

import pytest

import spangrade as sg
from spangrade.judges.providers import client_from_environment
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
