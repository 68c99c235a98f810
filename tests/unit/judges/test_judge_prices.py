"""The installed list of prices: who loads it, when, and that nobody waits for it who need not."""

import os
import subprocess
import sys
from typing import Any

import pytest

from spangrade.judges import prices
from spangrade.judges.prices import ListPrice

pytest.importorskip("genai_prices", reason="the extra cost is not installed")

WATCHED = """
import importlib.abc, os, sys, threading
import spangrade as sg
from spangrade.testing import ScriptedJudgeClient

begun, go, loaded_by = threading.Event(), threading.Event(), []

class Finder(importlib.abc.MetaPathFinder):
    def find_spec(self, name, path=None, target=None):
        if name == "genai_prices":
            loaded_by.append(threading.current_thread().name)
            begun.set()
            assert go.wait(30)

sys.meta_path.insert(0, Finder())
sample = sg.Sample(input="q", output="a")
"""

MEANWHILE = """
def reply(_request):
    assert begun.wait(30)  # it is loaded while the model works
    go.set()
    return '{"reasoning": "fine", "score": 4}'

judge = sg.LlmJudge("helpful", "It helps.", model="gpt-4.1-mini").with_client(ScriptedJudgeClient(reply))
assert judge.evaluate(sample).scores[0].value == 0.75
assert loaded_by == ["spangrade-prices"], loaded_by
"""

GIVEN = """
go.set()
client = ScriptedJudgeClient('{"reasoning": "fine", "score": 4}')
judge = sg.LlmJudge("helpful", "It helps.", model="m").with_client(client).with_price({"input": 1, "output": 1})
judge.evaluate(sample)
sg.live(judge, budget={"usd_per_day": 1})
assert not loaded_by and "genai_prices" not in sys.modules
"""

FORKED = """
from spangrade.judges.prices import ListPrice, load_soon
load_soon()
assert begun.wait(30)
forked, ended = [], threading.Event()

def fork():
    pid = os.fork()
    if pid == 0:
        os._exit(0 if ListPrice("gpt-4.1-mini").cost(1, 1) else 1)
    forked.append(go.is_set())
    assert os.waitpid(pid, 0)[1] == 0
    ended.set()

thread = threading.Thread(target=fork)
thread.start()
thread.join(0.3)  # it has had time to, if it did not wait
go.set()
assert ended.wait(30)
assert forked == [True]
"""


@pytest.mark.parametrize("program", [MEANWHILE, GIVEN, FORKED], ids=["meanwhile", "a price that is given", "a fork"])
def test_the_list_is_loaded_while_the_model_works_and_only_where_it_is_needed(program: str) -> None:
    if program is FORKED and not hasattr(os, "fork"):
        pytest.skip("no fork on this platform")
    subprocess.run([sys.executable, "-c", WATCHED + program], check=True, timeout=60)


def test_a_model_that_the_list_does_not_have_is_looked_for_once(monkeypatch: pytest.MonkeyPatch) -> None:
    looked: list[str] = []
    real = prices._list()

    class Counted:
        Usage = real.Usage

        @staticmethod
        def calc_price(usage: Any, model: str, provider_id: str | None) -> Any:
            looked.append(model)
            return real.calc_price(usage, model, provider_id=provider_id)

    monkeypatch.setattr(prices, "_list", lambda: Counted)
    for _ in range(3):
        assert ListPrice("nobody-has-this-one").cost(1, 1) is None
    assert looked == ["nobody-has-this-one"]
    assert ListPrice("gpt-4.1-mini").cost(1_000_000, 0) == pytest.approx(0.4)
    for n in range(1_000):
        ListPrice(f"nobody-has-{n}").cost(1, 1)
    assert len(prices._unknown) <= 256
