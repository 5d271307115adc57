"""The commands that findings name, in the form that a check declares: from the facts, whatever the case."""

from __future__ import annotations

from typing import Any

from slackwater.core.commands import command, rebuild_command
from slackwater.core.facts import Facts


def resume(facts: Facts, _: Any) -> str:
    """Plan the least change after which a start is exact."""
    return command("plan", "resume", facts.name)


def rebuild(facts: Facts, _: Any) -> str:
    """Plan a rebuild after the newest written batch."""
    return rebuild_command(facts.snapshot)


def replay_from(facts: Facts, batch: int) -> str:
    """Plan to process the batches from this one on again."""
    return command("plan", "replay", facts.name, "--from", f"batch:{batch}")
