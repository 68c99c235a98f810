"""The registry's SQLite file: kept, shared, bounded, and refused where it is not ours."""

import multiprocessing
import re
import sqlite3
import stat
from pathlib import Path
from typing import Any

import pytest

from spangrade.errors import ConfigError
from spangrade_agent import registry as module
from spangrade_agent.cli import main
from spangrade_agent.config import read
from spangrade_agent.registry import APPLICATION, Registry, RegistryFull, RegistryUnavailable

#: A file as the release 0.1 writes it. A change of the format has to read it, or to refuse it with a sentence.
FORMAT_1 = """
CREATE TABLE evaluators (id TEXT PRIMARY KEY, project_id TEXT NOT NULL, name TEXT NOT NULL, active_version INTEGER,
    paused INTEGER NOT NULL DEFAULT 0, created_ns INTEGER NOT NULL, UNIQUE (project_id, name));
CREATE TABLE versions (evaluator_id TEXT NOT NULL REFERENCES evaluators (id), version INTEGER NOT NULL,
    config_hash TEXT NOT NULL, config TEXT NOT NULL, threshold REAL NOT NULL, live TEXT NOT NULL,
    created_ns INTEGER NOT NULL, PRIMARY KEY (evaluator_id, version), UNIQUE (evaluator_id, config_hash));
INSERT INTO evaluators VALUES ('ev_000000000000000000000001', 'default', 'helpful', 1, 0, 1700000000000000000);
INSERT INTO versions VALUES ('ev_000000000000000000000001', 1, '0123456789abcdef', '{"name": "helpful"}', 0.5,
    '{"rate": 0.1}', 1700000000000000000);
PRAGMA application_id = 1397770058;
PRAGMA user_version = 1;
"""


def put(registry: Registry, config_hash: str = "a", *, start: bool = False, **more: Any) -> Any:
    given = {"project_id": "default", "name": "helpful", "config": {"name": "helpful"}, "threshold": 0.5, "live": True}
    return registry.put(config_hash=config_hash, start=start, **{**given, **more})


def test_what_was_put_is_there_when_the_file_is_opened_again(tmp_path: Path) -> None:
    path = str(tmp_path / "registry.db")
    first = Registry(path, now=iter(range(100)).__next__)
    record, version, new = put(first, config={"criteria": "é\u202e ' \"", "levels": {"5": "x"}}, live={"rate": 0.25})
    put(first, "b", start=True)
    first.close()
    second = Registry(path)
    (found,) = second.all()
    assert (new, found.id, found.active, [one.version for one in found.versions]) == (True, record.id, 2, [1, 2])
    assert found.versions[0] == version
    assert second.get(record.id) == found
    second.close()


def test_one_configuration_is_one_version_and_each_project_has_its_own(tmp_path: Path) -> None:
    registry = Registry(str(tmp_path / "r.db"))
    first, version, new = put(registry)
    again, same, newer = put(registry, threshold=0.9)
    other, _, _ = put(registry, project_id="other")
    assert (new, newer, again.id, same.version, same.threshold) == (True, False, first.id, version.version, 0.9)
    assert other.id != first.id
    assert len(registry.all()) == 2
    registry.close()


def test_a_judge_that_is_live_no_more_pauses_and_does_not_start_again_by_itself(tmp_path: Path) -> None:
    registry = Registry(str(tmp_path / "r.db"))
    record, _, _ = put(registry)
    registry.set_active(record.id, 1)
    assert put(registry, live=False)[0].active is None
    assert put(registry, live=True)[0].active is None
    assert put(registry, live=False)[0].active is None
    assert put(registry, live=True, start=True)[0].active == 1
    registry.close()


def test_the_file_is_its_owners_alone(tmp_path: Path) -> None:
    path = tmp_path / "r.db"
    Registry(str(path)).close()
    assert stat.S_IMODE(path.stat().st_mode) == 0o600


def test_the_files_of_release_0_1_are_read(tmp_path: Path) -> None:
    path = tmp_path / "r.db"
    with sqlite3.connect(path) as db:
        db.executescript(FORMAT_1)
    db.close()
    registry = Registry(str(path))
    (record,) = registry.all()
    assert (record.name, record.active, record.latest.live) == ("helpful", 1, {"rate": 0.1})
    assert put(registry, "b")[1].version == 2
    registry.close()


@pytest.mark.parametrize("version", [0, 2, 99])
def test_a_file_of_another_format_is_refused_and_left_as_it_is(tmp_path: Path, version: int) -> None:
    path = tmp_path / "r.db"
    with sqlite3.connect(path) as db:
        db.executescript(FORMAT_1 + f"PRAGMA user_version = {version};")
    db.close()
    before = path.read_bytes()
    with pytest.raises(
        ConfigError, match=rf"is of format {version}, and this release reads format 1 .*name a new file"
    ):
        Registry(str(path))
    assert path.read_bytes() == before


def test_a_sqlite_file_of_something_else_is_refused_and_left_as_it_is(tmp_path: Path) -> None:
    path = tmp_path / "other.db"
    with sqlite3.connect(path) as db:
        db.execute("CREATE TABLE mine (a)")
    db.close()
    before = path.read_bytes()
    with pytest.raises(ConfigError, match="SQLite file of something else; name another file"):
        Registry(str(path))
    assert path.read_bytes() == before


def test_a_file_that_is_no_sqlite_a_folder_and_a_missing_folder_are_refused_with_a_sentence(tmp_path: Path) -> None:
    text = tmp_path / "notes.txt"
    text.write_text("my notes, not a database, and rather longer than a header " * 50)
    for path, said in (
        (text, "is no registry of judges"),
        (tmp_path, "cannot be opened"),
        (
            tmp_path / "no" / "r.db",
            "cannot be opened: No such file or directory; name a file in a folder that is there",
        ),
    ):
        with pytest.raises(ConfigError, match=re.escape(said)):
            Registry(str(path))
    assert text.read_text().startswith("my notes")


