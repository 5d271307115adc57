"""Changes a Delta table as an action of a plan does, and is killed before the n-th change to a file by Python.

In a process of its own: the runtime of deltalake does not survive a fork.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

from pydantic import TypeAdapter

from slackwater.core.sink import Cut, Swap
from slackwater.sinks.delta.sink import DeltaOutput
from slackwater.storage.local import LocalStore
from tests.support.kill_points import die_before

action, number, table, below, argument = sys.argv[1], int(sys.argv[2]), sys.argv[3], Path(sys.argv[4]), sys.argv[5]
output, backup = DeltaOutput(table), LocalStore(below / "backup")
if sys.argv[6:]:
    output = output.filled_by(sys.argv[6])
die_before(number, os.path.realpath(below))
if action == "stage":
    operation, _, after = argument.partition(" ")
    output.stage(operation, int(after), {})
elif action == "cut":
    output.cut(TypeAdapter(Cut).validate_json(argument), {}, backup)
elif action == "restore":
    output.restore(TypeAdapter(Cut).validate_json(argument), backup)
elif action == "swap":
    output.swap(TypeAdapter(Swap).validate_json(argument), backup)
else:
    output.swap_back(TypeAdapter(Swap).validate_json(argument), backup)
