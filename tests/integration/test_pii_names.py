"""`pii(ner=True)` with the real spaCy and its model, as the extra ``pii`` asks for them, in a venv of their own."""

from __future__ import annotations

import json
import os
import subprocess
import tomllib
from pathlib import Path
from typing import Any

import pytest

from . import vendors_venv

ROOT = Path(__file__).parents[2]
PROGRAM = """
import json, sys
from spangrade.metrics.builtin.pii import pii
from spangrade.model.sample import Sample

found = {}
for text in json.load(sys.stdin):
    (score,) = pii(ner=True).evaluate(Sample(output=text)).scores
    found[text] = [dict(score.metadata.get("kinds", {})), score.explanation]
people = pii(ner=["person"], exclude=["email"]).evaluate(Sample(output="Ada Lovelace lived in London; ada@b.io"))
print(json.dumps([found, dict(people.scores[0].metadata["kinds"]), "torch" in sys.modules]))
"""
TEXTS = [
    "Ada Lovelace lived in London for many years.",
    "Write to Barack Obama at barack@example.com, he lives in Chicago.",
    "The refund takes five working days.",
]

pytestmark = pytest.mark.integration


@pytest.fixture(scope="module")
def answers(tmp_path_factory: pytest.TempPathFactory) -> Any:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    versions = tmp_path_factory.mktemp("pii") / "pii_names.txt"
    versions.write_text("\n".join(project["optional-dependencies"]["pii"]) + "\n", encoding="utf-8")
    python = vendors_venv.ensure_vendors(versions)
    done = subprocess.run(
        [str(python), "-c", PROGRAM],
        input=json.dumps(TEXTS),
        env={**os.environ, "PYTHONPATH": str(ROOT / "sdk")},
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-4_000:]
    return json.loads(done.stdout)


def test_people_and_places_are_found_beside_what_has_a_shape(answers: Any) -> None:
    found = {text: kinds for text, (kinds, _) in answers[0].items()}
    assert found == {
        TEXTS[0]: {"person": 1, "place": 1},
        TEXTS[1]: {"email": 1, "person": 1, "place": 1},
        TEXTS[2]: {},
    }


def test_names_are_never_said(answers: Any) -> None:
    said = " ".join(explanation for _, explanation in answers[0].values())
    assert not [name for name in ("Ada", "Lovelace", "London", "Obama", "Chicago", "barack") if name in said]


def test_one_kind_of_names_can_be_asked_for(answers: Any) -> None:
    assert answers[1] == {"person": 1}
