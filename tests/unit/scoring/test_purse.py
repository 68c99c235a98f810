"""Judges' money: a ceiling is never passed, whoever shares it and whoever dies; real SQLite files and a real Redis."""

import os
import shutil
import signal
import socket
import sqlite3
import subprocess
import sys
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.process.programs import free_port

from spangrade.errors import ConfigError
from spangrade.scoring.purse import GRACE_S, UNIT, MemoryPurses, Purse, PurseStore, Reservation
from spangrade.scoring.purse_sqlite import PurseFormatError, SqlitePurses
from spangrade.scoring.purse_store import purse_store
from spangrade.testing import FakeClock

REPOSITORY = Path(__file__).parents[3]


class UnixClock(FakeClock):
    """One whose hour is the UTC hour."""


@pytest.fixture(scope="module")
def redis_url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """A Redis of this test's own, on the loopback, ended by its id."""
    server = shutil.which("redis-server") or shutil.which("valkey-server")
    if server is None:
        pytest.skip("needs redis-server (Debian: redis-server)")
    port = free_port()
    folder = tmp_path_factory.mktemp("redis")
    options = ["--port", str(port), "--bind", "127.0.0.1", "--save", "", "--dir", str(folder)]
    process = subprocess.Popen([server, *options], stdout=subprocess.PIPE, text=True)
    try:
        assert process.stdout is not None
        for line in process.stdout:
            if "eady to accept connections" in line:
                break
        threading.Thread(target=process.stdout.read, daemon=True).start()  # so that it never blocks on its own words
        yield f"redis://127.0.0.1:{port}/0"
    finally:
        process.terminate()
        process.wait(20)
        process.stdout.close()


