"""Objects that a command line names as ``module:attribute``."""

import importlib
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from spangrade.errors import ConfigError


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
    module_name, _, attribute = path.partition(":")
    if not module_name or not attribute:
        raise ConfigError(f"{option} {path!r} is no import path; write module:name, such as app.bot:answer")
    try:
        found: Any = importlib.import_module(module_name)
    except Exception as fault:
        raise ConfigError(f"{option} {path!r} does not import: {type(fault).__name__}: {fault}") from fault
    for part in attribute.split("."):
        try:
            found = getattr(found, part)
        except AttributeError:
            raise ConfigError(f"{option}: module {module_name!r} has no {attribute!r}") from None
    return found
