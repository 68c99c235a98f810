"""The README's table of instrumentations is the data from which they are installed, and each is tested."""

import json
import re
from pathlib import Path
from typing import Any

import pytest
from tests.integration.dialects import table, venvs

from spangrade.samples.dialects import DIALECTS

HERE = Path(venvs.__file__).parent
TRIED: dict[str, Any] = venvs.tried()
LIBRARIES = TRIED["library"]


def test_the_readme_shows_what_was_tried() -> None:
    """After a change of tried.toml: python -m tests.integration.dialects.table"""
    assert table.shown() == table.rows()


@pytest.mark.parametrize("library", LIBRARIES, ids=lambda library: library["name"])
def test_a_row_says_all_and_is_one_line_of_a_table(library: dict[str, Any]) -> None:
    assert set(library) - {"venv", "npm"} == {"name", "version", "dialect", "capture", "note"}
    for said in library.values():
        assert said
        assert not set(said) & {"|", "\n"}


@pytest.mark.parametrize("library", LIBRARIES, ids=lambda library: library["name"])
def test_a_row_names_dialects_that_there_are(library: dict[str, Any]) -> None:
    known = {dialect.name for dialect in DIALECTS}
    assert set(re.split(r"\W*(?:,|\band\b|\+)\W*", library["dialect"])) <= known


@pytest.mark.parametrize("library", LIBRARIES, ids=lambda library: library["name"])
def test_what_was_tried_is_what_gets_installed(library: dict[str, Any]) -> None:
    name, version = library["name"], library["version"]
    if "npm" in library:
        packages = json.loads((HERE / "npm" / library["npm"] / "package.json").read_text(encoding="utf-8"))
        assert packages["dependencies"][name] == version
    else:
        assert f"{name}=={version}" in _pins(library["venv"])


@pytest.mark.parametrize("name", TRIED["venv"])
def test_the_clients_beside_are_those_that_were_said(name: str) -> None:
    assert set(TRIED["venv"][name].get("with", [])) <= set(_pins(name))


def _pins(name: str) -> list[str]:
    return (HERE / "venvs" / f"{name}.txt").read_text(encoding="utf-8").splitlines()
