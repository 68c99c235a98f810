"""Metrics by name: catalogs, packages' entry points, and which of them comes first."""

import importlib
import sys
from collections.abc import Iterator
from importlib.metadata import PackageNotFoundError
from pathlib import Path
from typing import Any

import pytest
from pydantic import BaseModel

import spangrade as sg
from spangrade.metrics import lookup
from spangrade.metrics.builtin.table import BUILTIN
from spangrade.metrics.catalog import resolve


@pytest.fixture(autouse=True)
def own_names() -> Iterator[None]:
    """What a test registers is gone afterwards."""
    classes: dict[str, Any] = sg.MetricsCatalog._classes
    before = dict(classes)
    yield
    classes.clear()
    classes.update(before)


class Base(sg.BaseMetric[int]):
    def evaluate(self, text: str) -> dict[str, int]:
        return self.result(1)


def new(name: str) -> type[sg.BaseMetric[int]]:
    return type(name, (Base,), {})


# --- registering -------------------------------------------------------------------------------------------------------


def test_register_bare_and_named() -> None:
    @sg.register_metric
    class Plain(Base): ...

    @sg.register_metric(name="by_name")
    class Named(Base): ...

    @sg.register_metric()
    class Called(Base): ...

    @sg.register_metric(name="other_name")
    class Says(Base):
        name = "says"

    assert sg.MetricsCatalog.get("Plain") is Plain
    assert sg.MetricsCatalog.get("by_name") is Named
    assert sg.MetricsCatalog.get("Called") is Called
    assert sg.MetricsCatalog.get("other_name") is Says
    assert (Named.name, Named().evaluate("")) == ("by_name", {"by_name": 1})
    assert Says.name == "says"  # it says so itself
    assert "Named" not in sg.MetricsCatalog
    assert {"Plain", "by_name", "Called"} <= set(sg.MetricsCatalog.names())


def test_the_default_name_is_the_classs() -> None:
    @sg.register_metric
    class Says(Base):
        name = "says"

    assert sg.MetricsCatalog.get("says") is Says


def test_the_catalog_is_one_as_class_and_as_instance() -> None:
    sg.MetricsCatalog.register(new("One"))
    catalog = sg.MetricsCatalog()
    assert "One" in catalog
    assert "One" in sg.MetricsCatalog
    catalog.register(new("Two"), "two")
    assert sg.MetricsCatalog.get("two").__name__ == "Two"
    assert isinstance(sg.MetricsCatalog, sg.Catalog)
    assert isinstance(catalog, sg.Catalog)


def test_an_unknown_name_is_a_key_error_that_names_near_misses() -> None:
    sg.MetricsCatalog.register(new("quotations"))
    with pytest.raises(KeyError, match="no metric 'quotation' in MetricsCatalog; did you mean 'quotations'"):
        sg.MetricsCatalog.get("quotation")
    with pytest.raises(KeyError, match=r"there are .*json_valid.*quotations"):
        sg.MetricsCatalog.get("zzzzzzzzz")
    with pytest.raises(KeyError, match="did you mean 'overlap'"):
        sg.MetricsCatalog.get("overlp")
    assert "quotation" not in sg.MetricsCatalog
    assert 3 not in sg.MetricsCatalog


def test_another_class_under_a_taken_name_is_an_error_and_the_same_class_again_is_not() -> None:
    one, other = new("One"), new("Other")
    sg.MetricsCatalog.register(one)
    sg.MetricsCatalog.register(one)
    with pytest.raises(sg.ConfigError, match=r"\.Other: the name 'One' is that of .*\.One already; give another"):
        sg.register_metric(name="One")(other)
    assert sg.MetricsCatalog.get("One") is one
    assert other.name == "Other"
    with pytest.raises(sg.ConfigError, match="'overlap' is the name of a built-in metric"):
        sg.register_metric(name="overlap")(other)


