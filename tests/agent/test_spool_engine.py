"""The spool on disk: durable, in order, bounded, one process's at a time; and what it does when the disk does not."""

import errno
import os
import random
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from spangrade.errors import ConfigError
from spangrade_agent.spool import engine, files
from spangrade_agent.spool.engine import RECORD_COST, Spool
from spangrade_agent.spool.records import Drop, Put, SpoolFault, SpoolFull

MB = 1024 * 1024


@pytest.fixture
def spool(tmp_path: Path) -> Iterator[Spool]:
    made = Spool(tmp_path / "spool", 16 * MB)
    yield made
    made.close()


def test_what_was_written_is_there_after_a_restart_oldest_first(tmp_path: Path) -> None:
    first = Spool(tmp_path / "s", MB)
    keys = [first.new_key() for _ in range(3)]
    first.write([Put("out", key, b"%d" % key) for key in reversed(keys)])
    first.write([Put("held", first.new_key(), b"waits"), Drop("out", keys[1], was=1)])
    assert first.close()
    again = Spool(tmp_path / "s", MB)
    assert list(again.items("out")) == [(keys[0], b"%d" % keys[0]), (keys[2], b"%d" % keys[2])]
    assert [data for _, data in again.items("held")] == [b"waits"]
    assert again.new_key() > keys[2] + 1
    assert again.size == first.size == 3 * RECORD_COST + 2 + len(b"waits")
    again.close()


