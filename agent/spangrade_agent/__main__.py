"""``python -m spangrade_agent run`` is ``spangrade agent run``."""

import sys

from spangrade_agent.cli import main

if __name__ == "__main__":
    sys.exit(main())