def test_a_module_that_is_reloaded_registers_its_class_anew(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    text = """
import spangrade as sg
@sg.register_metric
class Reloaded(sg.BaseMetric[int]):
    def evaluate(self, text): return self.result({})
"""
    (tmp_path / "reloaded_metrics.py").write_text(text.format(1))
    monkeypatch.syspath_prepend(str(tmp_path))
    module = importlib.import_module("reloaded_metrics")
    (tmp_path / "reloaded_metrics.py").write_text("# a line more\n" + text.format(22222))
    importlib.reload(module)
    assert sg.MetricsCatalog.get("Reloaded")().evaluate("") == {"Reloaded": 22222}


def test_what_is_no_metrics_class_is_refused() -> None:
    for thing in (int, Base(), sg.BaseMetric, sg.metric(lambda sample: 1)):
        with pytest.raises(TypeError):
            sg.MetricsCatalog.register(thing)  # type: ignore[arg-type]
    with pytest.raises(TypeError, match=r"write @register_metric\(name='x'\)"):
        sg.register_metric("x")  # type: ignore[call-overload]


def test_built_ins_are_in_the_catalog_too() -> None:
    assert "overlap" in sg.MetricsCatalog
    assert set(BUILTIN) <= set(sg.MetricsCatalog.names())
    assert sg.MetricsCatalog.get("overlap") is resolve("overlap")


def test_other_catalogs_by_protocol_and_by_subclass() -> None:
    class Mine:
        def __init__(self) -> None:
            self.held: dict[str, Any] = {}

        def register(self, cls: Any, name: str | None = None) -> None:
            self.held[name or cls.name] = cls

        def get(self, name: str) -> Any:
            return self.held[name]

        def names(self) -> list[str]:
            return list(self.held)

        def __contains__(self, name: object) -> bool:
            return name in self.held

    mine = Mine()

    @sg.register_metric(name="overlap", catalog=mine)
    class Own(Base): ...

    assert mine.get("overlap") is Own
    assert sg.MetricsCatalog.get("overlap") is not Own

    class Ours(sg.MetricsCatalog): ...

    sg.register_metric(catalog=Ours)(new("Inside"))
    assert "Inside" in Ours
    assert Ours.names() == ["Inside"]
    assert "Inside" not in sg.MetricsCatalog


# --- packages ----------------------------------------------------------------------------------------------------------


def install(where: Path, name: str, module: str, points: dict[str, str]) -> None:
    """A distribution as an installer leaves it: a module, and its metadata."""
    where.mkdir(exist_ok=True)
    (where / f"{name}.py").write_text(module)
    info = where / f"{name}-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n")
    lines = "\n".join(f"{point} = {path}" for point, path in points.items())
    (info / "entry_points.txt").write_text(f"[spangrade.metrics]\n{lines}\n")


ACME = """
import spangrade as sg

@sg.metric(threshold=3)
def acme_length(output):
    "How long."
    return len(output)

class AcmeWords(sg.BaseMetric[int]):
    "How many words."
    def evaluate(self, text): return self.result(len(text.split()))

@sg.register_metric(name="acme_registered")
class Inside(AcmeWords): ...
"""


