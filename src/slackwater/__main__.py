"""``python -m slackwater``: the command line."""

from __future__ import annotations

import sys

from slackwater.cli.main import main

if __name__ == "__main__":
    sys.exit(main())
