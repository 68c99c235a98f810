"""For how long, and for how much of it, a sample's spans and log records are waited for: the file's ``assembly:``."""

from dataclasses import dataclass, replace
from typing import Final

from spangrade.config import AssemblyEntry

MIB: Final = 2**20


@dataclass(frozen=True, slots=True)
class AssemblyBounds:
    """Times in seconds.

    Attributes:
        grace: how long the rest of a request is waited for after its local root has come, which says that it has ended (a
            host that sees spans start needs no such time).
        quiet: a request whose local root does not come is decided, as partial, when nothing of it has come for so long; at
            the latest after ``max_age``. None: when the share of the hold that is kept for that has gone by.
        max_age: how long a trace is remembered. Then what waits in it is decided, as partial.
        max_traces: traces (in a process: requests) that are remembered. Past it the oldest is decided, as partial.
        max_bytes: of spans that have left already, and that others may need; likewise of log records whose span has not
            come. Past it the oldest are forgotten, and the samples that miss them are partial.
        logs: how long a model call without an answer waits for its log records, which may bring it.
        session_idle: a conversation is graded when nothing of it has come for so long.
        session_max_age: a conversation that goes on for longer is graded as it is, as partial.
        max_sessions: conversations that are remembered. Past it the one that was quiet for longest is graded, as partial.
        max_session_bytes: of the text of all of them. The same goes for it.
    """

    grace: float = 0.1
    quiet: float | None = None
    max_age: float = 600.0
    max_traces: int = 4_096
    max_bytes: int = 32 * MIB
    logs: float = 0.0
    session_idle: float = 300.0
    session_max_age: float = 3_600.0
    max_sessions: int = 1_024
    max_session_bytes: int = 32 * MIB


DEFAULT: Final = AssemblyBounds()


def bounds_of(said: AssemblyEntry | None, otherwise: AssemblyBounds = DEFAULT) -> AssemblyBounds:
    """What a file says, and for the rest what the host has."""
    return otherwise if said is None else replace(otherwise, **said.model_dump(exclude_none=True))
