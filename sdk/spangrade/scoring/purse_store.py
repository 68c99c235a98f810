"""Where judges' money is kept, by its address: a file of this host unless something else is said."""

import os
import tempfile
from functools import lru_cache
from pathlib import Path
from typing import Final

from spangrade.errors import ConfigError
from spangrade.scoring.purse import MemoryPurses, PurseStore

VARIABLE: Final = "SPANGRADE_BUDGET_STORE"
MEMORY: Final = "memory"


def purse_store(address: str | None = None) -> PurseStore:
    """The store at ``address``, else at ``SPANGRADE_BUDGET_STORE``, else this host's file; the same object for the same one.

    ``memory`` is this process alone; ``redis://...`` and ``rediss://...`` are a fleet's; anything else is the path of a
    SQLite file. The host's file stands in the temporary folder, in one that belongs to this user: what was spent is
    forgotten with it.

    Raises:
        ConfigError: the address is none, or what it needs is not installed.
    """
    return _store(address or os.environ.get(VARIABLE, "").strip() or str(_of_this_host()))


@lru_cache(maxsize=16)
def _store(address: str) -> PurseStore:
    if address == MEMORY:
        return MemoryPurses()
    if address.startswith(("redis://", "rediss://")):
        from spangrade.scoring.purse_redis import RedisPurses

        return RedisPurses(address)
    if "://" in address:
        raise ConfigError(f"budget_store {address.partition('://')[0]}://... is not memory, redis://..., or a path")
    from spangrade.scoring.purse_sqlite import SqlitePurses  # SQLite costs time to import, and most have no budget

    return SqlitePurses(address)


def _of_this_host() -> Path:
    folder = Path(tempfile.gettempdir()) / f"spangrade-{os.getuid() if hasattr(os, 'getuid') else 'user'}"
    folder.mkdir(mode=0o700, exist_ok=True)
    if hasattr(os, "getuid") and folder.lstat().st_uid != os.getuid():
        raise ConfigError(f"{folder} belongs to somebody else; set {VARIABLE} to a file of your own")
    return folder / "budget.sqlite"
