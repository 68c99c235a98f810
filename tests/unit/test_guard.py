"""`_guard`: a fault of ours ends there, and what it says of it is nobody's text."""

import logging
import threading
from collections.abc import Callable, Iterator
from typing import Any

import pytest

import spangrade as sg
from spangrade import _guard
from spangrade.testing import CollectingExporter

SECRET = "my ssn is 123-45-6789"


@pytest.fixture(autouse=True)
def faults_are_meant(swallowed_faults: list[Any]) -> Iterator[None]:
    yield
    swallowed_faults.clear()


class Shows(type):
    """A metaclass that fights back."""

    def __getattribute__(cls, name: str) -> Any:
        raise SystemError(name)

    def __hash__(cls) -> int:
        raise SystemError

    def __instancecheck__(cls, instance: object) -> bool:
        raise SystemError


class Unspeakable(Exception):
    def __str__(self) -> str:
        raise RuntimeError("boom in __str__")

    __repr__ = __str__

    def __getattribute__(self, name: str) -> Any:
        raise RuntimeError(name)

    def __hash__(self) -> int:
        raise RuntimeError

    def __bool__(self) -> bool:
        raise RuntimeError


def stop(fault: BaseException) -> None:
    with _guard.guard("here"):
        raise fault


def test_a_fault_is_stopped_counted_and_logged_once_with_its_place_and_type(caplog: pytest.LogCaptureFixture) -> None:
    before = _guard.count()
    stop(ValueError("x"))
    stop(ValueError("y"))
    assert _guard.count() == before + 2
    (record,) = [r for r in caplog.records if "fault of its own" in r.getMessage()]
    assert record.levelno == logging.ERROR
    assert "'here'" in record.getMessage()
    assert "'ValueError'" in record.getMessage()


def test_the_message_of_a_fault_is_never_logged(caplog: pytest.LogCaptureFixture) -> None:
    stop(ValueError(f"cannot parse {SECRET!r}"))
    stop(KeyError(SECRET))
    try:
        raise ValueError(SECRET)
    except ValueError as cause:
        with _guard.guard("chained"):
            raise RuntimeError(SECRET) from cause
    assert len(caplog.records) == 3
    for record in caplog.records:
        assert "ssn" not in logging.Formatter("%(message)s").format(record)


HOSTILE: dict[str, Callable[[], Exception]] = {  # made late: pytest looks at what it is given
    "str raises": Unspeakable,
    "metaclass raises": lambda: type.__call__(Shows("Hostile", (Exception,), {})),
    "text as name": type(SECRET, (Exception,), {}),
    "two lines": type("two\nlines", (Exception,), {}),
    "long name": type("N" * 100_000, (Exception,), {}),
    "surrogates": type("É", (Exception,), {"__module__": 5, "__qualname__": "\ud800"}),
    "str subclass": type(type("S", (str,), {"__format__": lambda *_: 1 / 0})("Name"), (Exception,), {}),
}


@pytest.mark.parametrize("how", list(HOSTILE))
def test_no_class_of_a_fault_gets_out_of_the_guard_or_its_text_into_the_log(
    how: str, caplog: pytest.LogCaptureFixture, swallowed_faults: list[Any]
) -> None:
    fault = HOSTILE[how]()
    before = _guard.count()
    stop(fault)
    assert _guard.count() == before + 1
    swallowed_faults.clear()
    (record,) = caplog.records
    line = record.getMessage()
    line.encode()
    assert "ssn" not in line
    assert "\n" not in line
    assert len(line) < 500


def test_what_is_no_fault_passes() -> None:
    for passing in (KeyboardInterrupt, SystemExit, GeneratorExit):
        with pytest.raises(passing):
            stop(passing())


def test_an_observer_or_log_handler_that_fails_harms_nobody() -> None:
    def fails(*_: object) -> None:
        raise RuntimeError("in the observer")

    class Broken(logging.Filter):
        def filter(self, record: logging.LogRecord) -> bool:
            raise RuntimeError("in a filter")

    remove, broken = _guard.observe(fails), Broken()
    try:
        stop(ValueError())
        logging.getLogger("spangrade").addFilter(broken)
        stop(ZeroDivisionError())
    finally:
        logging.getLogger("spangrade").removeFilter(broken)
        remove()


def test_a_fault_met_while_the_guard_itself_is_busy_does_not_deadlock() -> None:
    # As a finalizer does that the garbage collector runs in the middle of it.
    done = threading.Event()

    def meet() -> None:
        with _guard._lock:
            stop(ValueError())
        done.set()

    threading.Thread(target=meet, daemon=True).start()
    assert done.wait(10)


def test_a_mapping_that_raises_something_hostile_does_not_reach_the_application(exporter: CollectingExporter) -> None:
    from collections.abc import Mapping

    class Hostile(Mapping[str, Any]):
        def __getitem__(self, key: str) -> Any:
            raise Unspeakable

        def __iter__(self) -> Iterator[str]:
            return iter(["a"])

        def __len__(self) -> int:
            return 1

    sg.configure(exporter=exporter)

    @sg.trace
    def f(x: int) -> int:
        sg.set_metadata(Hostile())
        return x

    assert f(1) == 1