@pytest.fixture
def acme(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A package that offers metrics, and one that is broken."""
    points = {
        "acme_length": "acme_pack:acme_length",
        "acme_words": "acme_pack:AcmeWords",
        "acme_registered": "acme_pack",
        "acme_nothing": "acme_pack:nothing",
        "acme_unregistered": "acme_pack",
    }
    install(tmp_path / "site", "acme_pack", ACME, points)
    install(tmp_path / "site", "broken_pack", "raise RuntimeError('half installed')", {"broken": "broken_pack:metric"})
    monkeypatch.syspath_prepend(str(tmp_path / "site"))
    yield tmp_path
    for module in ("acme_pack", "broken_pack", "other_pack"):
        sys.modules.pop(module, None)


@pytest.mark.usefixtures("acme")
def test_packages_offer_metrics_that_are_loaded_when_they_are_asked_for() -> None:
    assert "acme_pack" not in sys.modules
    assert {"acme_length", "acme_words", "broken"} <= set(sg.MetricsCatalog.names())
    assert "acme_length" in sg.MetricsCatalog
    assert "acme_pack" not in sys.modules
    sample = sg.Sample(output="two words")
    for name, value in (("acme_length", 9), ("acme_words", 2), ("acme_registered", 2)):
        found: Any = resolve(name).evaluate(sample)
        assert found.scores[0].value == value
    assert sg.MetricsCatalog.get("acme_words").__name__ == "AcmeWords"


@pytest.mark.usefixtures("acme")
def test_a_broken_package_is_named_and_breaks_no_other() -> None:
    for name, said in (
        ("broken", "'broken' of the package 'broken_pack' does not load .*RuntimeError: half installed"),
        ("acme_nothing", "'acme_nothing' of the package 'acme_pack' does not load"),
        ("acme_unregistered", "the module acme_pack registers no metric of that name"),
    ):
        with pytest.raises(sg.ConfigError, match=said):
            resolve(name)
        with pytest.raises(sg.ConfigError, match=said):
            sg.MetricsCatalog.get(name)
    assert resolve("acme_length").info.threshold == 3


def test_two_packages_of_one_name_are_both_named(acme: Path) -> None:
    install(acme / "site", "other_pack", ACME, {"acme_length": "other_pack:acme_length"})
    with pytest.raises(
        sg.ConfigError, match=r"'acme_length' is offered by .*_pack.* and .*_pack.*; say which by its path"
    ):
        resolve("acme_length")
    assert resolve("acme_pack:acme_length").info.name == "acme_length"


def test_what_is_registered_here_comes_before_a_packages_and_a_built_in_before_both(acme: Path) -> None:
    install(acme / "site", "other_pack", ACME, {"overlap": "other_pack:acme_length"})
    sg.register_metric(name="acme_words")(new("Own"))
    assert resolve("acme_words").metric.__class__.__name__ == "Own"  # type: ignore[attr-defined]
    assert resolve("overlap").info.requires == ("output", "documents")
    origins = {entry.name: entry.origin for entry in lookup.entries()}
    assert (origins["overlap"], origins["acme_words"], origins["acme_length"]) == ("built-in", "registered", "package")


# --- looking up --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", sorted(BUILTIN))
def test_every_line_of_the_table_of_built_ins_leads_to_a_metric_of_that_name(name: str) -> None:
    entry = lookup.find(name)
    thing = entry.load()
    assert callable(thing)
    assert BUILTIN[name].summary
    assert not BUILTIN[name].summary.endswith(".")
    if not entry.factory:
        assert resolve(name).info.name == name


def test_import_loads_no_built_in_and_nothing_that_runs_trees() -> None:
    import subprocess

    code = (
        "import sys, spangrade as sg; found = set(sys.modules); print(sorted(m for m in found if 'metrics.builtin.' in m)); "
        "sg.configure(metrics=['json_valid', lambda output: 1]); "
        "print([m for m in ('leaf', 'tree_plan', 'tree_run', 'adapter', 'entries', 'options') if f'spangrade.metrics.{m}' in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True, timeout=60)
    assert done.stdout.split("\n") == ["['spangrade.metrics.builtin.table']", "[]", ""]


def test_resolve_takes_every_family_and_says_what_it_takes() -> None:
    class Config(BaseModel):
        word: str

    @sg.config_schema(Config)
    class Needs(Base): ...

    sg.MetricsCatalog.register(new("Mine"))
    assert resolve("Mine").info.name == "Mine"
    assert resolve(new("Cls")).info.name == "Cls"
    assert resolve(new("Cls")()).info.name == "Cls"
    assert resolve(sg.CompositeMetric("t", [Base()])).info.name == "t"
    with pytest.raises(sg.ConfigError, match=r"'word' is missing .*; give an instance, Needs\(\{\.\.\.\}\)"):
        resolve(Needs)
    for thing in (3, int, object()):
        with pytest.raises(sg.ConfigError, match="give a function, a @metric, a BaseMetric, or a name"):
            resolve(thing)
    with pytest.raises(sg.ConfigError, match="there is no metric 'Min'; did you mean 'Mine'"):
        resolve("Min")
    with pytest.raises(sg.ConfigError, match="no_such_module_at_all:x' does not import"):
        resolve("no_such_module_at_all:x")


def test_a_missing_extra_is_told_by_what_this_distribution_requires(monkeypatch: pytest.MonkeyPatch) -> None:
    def not_installed(name: str) -> list[str]:
        raise PackageNotFoundError(name)

    assert lookup.missing_extra("schema") == ""
    assert lookup.missing_extra("no_such_extra") == ""
    monkeypatch.setattr(lookup, "requires", not_installed)
    assert lookup.missing_extra("schema") == ""


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ("words", r"write @register_metric\(name='words'\) to give a name"),
        (3, "stands above a class, not 3"),
        (len, "stands above a class, not <built-in function len>"),
    ],
)
def test_what_stands_under_the_decorator_and_is_no_class_is_named(given: Any, said: str) -> None:
    with pytest.raises(TypeError, match=said):
        sg.register_metric(given)


def test_a_catalog_that_is_none_is_refused_where_the_decorator_stands() -> None:
    with pytest.raises(TypeError, match="catalog 'shop' is no catalog: it has no register"):
        sg.register_metric(catalog="shop")  # type: ignore[call-overload]