def test_evaluators_versions_and_bytes_are_bounded_with_a_way_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    registry = Registry(str(tmp_path / "r.db"), max_evaluators=2)
    put(registry)
    put(registry, name="second")
    with pytest.raises(RegistryFull, match=r"raise registry\.max_evaluators"):
        put(registry, name="third")
    monkeypatch.setattr(module, "MAX_VERSIONS", 2)
    put(registry, "b")
    with pytest.raises(RegistryFull, match="register it under another name"):
        put(registry, "c")
    assert [len(record.versions) for record in registry.all()] == [2, 1]
    registry.close()
    monkeypatch.setattr(module, "MAX_BYTES", 64 * 1024)
    small = Registry(str(tmp_path / "small.db"))
    with pytest.raises(RegistryFull, match=r"name a new file in registry\.path"):
        put(small, config={"criteria": "x" * 100_000})
    assert small.all() == []
    assert put(small)[2]
    small.close()


def test_a_file_that_somebody_holds_is_unavailable_and_not_a_fault(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "BUSY_S", 0.01)
    registry = Registry(str(tmp_path / "r.db"))
    other = sqlite3.connect(tmp_path / "r.db", isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    with pytest.raises(RegistryUnavailable, match="locked"):
        put(registry)
    assert registry.all() == []
    other.execute("ROLLBACK")
    other.close()
    assert put(registry)[2]
    registry.close()


def test_the_application_id_says_whose_file_it_is(tmp_path: Path) -> None:
    Registry(str(tmp_path / "r.db")).close()
    db = sqlite3.connect(tmp_path / "r.db")
    assert db.execute("PRAGMA application_id").fetchone()[0] == APPLICATION
    assert db.execute("PRAGMA journal_mode").fetchone()[0] == "wal"
    db.close()


def register_many(path: str, start: Any, worker: int) -> None:
    start.wait(60)
    registry = Registry(path, max_evaluators=1_000)
    for n in range(20):
        put(registry, f"shared-{n}")
        put(registry, "a", name=f"own-{worker}-{n}")
    registry.close()


def test_two_processes_make_one_file_at_once_and_each_configuration_is_one_version(tmp_path: Path) -> None:
    context = multiprocessing.get_context("spawn")
    path, start = str(tmp_path / "r.db"), context.Event()
    workers = [context.Process(target=register_many, args=(path, start, n)) for n in range(2)]
    for worker in workers:
        worker.start()
    start.set()
    for worker in workers:
        worker.join(120)
        assert worker.exitcode == 0
    registry = Registry(path)
    found = {record.name: record for record in registry.all()}
    assert len(found) == 41
    assert sorted(one.config_hash for one in found["helpful"].versions) == sorted(f"shared-{n}" for n in range(20))
    assert [one.version for one in found["helpful"].versions] == list(range(1, 21))
    registry.close()


def test_another_connections_change_is_noticed_and_ones_own_is_not(tmp_path: Path) -> None:
    one, other = Registry(str(tmp_path / "r.db")), Registry(str(tmp_path / "r.db"))
    before = one.changes()
    put(one)
    assert one.changes() == before
    put(other, "b")
    assert one.changes() != before
    one.close()
    other.close()


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("registry: {pth: x}", "'registry.path' is missing; unknown key 'registry.pth' (top"),
        ("registry: true", "'registry' is True: Input should be a valid dictionary"),
        ("registry: {path: a, max_rate: 3}", "'registry.max_rate' is 3: Input should be less than or equal to 1 (top"),
        ("page: {listn: a, token: very-secret}", "unknown key 'page.listn' (top"),
        ("page: {token: [very-secret]}", "'page.token' is list: Input should be a valid string (top"),
        ("page: {token: {a: very-secret}}", "'page.token' is dict: Input should be a valid string (top"),
    ],
)
def test_what_is_wrong_with_a_part_that_can_be_switched_off_is_said_by_its_key_and_without_its_token(
    tmp_path: Path, text: str, said: str
) -> None:
    file = tmp_path / "agent.yaml"
    file.write_text(text)
    with pytest.raises(ConfigError) as caught:
        read(file)
    assert said in str(caught.value)
    assert "very-secret" not in str(caught.value)


def test_check_config_looks_at_the_registry_and_leaves_everything_as_it_is(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file, registry = tmp_path / "agent.yaml", tmp_path / "registry.db"
    file.write_text(f"registry: {{path: {registry}}}\n")
    assert main(["check-config", str(file)]) == 0
    assert [one.name for one in tmp_path.iterdir()] == ["agent.yaml"]
    made = Registry(str(registry))
    put(made)
    before = {one.name: one.read_bytes() for one in tmp_path.iterdir()}
    assert main(["check-config", str(file)]) == 0  # beside an agent that runs
    assert {one.name: one.read_bytes() for one in tmp_path.iterdir()} == before
    made.close()
    other = sqlite3.connect(tmp_path / "other.db")
    other.execute("PRAGMA user_version = 7")
    other.commit()
    other.close()
    (tmp_path / "notes.txt").write_text("my notes, which are no database at all")
    for path, said in (
        ("other.db", "SQLite file of something else"),
        ("notes.txt", "is no registry of judges"),
        ("no/r.db", "there is no folder"),
        (".", "it is no file"),
    ):
        file.write_text(f"registry: {{path: {tmp_path / path}}}\n")
        assert main(["check-config", str(file)]) == 2
        assert said in capsys.readouterr().err
