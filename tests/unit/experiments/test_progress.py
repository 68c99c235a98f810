"""The progress bar: where it is, and where it is not."""

import io
import sys

import pytest

import spangrade as sg
from spangrade.experiments import progress


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def run(wanted: bool | None) -> None:
    sg.evaluate(["a", "b", "bad"], lambda text: {"a": 1, "b": 2}[text], progress=wanted, name="nightly", concurrency=1)


def test_a_bar_counts_runs_and_failures_on_standard_error(monkeypatch: pytest.MonkeyPatch) -> None:
    for wanted, shown in ((True, io.StringIO()), (None, Terminal())):
        monkeypatch.setattr(sys, "stderr", shown)
        run(wanted)
        assert "nightly" in shown.getvalue()
        assert "3/3" in shown.getvalue()
        assert "failed=1" in shown.getvalue()


def test_nothing_is_shown_where_nobody_looks_or_nobody_wants_it(monkeypatch: pytest.MonkeyPatch) -> None:
    closed = io.StringIO()
    closed.close()
    for wanted, shown in ((None, io.StringIO()), (False, Terminal()), (None, None), (None, closed)):
        monkeypatch.setattr(sys, "stderr", shown)
        run(wanted)
        assert shown is None or shown is closed or shown.getvalue() == ""


def test_without_tqdm_the_run_goes_on_without_a_bar_unless_one_was_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "tqdm", None)
    shown = Terminal()
    monkeypatch.setattr(sys, "stderr", shown)
    run(None)
    assert shown.getvalue() == ""
    ran = []
    with pytest.raises(sg.ConfigError, match=r"progress=True needs tqdm: pip install"):
        sg.evaluate(["a"], ran.append, progress=True)
    assert ran == []
    with progress.Progress("x", 1, None) as bar:
        bar.advance(failed=False)
