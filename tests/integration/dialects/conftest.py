"""The model APIs and the receiver of all these tests, and how to run an application."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence

import pytest

from .collect import Receiver, receiving
from .replay import Place, Replay, replaying
from .running import Ran, run_python

Run = Callable[..., Ran]


@pytest.fixture(scope="session")
def replay() -> Iterator[Replay]:
    """Model APIs that say what was recorded."""
    with replaying() as replay:
        yield replay


@pytest.fixture(scope="session")
def receiver() -> Iterator[Receiver]:
    """Where the applications' exporters send."""
    with receiving() as receiver:
        yield receiver


@pytest.fixture(scope="session")
def run_app(replay: Replay, receiver: Receiver) -> Run:
    """``run_app("openinference_openai", ["chat"], venv="openinference", env={...})`` runs apps/openinference_openai.py.

    ``place``: a `replay.Place` to which the test has given answers of its own.
    """

    def run(
        app: str, scenarios: Sequence[str], venv: str, env: Mapping[str, str] | None = None, place: Place | None = None
    ) -> Ran:
        return run_python(app, scenarios, venv, place or replay.place(), receiver.inbox(), env)

    return run