def test_steps_of_one_write_are_done_together_or_not_at_all(spool: Spool, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(SpoolFault, match="cannot be written"):
        spool.write([Put("out", 1, b"x"), Put("out", -1, b"no such key")])
    assert list(spool.items("out")) == []
    assert spool.size == 0
    assert spool.broken is not None
    spool.write([Put("out", 1, b"x")])
    assert spool.broken is None


def test_one_write_that_fails_costs_no_other_of_its_group_theirs(spool: Spool) -> None:
    entered, go = threading.Event(), threading.Event()

    def first(durable: bool) -> None:
        entered.set()
        go.wait(30)

    spool.write_later([Put("out", 1, b"first")], first)
    assert entered.wait(30)
    ended: list[tuple[str, bool]] = []
    spool.write_later([Put("out", 2, b"good")], lambda durable: ended.append(("good", durable)))
    spool.write_later([Put("out", -1, b"bad")], lambda durable: ended.append(("bad", durable)))
    go.set()
    spool.flush()
    assert ended == [("good", True), ("bad", False)]
    assert [key for key, _ in spool.items("out")] == [1, 2]
    assert spool.size == 2 * RECORD_COST + len(b"firstgood")


def test_at_its_bound_it_refuses_what_waits_for_an_answer_and_takes_what_is_its_own(tmp_path: Path) -> None:
    spool = Spool(tmp_path / "s", 10_000)
    key = spool.new_key()
    spool.write([Put("out", key, bytes(10_000))])
    assert spool.full()
    with pytest.raises(SpoolFull, match="max_bytes"):
        spool.write([Put("out", spool.new_key(), b"more")])
    spool.write_later([Put("out", spool.new_key(), b"own")])
    spool.flush()
    assert [len(data) for _, data in spool.items("out")] == [10_000, 3]
    spool.write_later([Drop("out", key, was=10_000)])
    spool.flush()
    assert not spool.full()
    spool.close()


def test_a_record_written_anew_counts_once(spool: Spool) -> None:
    spool.write([Put("held", 1, b"short")])
    spool.write([Put("held", 1, b"somewhat longer", was=5)])
    assert spool.size == RECORD_COST + len(b"somewhat longer")


def test_a_disk_that_is_full_fails_the_write_and_not_the_process(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(files, "_SLACK", 64 * 1024)
    spool = Spool(tmp_path / "s", 32 * 1024)
    with pytest.raises(SpoolFault, match="MapFullError"):
        spool.write([Put("out", spool.new_key(), bytes(MB))])
    assert spool.broken is not None
    spool.write([Put("out", spool.new_key(), b"small")])
    assert spool.broken is None
    spool.close()


def test_a_second_process_is_told_that_the_spool_is_taken(spool: Spool) -> None:
    with pytest.raises(ConfigError, match="in use by another process"):
        Spool(spool.path, MB)


def test_a_newer_format_is_refused_with_a_sentence(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as later:
        later.setattr(files, "FORMAT", b"99")
        Spool(tmp_path / "s", MB).close()
    with pytest.raises(ConfigError, match="has format 99, and this release reads 1"):
        Spool(tmp_path / "s", MB)
    monkeypatch.setattr(files, "FORMAT", b"99")
    Spool(tmp_path / "s", MB).close()  # and the refusal let go of it


def test_a_corrupt_spool_is_kept_aside_and_a_new_one_begun(tmp_path: Path) -> None:
    first = Spool(tmp_path / "s", MB)
    first.write([Put("out", first.new_key(), b"x")])
    first.close()
    (tmp_path / "s" / "data.mdb").write_bytes(b"not a spool" * 1000)
    again = Spool(tmp_path / "s", MB)
    assert list(again.items("out")) == []
    again.write([Put("out", again.new_key(), b"y")])
    again.close()
    [aside] = tmp_path.glob("s.corrupt-*")
    assert (aside / "data.mdb").read_bytes().startswith(b"not a spool")


@pytest.mark.parametrize("seed", range(8))
def test_a_store_that_is_damaged_anywhere_or_cut_is_kept_aside_and_ends_no_process(tmp_path: Path, seed: int) -> None:
    chance = random.Random(seed)
    first = Spool(tmp_path / "s", 64 * MB)
    for _ in range(150):
        first.write([Put("out", first.new_key(), b"t" + chance.randbytes(chance.choice([200, 3_000, 20_000])))])
    first.close()
    file = tmp_path / "s" / "data.mdb"
    size = file.stat().st_size
    if seed % 2:
        os.truncate(file, chance.randrange(8_192, size))
    else:
        with file.open("r+b") as held:
            for _ in range(400):
                held.seek(chance.randrange(8_192, size))
                held.write(chance.randbytes(64))
    code = "import sys; from spangrade_agent.spool.engine import Spool; s = Spool(sys.argv[1], 2**26); print(s.size); s.close()"
    ran = subprocess.run([sys.executable, "-c", code, str(tmp_path / "s")], capture_output=True, text=True, check=False)
    assert ran.returncode == 0, ran.stderr[-2_000:]


def test_keys_of_a_store_that_opens_late_are_none_of_those_that_it_holds(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = Spool(tmp_path / "s", MB)
    for _ in range(5):
        first.write([Put("out", first.new_key(), b"told")])
    first.close()

    def ails(*_: Any, **__: Any) -> int:
        raise OSError(errno.EIO, os.strerror(errno.EIO))

    with monkeypatch.context() as now:
        now.setattr(engine, "RETRY_S", 0.0)
        now.setattr(Path, "mkdir", ails)
        late = Spool(tmp_path / "s", MB)
    late.write([Put("out", late.new_key(), b"tnew")])
    assert [data for _, data in late.items("out")] == [b"told"] * 5 + [b"tnew"]
    assert late.size == 6 * (RECORD_COST + 4)
    late.close()


def test_a_place_that_is_no_folder_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(ConfigError, match=r"spool\.path .*file"):
        Spool(tmp_path / "file", MB)


@pytest.mark.parametrize("ailment", [errno.EROFS, errno.ENOSPC])
def test_a_disk_that_ails_at_the_start_is_tried_again_later_and_ends_no_agent(
    ailment: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def ails(*_: Any, **__: Any) -> int:
        raise OSError(ailment, os.strerror(ailment))

    with monkeypatch.context() as now:
        now.setattr(engine, "RETRY_S", 0.0)
        now.setattr(files.fcntl, "flock", ails)
        now.setattr(Path, "mkdir", ails)
        spool = Spool(tmp_path / "s", MB)
        assert os.strerror(ailment) in str(spool.broken)
        assert list(spool.items("out")) == []
        with pytest.raises(SpoolFault, match="cannot be written"):
            spool.write([Put("out", spool.new_key(), b"x")])
    spool.write([Put("out", spool.new_key(), b"y")])
    assert spool.broken is None
    assert [data for _, data in spool.items("out")] == [b"y"]
    spool.close()


def test_what_comes_after_the_close_is_refused(tmp_path: Path) -> None:
    spool = Spool(tmp_path / "s", MB)
    spool.close()
    told: list[bool] = []
    spool.write_later([Put("out", 1, b"x")], told.append)
    assert told == [False]
    with pytest.raises(SpoolFault, match="closed"):
        spool.write([Put("out", 1, b"x")])


WRITER = """
import sys, threading
from spangrade_agent.spool.engine import Spool
from spangrade_agent.spool.records import Put
spool = Spool(sys.argv[1], 2**28)
lock = threading.Lock()
def work():
    while True:
        key = spool.new_key()
        spool.write([Put("out", key, b"%d " % key * 200)])
        with lock:
            print(key, flush=True)
for _ in range(4):
    threading.Thread(target=work).start()
"""


@pytest.mark.parametrize("attempt", range(3))
def test_a_killed_process_leaves_everything_that_it_acknowledged(tmp_path: Path, attempt: int) -> None:
    acknowledged = random.randrange(20, 200)
    command: Any = [sys.executable, "-c", WRITER, str(tmp_path / "s")]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as writer:
        assert writer.stdout is not None
        said = [int(writer.stdout.readline()) for _ in range(acknowledged)]
        writer.send_signal(signal.SIGKILL)
        said += [int(line) for line in writer.stdout.read().splitlines(keepends=True) if line.endswith("\n")]
    left = Spool(tmp_path / "s", 2**28)
    there = dict(left.items("out"))
    left.close()
    assert set(said) <= set(there)
    assert all(data == b"%d " % key * 200 for key, data in there.items())
