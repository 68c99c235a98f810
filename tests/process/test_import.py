"""What `import spangrade` costs an application that uses little of it."""

import json
import subprocess
import sys

HEAVY = {
    "genai_prices", "jinja2", "jsonschema", "numpy", "onnxruntime", "pandas", "py3langid", "redis", "regex", "spacy",
    "sqlite3", "tokenizers", "tqdm", "uvicorn", "yaml",
}  # fmt: skip
NOT_NEEDED_YET = {
    "spangrade.experiments.experiment", "spangrade.metrics.adapter", "spangrade.metrics.builtin.overlap",
    "spangrade.metrics.functional_metric", "spangrade.metrics.tree_pass",
}  # fmt: skip


def said_by(program: str) -> object:
    run = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    return json.loads(run.stdout)


def test_the_front_door_imports_nothing_heavy() -> None:
    found = said_by("import json, sys, spangrade; print(json.dumps(sorted(sys.modules)))")
    assert isinstance(found, list)
    assert "spangrade.otel.bootstrap" in found
    assert not (HEAVY | NOT_NEEDED_YET) & set(found)


def test_the_files_models_are_built_with_the_first_file() -> None:
    program = """
import json, spangrade
from spangrade import config

def built():
    return [m.__name__ for m in (config.FileConfig, config.TreeShape, config.JudgeEntry) if m.__pydantic_complete__]

imported = built()
spangrade.configure(metrics=["json_valid"], endpoint="http://127.0.0.1:9")
spangrade.shutdown()
configured = built()
config.FileConfig(metrics=[{"tree": {"name": "t", "children": ["pii", {"tree": {"name": "u", "children": ["pii"]}}]}}])
print(json.dumps([imported, configured, "FileConfig" in built()]))
"""
    assert said_by(program) == [[], [], True]
