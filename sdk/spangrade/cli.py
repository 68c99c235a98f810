"""The command ``spangrade``: subcommands come by the entry point group ``spangrade.commands``, so the agent brings its own."""

import os
import sys
from collections.abc import Sequence
from importlib.metadata import entry_points

from spangrade._version import __version__

GROUP = "spangrade.commands"
UNREAD = 141  # what a shell says of a program that wrote into a pipe whose reader has left (``| head``)


def main(argv: Sequence[str] | None = None) -> int:
    """Run a subcommand; returns its exit code. Each is a function of the remaining arguments."""
    arguments = list(sys.argv[1:] if argv is None else argv)
    commands = {point.name: point for point in entry_points(group=GROUP)}
    if arguments and arguments[0] in commands:
        command = commands[arguments[0]].load()
        try:
            code: int = command(arguments[1:])
            sys.stdout.flush()  # or it is found at the exit that nobody reads any more, and printed
        except BrokenPipeError:
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # where Python writes what is left
            return UNREAD
        return code
    usage = f"usage: spangrade {{{','.join(sorted(commands))}}} ..."
    if arguments in (["--version"], ["-V"]):
        print(f"spangrade {__version__}")
        return 0
    if arguments and arguments[0] not in ("-h", "--help"):
        print(f"spangrade: no command {arguments[0]!r}\n{usage}", file=sys.stderr)
        return 2
    print(usage)
    return 0