@pytest.fixture(params=["memory", "sqlite", "redis"])
def address(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    if request.param == "redis":
        url: str = request.getfixturevalue("redis_url")
        import redis

        client = redis.Redis.from_url(url)
        client.flushall()
        client.close()
        return url
    return "memory" if request.param == "memory" else str(tmp_path / "deep" / "budget.sqlite")


@pytest.fixture
def store(address: str) -> Iterator[PurseStore]:
    made = MemoryPurses() if address == "memory" else purse_store(address)
    yield made
    if not isinstance(made, MemoryPurses):
        made.close()  # type: ignore[attr-defined]


def purse(store: PurseStore, clock: FakeClock | None = None, key: str = "helpful", **limits: float) -> Purse:
    return Purse(key, limits or {"usd_per_hour": 1.0}, store, clock or FakeClock())


def test_what_a_call_may_cost_is_held_before_it_and_what_it_did_cost_taken_after_it(store: PurseStore) -> None:
    mine = purse(store, usd_per_hour=1.0, usd_per_day=2.0)
    held = mine.reserve(0.6, 60)
    assert held is not None
    assert [(s.kind, s.spent, s.reserved, s.left) for s in mine.state()] == [
        ("usd_per_hour", 0, 0.6, 0.4),
        ("usd_per_day", 0, 0.6, 1.4),
    ]
    assert mine.reserve(0.5, 60) is None
    mine.settle(held, 0.25)
    assert [(s.spent, s.reserved) for s in mine.state()] == [(0.25, 0), (0.25, 0)]
    assert mine.reserve(0.75, 60) is not None
    assert mine.reserve(0.000000001, 60) is None


def test_a_call_whose_cost_nobody_knows_has_cost_the_most(store: PurseStore) -> None:
    mine = purse(store)
    held = mine.reserve(0.6, 60)
    assert held is not None
    mine.settle(held, None)
    assert mine.state()[0].spent == 0.6


def test_each_judge_has_its_own(store: PurseStore) -> None:
    assert purse(store).reserve(1.0, 60) is not None
    assert purse(store).reserve(0.1, 60) is None
    assert purse(store, key="another { judge }").reserve(1.0, 60) is not None


def test_an_hour_begins_anew_a_day_goes_on_and_a_call_is_paid_in_the_hour_in_which_it_began(store: PurseStore) -> None:
    clock = FakeClock(7_190.0)
    mine = purse(store, clock, usd_per_hour=1.0, usd_per_day=1.5)
    held = mine.reserve(1.0, 60)
    assert held is not None
    clock.advance(20)  # into the next hour
    assert [(s.spent, s.reserved) for s in mine.state()] == [(0, 0), (0, 1.0)]
    assert mine.reserve(0.6, 60) is None
    mine.settle(held, 0.8)
    assert [(s.spent, s.reserved) for s in mine.state()] == [(0, 0), (0.8, 0)]
    assert mine.reserve(0.7, 60) is not None


def test_a_reservation_that_nobody_settles_expires(store: PurseStore) -> None:
    clock = FakeClock()
    mine = purse(store, clock)
    held = mine.reserve(1.0, 60)
    assert held is not None
    clock.advance(60 + GRACE_S - 1)
    assert mine.reserve(0.1, 60) is None
    clock.advance(1)
    assert mine.state()[0].left == 1.0
    mine.settle(held, 0.9)  # it came back after all: it has cost that
    assert mine.state()[0].spent == 0.9
    assert mine.state()[0].reserved == 0


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    st.lists(
        st.tuples(st.sampled_from(["reserve", "settle", "wait"]), st.floats(0, 0.5), st.integers(0, 9)), max_size=40
    )
)
def test_whatever_is_done_no_ceiling_is_passed(tmp_path_factory: Any, steps: list[tuple[str, float, int]]) -> None:
    for made in (MemoryPurses(), SqlitePurses(tmp_path_factory.mktemp("purse") / "budget.sqlite")):
        clock = FakeClock(10_000.0)
        mine = purse(made, clock, usd_per_hour=1.0, usd_per_day=3.0)
        held: list[tuple[Reservation, float]] = []
        for what, amount, n in steps:
            if what == "reserve":
                found = mine.reserve(amount, 40 * 90)  # longer than all waits together: none comes back late
                if found is not None:
                    held.append((found, amount))
            elif what == "settle" and held:
                reservation, most = held.pop(n % len(held))
                mine.settle(reservation, min(amount, most))
            elif what == "wait":
                clock.advance(n * 10)
            for state in mine.state():
                assert state.spent + state.reserved <= state.limit + 1e-9
        if isinstance(made, SqlitePurses):
            made.close()


def test_threads_share_the_last_dollar_and_only_one_gets_it(store: PurseStore) -> None:
    mine = purse(store)
    with ThreadPoolExecutor(8) as pool:
        found = list(pool.map(lambda _: mine.reserve(0.3, 60), range(40)))
    assert sum(one is not None for one in found) == 3


SPEND = """
import sys
from spangrade.scoring.clock import SystemClock
from spangrade.scoring.purse import Purse
from spangrade.scoring.purse_store import purse_store
mine = Purse("helpful", {"usd_per_day": 1.0}, purse_store(sys.argv[1]), SystemClock())
got = 0
for _ in range(30):
    held = mine.reserve(0.02, 60)
    if held is not None:
        got += 1
        mine.settle(held, 0.02)
print(got)
"""


def test_processes_share_a_ceiling_and_together_never_pass_it(address: str) -> None:
    if address == "memory":
        pytest.skip("memory is of one process")
    env = {**os.environ, "PYTHONPATH": str(REPOSITORY / "sdk")}
    started = [
        subprocess.Popen([sys.executable, "-c", SPEND, address], stdout=subprocess.PIPE, text=True, env=env)
        for _ in range(3)
    ]
    got = [int(process.communicate(timeout=120)[0]) for process in started]
    assert sum(got) == 50  # of 90 that were tried


DIE = """
import os, sys
from spangrade.scoring.clock import SystemClock
from spangrade.scoring.purse import Purse
from spangrade.scoring.purse_store import purse_store
mine = Purse("helpful", {"usd_per_day": 1.0}, purse_store(sys.argv[1]), SystemClock())
assert mine.reserve(1.0, 60) is not None
print("held", flush=True)
sys.stdin.read()
"""


