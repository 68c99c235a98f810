"""Built-ins by import, by name and in the file."""

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import spangrade as sg
from spangrade import metrics
from spangrade.errors import ConfigError
from spangrade.metrics.builtin.table import BUILTIN
from spangrade.metrics.catalog import resolve
from spangrade.testing import CollectingExporter

LIGHT = [
    name for name in BUILTIN if BUILTIN[name].extra != "local" and name not in ("json_schema", "regex", "keywords")
]


@pytest.mark.parametrize("name", BUILTIN)
def test_every_built_in_can_be_imported_by_its_name(name: str) -> None:
    assert name in dir(metrics)
    assert callable(getattr(metrics, name))


def test_what_is_no_built_in_is_no_attribute() -> None:
    with pytest.raises(AttributeError, match="has no attribute 'nothing'"):
        metrics.__getattr__("nothing")


@pytest.mark.parametrize("name", LIGHT)
def test_by_name_by_function_and_by_path_is_the_same_metric(name: str) -> None:
    info = resolve(name).info
    assert info.name == name
    assert resolve(getattr(metrics, name)).info == info
    assert resolve(BUILTIN[name].path).info == info


@pytest.mark.parametrize(
    ("name", "sentence"),
    [("json_schema", "give the schema"), ("regex", "give the pattern"), ("keywords", "at least one word")],
)
def test_one_that_needs_an_option_says_so_however_it_is_given(name: str, sentence: str) -> None:
    for given in (name, getattr(metrics, name), BUILTIN[name].path):
        with pytest.raises(ConfigError, match=sentence):
            resolve(given)


def test_the_file_gives_options_by_config(tmp_path: Path) -> None:
    file = tmp_path / "spangrade.yaml"
    file.write_text(
        """
metrics:
  - {use: regex, config: {pattern: 'WORKING days', flags: im, name: says_days}}
  - {use: keywords, config: {none_of: [guaranteed, lawsuit]}}
  - {use: json_schema, config: {schema: {type: object}}}
  - {use: pii, config: {exclude: [ip_address], allow: ["@acme.com"]}}
  - {use: length_words, threshold: 5}
""",
        encoding="utf-8",
    )
    exporter = CollectingExporter()
    sg.configure(config_file=str(file), exporter=exporter)

    @sg.trace
    def answer(question: str) -> str:
        return "Five working days, guaranteed. Write to help@acme.com."

    answer("How long?")
    assert sg.flush(10)
    (span,) = exporter.named("answer")
    found: dict[str, Any] = {}
    for event in span.events:
        attributes: Any = event.attributes
        found[attributes["gen_ai.evaluation.name"]] = (
            attributes["gen_ai.evaluation.score.value"], attributes.get("gen_ai.evaluation.score.label"),
        )  # fmt: skip
    assert found == {
        "says_days": (1, "pass"), "keywords": (0, "fail"), "json_schema": (0, "fail"), "pii": (0, "pass"), "length_words": (8, "fail"),
    }  # fmt: skip


def test_importing_spangrade_loads_no_library_of_the_built_ins() -> None:
    program = (
        "import sys, spangrade, spangrade.metrics\n"
        "print([m for m in ('jsonschema', 'regex', 'py3langid', 'genai_prices', 'numpy', 'onnxruntime', 'spacy') if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60, check=True)
    assert done.stdout.strip() == "[]"


@pytest.mark.parametrize("name", BUILTIN)
def test_the_command_shows_each_with_its_parameters_and_without_a_warning(
    name: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """A parameter may have a name that pydantic keeps for itself: ``schema`` of `json_schema`. Warnings are errors here."""
    from spangrade.commands.metrics import main

    assert main(["show", name]) in (0, None)
    said = capsys.readouterr().out
    assert BUILTIN[name].summary in said
    if BUILTIN[name].factory:
        assert "target" in said.partition("config:")[2]
        assert "default" in said.partition("config:")[2]
