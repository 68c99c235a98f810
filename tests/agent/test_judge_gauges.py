"""The agent's metrics say how the endpoints of its judges stand, by host: no key, no path."""

import urllib.request
from pathlib import Path

from spangrade_agent.app import Agent
from spangrade_agent.config import read

FILE = """
receivers: {http: {listen: "127.0.0.1:0"}}
admin: {listen: "127.0.0.1:0"}
page: {listen: "127.0.0.1:0"}
judge_endpoints: [{base_url: "http://judge.example:8080/secret-path/v1", api_key: secret-key, max_concurrency: 7}]
judges: [{name: helpful, criteria: It helps., model: m, live: {rate: 1.0}}]
"""


def test_limit_calls_under_way_and_circuit_of_an_endpoint(tmp_path: Path) -> None:
    file = tmp_path / "agent.yaml"
    file.write_text(FILE)
    agent = Agent(read(file))
    agent.start()
    try:
        (endpoint,) = agent.pipeline.endpoints()
        assert endpoint.host == "judge.example:8080"

        def metrics() -> str:
            with urllib.request.urlopen(f"http://{agent.addresses.admin}/metrics", timeout=10) as answer:
                return str(answer.read().decode())

        shown = metrics()
        for name, value in (("concurrency_limit", 7), ("concurrency_in_flight", 0), ("circuit", 0)):
            assert f'spangrade_judge_{name}{{endpoint="judge.example:8080"}} {value}' in shown
        assert "secret" not in shown
    finally:
        agent.stop(1.0)
