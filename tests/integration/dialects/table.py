"""The README's table of what was tried, made of tried.toml. To write it into the README after a change of the data:

.venv/bin/python -m tests.integration.dialects.table
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from .venvs import ROOT, tried

README: Final = ROOT / "README.md"
HEAD: Final = (
    "| library | version | dialect | content capture | tried with |",
    "|---|---|---|---|---|",
)
_SHOWN: Final = re.compile(re.escape("\n".join(HEAD)) + r"\n((?:\|.*\|\n)*)")


def rows() -> list[str]:
    """The table's rows, by dialect and name as the data has them."""
    return [_row(one) for one in tried()["library"]]


def shown() -> list[str]:
    """The rows that the README has."""
    found = _SHOWN.search(README.read_text(encoding="utf-8"))
    return [] if found is None else found.group(1).splitlines()


def write(readme: Path = README) -> None:
    """Put the data's rows in place of the README's."""
    text = readme.read_text(encoding="utf-8")
    table = "".join(f"{line}\n" for line in (*HEAD, *rows()))
    readme.write_text(_SHOWN.sub(lambda _: table, text), encoding="utf-8")


def _row(one: Mapping[str, Any]) -> str:
    cells = (f"`{one['name']}`", one["version"], one["dialect"], one["capture"], one["note"])
    return f"| {' | '.join(cells)} |"


if __name__ == "__main__":
    write()
