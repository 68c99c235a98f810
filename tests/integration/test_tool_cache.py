"""What the tests install is installed once, whole, and from no registry in particular."""

from __future__ import annotations

import threading
from pathlib import Path

import pytest

from . import tool_cache
from .apps import LOCK
from .jaeger_build import cache_root
from .processes import REQUIRE


@pytest.fixture(autouse=True)
def empty_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("SPANGRADE_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache"


def test_the_javascript_lock_file_names_no_host_and_has_a_checksum_for_every_package() -> None:
    text = LOCK.read_text(encoding="utf-8")
    # With `npm install --package-lock-only --omit-lockfile-registry-resolved`; npm fills in whatever registry it is set to.
    assert '"resolved"' not in text
    assert text.count('"integrity": "sha512-') == text.count('"node_modules/')


def test_those_who_ask_at_once_get_one_installation() -> None:
    made: list[Path] = []
    all_ask = threading.Barrier(3)

    def ask() -> None:
        all_ask.wait(10)
        got.append(tool_cache.ensure("thing", made.append))

    got: list[Path] = []
    threads = [threading.Thread(target=ask) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(10)
    assert len(made) == 1
    assert len(got) == 3
    assert set(got) == {cache_root() / "thing"}


def test_a_failed_installation_shows_the_end_of_its_log_and_leaves_nothing(empty_cache: Path) -> None:
    def install(folder: Path) -> None:
        tool_cache.run(["sh", "-c", "echo no such package; exit 3"], folder, timeout=10)

    with pytest.raises(tool_cache.InstallError, match=r"exit code 3(?s:.*)no such package"):
        tool_cache.ensure("thing", install)
    assert not (empty_cache / "thing").exists()


@pytest.mark.parametrize(("required", "outcome"), [("", pytest.skip.Exception), ("1", pytest.fail.Exception)])
def test_without_a_tool_a_test_is_skipped_with_a_sentence_and_fails_where_it_is_required(
    required: str, outcome: type[BaseException], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", "")
    monkeypatch.setenv(REQUIRE, required)
    with pytest.raises(outcome, match="there is no `node` on the PATH, which runs the application"):
        tool_cache.tool("node", "which runs the application in JavaScript")
