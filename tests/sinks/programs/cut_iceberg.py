"""Cuts an Iceberg table as ``plan.json`` says, or undoes that, and is killed before the n-th change to a file."""

from __future__ import annotations

import sys
from pathlib import Path

from pydantic import TypeAdapter

from slackwater.core.sink import Cut
from slackwater.sinks.iceberg.output import IcebergOutput
from slackwater.storage.local import LocalStore
from tests.support.kill_points import die_before

action, number, table = sys.argv[1], int(sys.argv[2]), Path(sys.argv[3])
output, backup = IcebergOutput(str(table)), LocalStore(table.parent / "backup")
planned = TypeAdapter(Cut).validate_json((table.parent / "plan.json").read_bytes())
die_before(number, str(table.parent.resolve()))
if action == "cut":
    output.cut(planned, {}, backup)
else:
    output.restore(planned, backup)
