"""The agent as a child of the demo: `python -m spangrade_agent run` that also ends when the demo does.

    python -m examples.demo.agent --config examples/demo/agent.yaml

Takes that command's arguments and prints its lines: what listens where. It serves until a SIGTERM or SIGINT arrives or
its stdin closes, and then scores and sends on what it has, as far as that is done in two seconds.
"""

from __future__ import annotations

import sys

from examples.demo.child import terminate_with_parent

DRAIN_SECONDS = 2.0


def main() -> int:
    # First of all, since importing the agent takes a while.
    terminate_with_parent(DRAIN_SECONDS)

    from spangrade_agent.cli import main as spangrade_agent

    return spangrade_agent(["run", *sys.argv[1:]])


if __name__ == "__main__":
    sys.exit(main())