def test_what_a_killed_process_had_reserved_comes_back(address: str) -> None:
    if address == "memory":
        pytest.skip("memory is of one process")
    import time

    env = {**os.environ, "PYTHONPATH": str(REPOSITORY / "sdk")}
    with subprocess.Popen(
        [sys.executable, "-c", DIE, address], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=env
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "held\n"
        process.send_signal(signal.SIGKILL)
    clock = FakeClock(time.time())
    mine = purse(purse_store(address), clock, usd_per_day=1.0)
    assert mine.reserve(0.5, 60) is None
    clock.advance(60 + GRACE_S + 1)
    assert mine.reserve(0.5, 60) is not None


# --- the store is away, or is none --------------------------------------------------------------------------------------


class Away:
    def reserve(self, *_: Any) -> str | None:
        raise OSError("no")

    settle = held = reserve


def test_a_store_that_is_away_lends_nothing_and_raises_nothing() -> None:
    mine = purse(Away())  # type: ignore[arg-type]
    assert mine.reserve(0.1, 60) is None
    mine.settle(Reservation("x", (), UNIT), 0.1)
    assert mine.state() == []


def test_a_redis_that_is_not_there_lends_nothing() -> None:
    with socket.socket() as taken:  # and by nobody else meanwhile
        taken.bind(("127.0.0.1", 0))
        port = taken.getsockname()[1]
        assert purse(purse_store(f"redis://127.0.0.1:{port}/0")).reserve(0.1, 60) is None


def test_a_file_is_its_owners_and_one_of_another_release_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "deep" / "budget.sqlite"
    made = SqlitePurses(path)
    assert purse(made).reserve(0.1, 60) is not None
    assert path.stat().st_mode & 0o077 == 0
    assert path.parent.stat().st_mode & 0o077 == 0
    made.close()
    db = sqlite3.connect(path)
    db.execute("PRAGMA user_version = 9")
    db.close()
    with pytest.raises(PurseFormatError, match="format 9"):
        made.held("x", (), 0.0)
    assert purse(made).reserve(0.1, 60) is None


def test_a_fork_has_a_connection_of_its_own(tmp_path: Path) -> None:
    made = SqlitePurses(tmp_path / "budget.sqlite")
    mine = purse(made)
    assert mine.reserve(0.4, 60) is not None
    pid = os.fork()
    if pid == 0:
        os._exit(0 if mine.reserve(0.4, 60) is not None and mine.reserve(0.4, 60) is None else 1)
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0
    assert mine.reserve(0.4, 60) is None
    made.close()


def test_the_address_chooses_the_store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert isinstance(purse_store("memory"), MemoryPurses)
    assert purse_store("memory") is purse_store("memory")
    monkeypatch.setenv("SPANGRADE_BUDGET_STORE", str(tmp_path / "x.sqlite"))
    assert purse_store() is purse_store(str(tmp_path / "x.sqlite"))
    monkeypatch.delenv("SPANGRADE_BUDGET_STORE")
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    assert isinstance(purse_store(), SqlitePurses)
    (folder,) = [entry for entry in tmp_path.iterdir() if entry.is_dir()]
    assert folder.stat().st_mode & 0o077 == 0
    with pytest.raises(ConfigError, match="budget_store mysql"):
        purse_store("mysql://user:secret@host")


@pytest.mark.parametrize("kind", ["memory", "sqlite"])
def test_a_fork_while_another_thread_is_at_the_store_leaves_the_child_able_to_spend(kind: str, tmp_path: Path) -> None:
    made: Any = MemoryPurses() if kind == "memory" else SqlitePurses(tmp_path / "budget.sqlite")
    mine = purse(made)
    with made._lock:  # as a thread of the parent's would, which the child does not have
        pid = os.fork()
        if pid == 0:
            signal.alarm(10)
            os._exit(0 if mine.reserve(0.4, 60) is not None else 1)
        assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0
