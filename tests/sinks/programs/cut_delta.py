"""Cuts a Delta table after batch 1, or undoes that, and is killed before the n-th change to a file by Python."""

from __future__ import annotations

import sys
from pathlib import Path

from slackwater.model.sink import Cut
from slackwater.sinks.delta.output import DeltaOutput
from slackwater.storage.local import LocalStore
from tests.support.kill_points import die_before

action, number, table = sys.argv[1], int(sys.argv[2]), Path(sys.argv[3])
output, backup = DeltaOutput(str(table)), LocalStore(table.parent / "backup")
planned = Cut(
    1, (2, 3), ("part-2-0 a.parquet", "part-3-0 a.parquet"), sum(len(f"rows of batch {n}\n") for n in (2, 3)), 2, "4"
)
die_before(number, str(table.parent.resolve()))
if action == "cut":
    output.cut(planned, {}, backup)
else:
    output.restore(planned, backup)
