"""What every test of the agent leaves behind: no thread of a store that it made."""

from collections.abc import Iterator
from typing import Any

import pytest

from spangrade_agent.page.intake import Intake


@pytest.fixture(autouse=True)
def stores_are_closed(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Closes each store's intake: an agent closes its own, a test makes one wherever it needs one."""
    made: list[Intake] = []
    plain = Intake.__init__

    def noted(self: Intake, *args: Any, **more: Any) -> None:
        plain(self, *args, **more)
        made.append(self)

    monkeypatch.setattr(Intake, "__init__", noted)
    yield
    for intake in made:
        intake.close(0.0)
