"""Judges' money on the agent: its instruments and its page say what is spent, reserved and left."""

from pathlib import Path

from spangrade.scoring.purse import State
from spangrade_agent.app import Agent
from spangrade_agent.config import read
from spangrade_agent.page.budgets import budget_table, dollars

FILE = """
receivers: {{http: {{listen: "127.0.0.1:0"}}}}
admin: {{listen: "127.0.0.1:0"}}
page: {{listen: "127.0.0.1:0"}}
budget_store: "{store}"
judges:
  - name: helpful
    criteria: It helps.
    model: m
    live: {{rate: 1.0, budget: {{usd_per_day: 20}}, price: {{input: 1.0, output: 10.0}}}}
"""


def test_the_instruments_and_the_page_show_a_judges_budget(tmp_path: Path) -> None:
    import urllib.request

    file = tmp_path / "agent.yaml"
    file.write_text(FILE.format(store=tmp_path / "budget.sqlite"))
    agent = Agent(read(file))
    agent.start()
    try:
        (purse,) = agent.pipeline.purses()
        held = purse.reserve(5.0, 60)
        assert held is not None
        purse.settle(held, 1.5)
        assert purse.reserve(2.0, 60) is not None

        def get(address: str | None, path: str) -> str:
            with urllib.request.urlopen(f"http://{address}{path}", timeout=10) as answer:
                return str(answer.read().decode())

        metrics = get(agent.addresses.admin, "/metrics")
        for amount, value in (("spent", "1.5"), ("reserved", "2"), ("left", "16.5")):
            assert f'spangrade_judge_{amount}_usd{{evaluator="helpful",window="day"}} {value}' in metrics
        page = get(agent.addresses.page, "/")
        assert "Budgets" in page
        for shown in ("helpful", "today (UTC)", "$20.00", "$1.50", "$2.00", "$16.50"):
            assert shown in page
    finally:
        agent.stop(1.0)


def test_without_a_budget_there_is_no_table_and_small_amounts_are_readable() -> None:
    assert budget_table({}) is None
    assert budget_table({"a": []}) is None
    shown = str(budget_table({"<b>": [State("usd_per_hour", 1.0, 1.0, 0.0)]}))
    assert "<b>" not in shown.replace("<body>", "")
    assert 'class="bad"' in shown
    assert [dollars(x) for x in (0, 0.00213, 0.5, 1234.5)] == ["$0.00", "$0.00213", "$0.5", "$1,234.50"]
