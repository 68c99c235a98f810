"""Objects that a command line names as ``module:attribute``."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from spangrade.errors import ConfigError
from spangrade.metrics.importing import at_path


@contextmanager
def importable_here(*beside: str | None) -> Iterator[None]:
    """The modules of the working directory, and of the folders that these files are in, come after all others."""
    folders = [str(Path.cwd()), *(str(Path(file).resolve().parent) for file in beside if file is not None)]
    added = [folder for folder in dict.fromkeys(folders) if folder not in sys.path]
    sys.path.extend(added)  # last: a file there must not stand in for a module of somebody else's
    try:
        yield
    finally:
        for folder in added:
            if folder in sys.path:
                sys.path.remove(folder)


def imported(path: str, option: str) -> Any:
    """What ``module:attribute`` (or ``module:object.attribute``) names.

    Raises:
        ConfigError: it is no such path, the module does not import, or has no such attribute.
    """
    module, _, attribute = path.partition(":")
    if not module or not attribute:
        raise ConfigError(f"{option} {path!r} is no import path; write module:name, such as app.bot:answer")
    try:
        return at_path(path)
    except ConfigError as fault:
        raise ConfigError(f"{option}: {str(fault).removeprefix('metrics: ')}") from fault
