"""``python -m slackwater``: the command line."""

from __future__ import annotations

from slackwater.cli.main import entry

if __name__ == "__main__":
    entry()
