"""The script behind `make test-versions`: what it finds, what it asks pip for, and what it says of a refusal."""

import sys
from pathlib import Path

import pytest

from . import versions
from .integration import tool_cache

PROJECT = {
    "name": "spangrade",
    "dependencies": ["opentelemetry-sdk>=1.40,<2", "pyyaml>=6", "any"],
    "optional-dependencies": {"agent": ["urllib3>=2.0.7", "uvloop>=0.19 ; platform_system != 'Windows'"],
                              "local": ["numpy>=1.26"], "other": ["unwanted"],
                              "dev": ["spangrade[agent, local]", "pytest>=8"]},
}  # fmt: skip


def script(path: Path, text: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"#!/bin/sh\n{text}\n")
    path.chmod(0o755)
    return path


def answers(version: str) -> str:
    return f"echo {version}"


def test_a_shim_that_points_nowhere_is_passed_over_for_pyenvs_newest_and_what_is_missing_is_said(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", f"{tmp_path}/shims:/usr/bin:/bin")
    monkeypatch.setenv("PYENV_ROOT", str(tmp_path))
    monkeypatch.setattr(versions, "WANTED", ("3.91", "3.92", "3.93", "3.94"))
    on_path = script(tmp_path / "shims/python3.91", answers("3.91.4"))
    for wanted in ("3.92", "3.93"):
        script(tmp_path / f"shims/python{wanted}", "echo 'pyenv: command not found' >&2; exit 127")
    for installed in ("3.92.9", "3.92.10", "3.92.10-dev"):
        script(tmp_path / f"versions/{installed}/bin/python", answers(installed))
    found, missing = versions.interpreters()
    assert found == {
        "3.91": (on_path, "3.91.4"),
        "3.92": (tmp_path / "versions/3.92.10/bin/python", "3.92.10"),
    }
    assert missing["3.93"].endswith("python3.93: pyenv: command not found")
    assert missing["3.94"] == "no python3.94 on the PATH, no 3.94 of pyenv's"


def test_this_interpreter_is_found_usable() -> None:
    version, fault = versions._probe(Path(sys.executable))
    assert (version, fault) == ("{}.{}.{}".format(*sys.version_info), "")


def test_the_oldest_libraries_are_the_series_of_pyprojects_lower_bounds_and_the_package_itself_is_not_asked_for() -> (
    None
):
    assert versions.oldest(PROJECT) == (
        "opentelemetry-sdk==1.40.*",
        "pyyaml==6.0.*",
        "urllib3==2.0.7.*",
        "uvloop==0.19.*",
    )
    wanted = versions.requirements(PROJECT)
    assert {"pytest>=8", "numpy>=1.26", "urllib3>=2.0.7"} <= set(wanted)
    assert "unwanted" not in wanted
    assert "hatchling" in wanted
    assert not [line for line in wanted if line.startswith("spangrade")]


def combination(tmp_path: Path, pip_says: str) -> versions.Combination:
    """An interpreter whose venv has a Python that says this and fails."""
    fake = f"mkdir -p venv/bin; printf '#!/bin/sh\\ncat <<END >&2\\n{pip_says}\\nEND\\nexit 1\\n' > venv/bin/python; chmod +x venv/bin/python"
    return versions.Combination(script(tmp_path / "python", fake), "3.99.0")


def test_a_missing_wheel_is_told_and_no_failure(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("SPANGRADE_CACHE", str(tmp_path / "cache"))
    one = combination(tmp_path, "ERROR: No matching distribution found for gevent>=24.10")
    assert versions.run(one, ["gevent>=24.10"])
    assert "Python 3.99.0, newest libraries: not tried, there is no wheel of gevent>=24.10 for it" in (
        capsys.readouterr().out
    )


@pytest.mark.parametrize(
    "said",
    [
        "ERROR: Cannot install a and b because these package versions have conflicting dependencies",
        "WARNING: Retrying after connection broken\nERROR: No matching distribution found for gevent>=24.10",
    ],
)
def test_any_other_refusal_of_pip_is_a_failure_with_its_words(
    said: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("SPANGRADE_CACHE", str(tmp_path / "cache"))
    assert not versions.run(combination(tmp_path, said), ["gevent>=24.10"])
    out = capsys.readouterr().out
    assert "Python 3.99.0, newest libraries: FAILED" in out
    assert said.splitlines()[-1] in out


def test_a_venv_that_is_asked_for_no_more_is_removed_unless_it_is_in_use(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SPANGRADE_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(tool_cache, "run", lambda *_args, **_more: None)
    one = versions.Combination(tmp_path / "python", "3.99.0")
    first = versions.environment(one, ["a"])
    oldest = versions.environment(versions.Combination(one.python, one.version, ("a==1",)), ["a"])
    with versions.ours_in(first):
        second = versions.environment(one, ["b"])
        assert first.is_dir()
    with versions.ours_in(second):
        pass
    assert versions.environment(one, ["c"]).is_dir()
    assert not first.exists()
    assert not second.exists()
    assert oldest.is_dir()
