"""What tests with real processes share: a receiver over real sockets, and a judge."""

from collections.abc import Iterator

import pytest

from .programs import Judge, ReceiverProcess


@pytest.fixture(scope="session")
def receiver_process() -> Iterator[ReceiverProcess]:
    with ReceiverProcess() as process:
        yield process


@pytest.fixture
def receiver(receiver_process: ReceiverProcess) -> ReceiverProcess:
    """An OTLP/HTTP receiver in another process, empty."""
    receiver_process.clear()
    return receiver_process


@pytest.fixture
def judge(monkeypatch: pytest.MonkeyPatch) -> Iterator[Judge]:
    """A judge that this process, and those that it starts, ask."""
    server = Judge()
    for name, value in server.variables.items():
        monkeypatch.setenv(name, value)
    yield server
    server.stop()
