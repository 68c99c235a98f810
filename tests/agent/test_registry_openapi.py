"""The registry's OpenAPI document, and the running agent fuzzed by it (schemathesis): no 5xx, and answers as it says."""

import json
import re
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from spangrade import _guard
from spangrade.judges.prompt import TEMPLATE_HASH
from spangrade_agent.api.openapi import document
from tests.agent.registry_agent import Running, running
from tests.unit.judges.conftest import JudgeServer

make = pytest.fixture(running)
TOKEN = "a-token-of-sixteen-letters"
#: What a schema cannot say: which models there are, that fields hold output, that an example's grade is of the scale.
NOT_CHECKED = {"positive_data_acceptance"}
EXAMPLES = 15


@pytest.fixture
def server() -> Iterator[JudgeServer]:
    made = JudgeServer()
    yield made
    made.close()


def test_the_document_is_one_of_openapi_3_1_whose_schemas_are_json_schema() -> None:
    found = json.loads(json.dumps(document()))
    assert found["openapi"] == "3.1.0"
    assert set(found["paths"]) == {
        "/v1/evaluators",
        "/v1/evaluators/preview",
        "/v1/evaluators/{id}",
        "/v1/evaluators/{id}/versions/{version}",
        "/v1/evaluators/{id}/activate",
        "/v1/evaluators/{id}/pause",
    }
    assert set(found["paths"]["/v1/evaluators/{id}"]) == {"get", "delete"}
    for schema in found["components"]["schemas"].values():
        jsonschema.Draft202012Validator.check_schema(schema)
    names = set(found["components"]["schemas"])
    assert {ref.rpartition("/")[2] for ref in _refs(found)} <= names


def _refs(value: Any) -> Iterator[str]:
    if isinstance(value, dict):
        if "$ref" in value:
            yield value["$ref"]
        for item in value.values():
            yield from _refs(item)
    elif isinstance(value, list):
        for item in value:
            yield from _refs(item)


def _with_ids(raw: dict[str, Any], ids: list[str]) -> dict[str, Any]:
    """The document with an id, a model and a template that are there, so that many requests get past what is refused."""
    raw = json.loads(json.dumps(raw))
    for operations in raw["paths"].values():
        for operation in operations.values():
            for parameter in operation["parameters"]:
                if parameter["name"] == "id":
                    parameter["schema"] = {"type": "string", "enum": ids}
    config = raw["components"]["schemas"]["JudgeConfig"]
    config["properties"].update(model={"enum": ["judge-test-1", "unknown"]}, template={"enum": [None, TEMPLATE_HASH]})
    config["required"].append("model")
    return raw


def test_whatever_is_sent_gets_an_answer_that_the_document_says_and_never_a_5xx(
    make: Callable[..., Running], tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    faults: list[str] = []
    request.addfinalizer(_guard.observe(lambda where, fault: faults.append(f"{where}: {fault!r}")))
    agent = make({"allow_live": True, "max_evaluators": 20}, page={"token": TOKEN})
    agent.headers["authorization"] = f"Bearer {TOKEN}"
    made = agent.put(live=True)
    raw = agent.ask("GET", "/openapi.json").json()
    file = tmp_path / "openapi.json"
    file.write_text(json.dumps(_with_ids(raw, [made["id"], f"ev_{'0' * 24}"])))
    command = [sys.executable, "-m", "schemathesis.cli", "--no-color", "run", str(file), "--url", agent.url]
    command += [
        "--header",
        f"Authorization: Bearer {TOKEN}",
        "--checks",
        "all",
        "--exclude-checks",
        ",".join(NOT_CHECKED),
    ]
    command += ["--max-examples", str(EXAMPLES), "--seed", "1", "--generation-database", "none"]
    command += ["--phases", "examples,coverage,fuzzing", "--suppress-health-check", "all"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=600, check=False, cwd=tmp_path)
    assert done.returncode == 0, done.stdout + done.stderr
    generated = re.search(r"(\d+) generated", done.stdout)
    assert generated is not None, done.stdout
    assert int(generated[1]) > 300
    assert agent.server.requests, "no preview has reached the model"
    assert faults == []
