"""Stages, swaps or swaps back an Iceberg table, and is killed before the n-th change to a file."""

from __future__ import annotations

import sys
from pathlib import Path

from slackwater.core.sink import Swap
from slackwater.sinks.iceberg.output import IcebergOutput
from slackwater.storage.local import LocalStore
from tests.support.kill_points import die_before

action, number, table, operation, stream, replaced = sys.argv[1:]
output, backup = IcebergOutput(table), LocalStore(Path(table).parent / "backup")
swap = Swap(operation, stream, int(replaced))
die_before(int(number), str(Path(table).parent.resolve()))
if action == "stage":
    output.stage(operation, -1, {})
elif action == "swap":
    output.swap(swap, backup)
else:
    output.swap_back(swap, backup)
