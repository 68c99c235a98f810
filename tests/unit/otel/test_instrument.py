"""`configure(instrument=[...])`: exactly one of the installed instrumentations is switched on; the rest is said, once each."""

import itertools
import logging
import os
import sys
import textwrap
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from opentelemetry.sdk.trace import TracerProvider

import spangrade as sg
from spangrade.otel import instrument
from spangrade.testing import CollectingExporter

INSTRUMENTOR = """
from opentelemetry.instrumentation.instrumentor import BaseInstrumentor

calls = []
{top}

class ShopInstrumentor(BaseInstrumentor):
    def __init__(self, made_by="us"):
        calls.append("made")
        {init}

    def instrumentation_dependencies(self):
        return {needs!r}

    def _instrument(self, **kwargs):
        calls.append(kwargs.get("tracer_provider"))
        {body}

    def _uninstrument(self, **kwargs):
        calls.append("off")
"""

Install = Callable[..., str]
_numbers = itertools.count()


@pytest.fixture
def library() -> str:
    """A name that no other test uses: what Python has imported once stays imported."""
    return f"shop{next(_numbers)}x"


@pytest.fixture
def install(tmp_path: Path, library: str, monkeypatch: pytest.MonkeyPatch) -> Install:
    """Puts a distribution with an instrumentor where Python finds it; gives the name of its module."""
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.setattr(instrument, "_ours", {})

    def make(
        package: str,
        *,
        name: str = "",
        module: str = "",
        groups: tuple[str, ...] = ("opentelemetry_instrumentor",),
        metadata: str = "",
        top: str = "",
        init: str = "pass",
        body: str = "pass",
        needs: tuple[str, ...] = (),
    ) -> str:
        module = module or f"{package.replace('-', '_')}_{library}.{library}"
        file = tmp_path.joinpath(*module.split(".")).with_suffix(".py")
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(textwrap.dedent(INSTRUMENTOR.format(top=top, init=init, body=body, needs=needs)))
        info = tmp_path / f"{package.replace('-', '_')}_{library}-1.0.dist-info"
        info.mkdir()
        (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {package}-{library}\nVersion: 1.0\n{metadata}")
        entry = f"{name or library} = {module}:ShopInstrumentor\n"
        (info / "entry_points.txt").write_text("".join(f"[{group}]\n{entry}\n" for group in groups))
        return module

    return make


OPENINFERENCE = ("openinference_instrumentor", "opentelemetry_instrumentor")
OFFICIAL = "Requires-Dist: opentelemetry-util-genai<2,>=1.3b0\n"


def calls(module: str) -> list[Any]:
    """What the fake instrumentor was asked for; empty where it was not even imported."""
    found: ModuleType | None = sys.modules.get(module)
    return list(found.calls) if found is not None else []


def configure(*names: Any, provider: TracerProvider | None = None) -> None:
    sg.configure(exporter=CollectingExporter(), tracer_provider=provider or TracerProvider(), instrument=names)


def lines(caplog: pytest.LogCaptureFixture) -> list[tuple[str, str]]:
    return [
        (r.levelname, r.getMessage())
        for r in caplog.records
        if r.name == "spangrade" and "spangrade is on" not in r.getMessage()
    ]


@pytest.fixture(autouse=True)
def listening(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)


def test_what_is_installed_is_switched_on_through_the_provider_and_said_in_one_line(
    library: str, install: Install, caplog: pytest.LogCaptureFixture
) -> None:
    module = install("acme-instrumentation")
    provider = TracerProvider()
    configure(library, provider=provider)
    assert calls(module) == ["made", provider]
    ((level, line),) = lines(caplog)
    assert level == "INFO"
    assert f"on='{library} (acme-instrumentation-{library})'" in line


@pytest.mark.parametrize(
    "installed", list(itertools.permutations(["openinference", "traceloop", "official"])), ids="-".join
)
def test_of_several_for_one_library_openinferences_is_switched_on_and_no_other(
    installed: tuple[str, ...], library: str, install: Install
) -> None:
    modules = {}
    for kind in installed:
        if kind == "openinference":
            modules[kind] = install(kind, module=f"openinference.for_{library}.{library}", groups=OPENINFERENCE)
        else:
            modules[kind] = install(kind, metadata=OFFICIAL if kind == "official" else "")
    configure(library)
    assert len(calls(modules["openinference"])) == 2
    assert calls(modules["traceloop"]) == calls(modules["official"]) == []


@pytest.mark.parametrize(
    "mark",
    [OFFICIAL, "Project-URL: Repository, https://github.com/open-telemetry/opentelemetry-python-genai\n"],
    ids=["by what it stands on", "by where it is from"],
)
def test_one_that_puts_text_on_spans_by_default_comes_before_opentelemetrys_own(
    mark: str, library: str, install: Install
) -> None:
    own, other = install("a-official", metadata=mark), install("b-other")
    configure(library)
    assert len(calls(other)) == 2
    assert calls(own) == []


@pytest.mark.parametrize("asked", ["{0}-ai", "{0}_AI", " {0}ai ", "{0}"])
def test_a_library_is_found_however_its_name_is_written_and_by_its_modules_name(
    asked: str, library: str, install: Install
) -> None:
    # google-genai and google_genai, haystack-ai whose module is haystack: each is registered by somebody.
    module = install("acme-instrumentation", name=f"{library}-ai")
    configure(asked.format(library), asked.format(library).strip())
    assert len(calls(module)) == 2


def test_a_packages_name_asks_for_just_that_one(library: str, install: Install) -> None:
    first = install("openinference", module=f"openinference.for_{library}.{library}", groups=OPENINFERENCE)
    wanted = install("acme-instrumentation")
    configure(f"acme-instrumentation-{library}")
    assert len(calls(wanted)) == 2
    assert calls(first) == []


def test_one_that_is_on_already_is_left_as_it_is_and_no_second_one_joins_it(
    library: str, install: Install, caplog: pytest.LogCaptureFixture
) -> None:
    better = install("openinference", module=f"openinference.for_{library}.{library}", groups=OPENINFERENCE)
    module = install("acme-instrumentation")
    __import__(module)
    sys.modules[module].ShopInstrumentor(made_by="the application").instrument(tracer_provider="theirs")
    configure(library)
    configure(library)
    assert calls(module) == ["made", "theirs"]
    assert calls(better) == []
    ((level, line),) = lines(caplog)
    assert level == "INFO"
    assert f"already_on='{library} (acme-instrumentation-{library})'" in line


def test_configure_again_instruments_nothing_twice_and_says_nothing_twice(
    library: str, install: Install, caplog: pytest.LogCaptureFixture
) -> None:
    module = install("acme-instrumentation")
    provider = TracerProvider()
    for _ in range(3):
        configure(library, "nowherelib", provider=provider)
    assert calls(module) == ["made", provider]
    assert [level for level, _ in lines(caplog)] == ["INFO", "WARNING"]


def test_configure_again_with_another_provider_moves_what_we_switched_on_to_that(
    library: str, install: Install
) -> None:
    module = install("acme-instrumentation")
    first, second = TracerProvider(), TracerProvider()
    configure(library, provider=first)
    configure(library, provider=second)
    assert calls(module) == ["made", first, "off", second]


def test_all_that_is_missing_is_said_in_one_line_with_the_command_to_install_it(
    caplog: pytest.LogCaptureFixture, install: Install
) -> None:
    configure("anthropic", "llama-index", "llamaindex")
    ((level, line),) = lines(caplog)
    assert level == "WARNING"
    assert "missing='anthropic, llamaindex'" in line
    assert (
        "install='pip install openinference-instrumentation-anthropic openinference-instrumentation-llama-index'"
        in line
    )


def test_an_unknown_name_gets_a_close_one_and_never_a_command_for_a_package_that_might_be_anybodys(
    caplog: pytest.LogCaptureFixture, install: Install
) -> None:
    configure("antropic", "all", "something-else")
    ((level, line),) = lines(caplog)
    assert level == "WARNING"
    assert "'antropic' (did you mean 'anthropic'?)" in line
    assert "'something-else'" in line
    assert "pip install" not in line


@pytest.mark.parametrize("fault", ["raise ImportError('secret-key')", "raise SystemExit(3)"])
def test_one_that_cannot_be_imported_gives_way_to_the_next_one(
    fault: str, library: str, install: Install, caplog: pytest.LogCaptureFixture
) -> None:
    install("openinference", module=f"openinference.for_{library}.{library}", groups=OPENINFERENCE, top=fault)
    other = install("acme-instrumentation")
    configure(library)
    assert len(calls(other)) == 2
    assert "secret-key" not in caplog.text


def test_one_that_does_not_support_the_installed_library_gives_way_to_the_next_one_quietly(
    library: str, install: Install, caplog: pytest.LogCaptureFixture
) -> None:
    needs = ("pytest < 1",)
    install("openinference", module=f"openinference.for_{library}.{library}", groups=OPENINFERENCE, needs=needs)
    other = install("acme-instrumentation")
    configure(library)
    assert len(calls(other)) == 2
    assert [r.name for r in caplog.records if r.levelno > logging.INFO] == []


def test_where_no_version_fits_the_line_says_which_one_would(
    library: str, install: Install, caplog: pytest.LogCaptureFixture
) -> None:
    install("acme-instrumentation", needs=("pytest < 1",))
    configure(library)
    ((level, line),) = lines(caplog)
    assert level == "WARNING"
    assert "pytest < 1" in line
    assert f"acme-instrumentation-{library}" in line


@pytest.mark.parametrize("place", ["init", "body"])
def test_one_that_raises_harms_nothing_is_named_and_its_words_stay_inside(
    place: str, library: str, install: Install, caplog: pytest.LogCaptureFixture
) -> None:
    install("acme-instrumentation", **{place: "raise ValueError('secret-key')"})
    configure(library)
    ((level, line),) = lines(caplog)
    assert level == "WARNING"
    assert f"{library} (acme-instrumentation-{library}: ValueError)" in line
    assert "secret-key" not in caplog.text


def test_after_one_that_failed_while_it_changed_the_library_no_other_is_put_on_top(
    library: str, install: Install
) -> None:
    install(
        "openinference", module=f"openinference.for_{library}.{library}", groups=OPENINFERENCE, body="raise OSError"
    )
    other = install("acme-instrumentation")
    configure(library)
    assert calls(other) == []


CAPTURE = "OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT"


@pytest.mark.parametrize(
    ("kind", "variable", "value", "sentence"),
    [
        ("official", CAPTURE, None, f"{CAPTURE}=SPAN_ONLY"),
        ("official", CAPTURE, "EVENT_ONLY", f"{CAPTURE}=SPAN_ONLY"),
        ("official", CAPTURE, "NO_CONTENT", f"{CAPTURE}=SPAN_ONLY"),
        ("official", CAPTURE, "span_only", None),
        ("official", CAPTURE, "SPAN_AND_EVENT", None),
        ("openinference", "OPENINFERENCE_HIDE_INPUTS", "true", "OPENINFERENCE_HIDE_INPUTS=false"),
        ("openinference", "OPENINFERENCE_HIDE_OUTPUTS", None, None),
        ("traceloop", "TRACELOOP_TRACE_CONTENT", "false", "TRACELOOP_TRACE_CONTENT=true"),
        ("traceloop", "TRACELOOP_TRACE_CONTENT", None, None),
    ],
)
def test_one_that_leaves_the_text_out_of_its_spans_is_said_and_the_environment_is_left_alone(
    kind: str,
    variable: str,
    value: str | None,
    sentence: str | None,
    library: str,
    install: Install,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    if value is not None:
        monkeypatch.setenv(variable, value)
    module = f"openinference.for_{library}.{library}" if kind == "openinference" else ""
    install(kind, module=module, metadata=OFFICIAL if kind == "official" else "")
    before = dict(os.environ)
    configure(library)
    assert dict(os.environ) == before
    warnings = [line for level, line in lines(caplog) if level == "WARNING"]
    assert len(warnings) == (0 if sentence is None else 1)
    assert all(sentence in line for line in warnings if sentence is not None)


@pytest.mark.parametrize("name", [3, None, "", "  "])
def test_what_is_no_name_is_refused_in_words(name: Any) -> None:
    with pytest.raises(sg.ConfigError, match="is not the name of a library, such as 'openai'"):
        configure(name)


def test_a_real_instrumentation_of_the_ecosystem_is_switched_on() -> None:
    from opentelemetry.instrumentation.httpx import HTTPXClientInstrumentor

    exporter = CollectingExporter()
    instrumentor = HTTPXClientInstrumentor()
    try:
        sg.configure(exporter=exporter, instrument=["httpx"])
        assert instrumentor.is_instrumented_by_opentelemetry
    finally:
        instrumentor.uninstrument()
        instrument._ours.clear()
