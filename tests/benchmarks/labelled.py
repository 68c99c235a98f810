"""The labelled sets beside the repository (``../shared/data``) as samples with a human label and a cluster.

Nothing of them is in the repository. What is missing is said by `missing`.
"""

import csv
import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

DATA = Path(__file__).resolve().parents[3] / "shared" / "data"
_Q2 = ("dodeca_consistent", "dodeca_inconsistent", "memnet_consistent", "memnet_inconsistent")


@dataclass(frozen=True)
class Labelled:
    """One answer with its documents. ``cluster``: what must never stand on both sides of a fold."""

    name: str
    output: str
    documents: list[dict[str, Any]]
    grounded: bool
    label: str
    cluster: str
    input: str = ""


def missing() -> list[str]:
    """Files that are not there."""
    wanted = [DATA / "q2" / f"{name}.csv" for name in _Q2] + [DATA / "wice" / "claim.dev.jsonl"]
    return [f"../shared/data/{path.relative_to(DATA)}" for path in wanted if not path.is_file()]


def q2() -> list[Labelled]:
    """600 dialogue replies of two systems and the knowledge they should rest on (Honovich et al. 2021).

    Replies that share a dialogue, the knowledge or the topic are one cluster.
    """
    rows = []
    for name in _Q2:
        with (DATA / "q2" / f"{name}.csv").open(encoding="utf-8", newline="") as file:
            rows += [(row, name.endswith("_consistent")) for row in csv.DictReader(file)]
    parent: dict[tuple[str, str], tuple[str, str]] = {}

    def root(key: tuple[str, str]) -> tuple[str, str]:
        while parent.setdefault(key, key) != key:
            key = parent[key]
        return key

    for row, _ in rows:
        for kind in ("knowledge", "topic"):
            parent[root((kind, row[kind]))] = root(("episode_idx", row["episode_idx"]))
    return [
        Labelled(
            name="q2",
            output=row["response"],
            documents=[{"id": row["topic"], "content": row["knowledge"]}],
            grounded=consistent,
            label="consistent" if consistent else "inconsistent",
            cluster="q2:" + "/".join(root(("episode_idx", row["episode_idx"]))),
            input=row["message"],
        )
        for row, consistent in rows
    ]


def wice() -> list[Labelled]:
    """1,043 pairs of a claim in Wikipedia and a part of the page that it cites (Kamoi et al. 2023), development set.

    Grounded is *supported*; *partially_supported* and *not_supported* are not. Claims of one article are one cluster.
    """
    with (DATA / "wice" / "claim.dev.jsonl").open(encoding="utf-8") as file:
        rows = [json.loads(line) for line in file]
    return [
        Labelled(
            name="wice",
            output=row["claim"],
            documents=[{"id": row["meta"]["id"], "content": "\n".join(row["evidence"])}],
            grounded=row["label"] == "supported",
            label=row["label"],
            cluster="wice:" + row["meta"]["claim_title"],
        )
        for row in rows
    ]


def both() -> Iterator[tuple[str, list[Labelled]]]:
    """The sets by name."""
    yield "q2", q2()
    yield "WiCE dev", wice()
