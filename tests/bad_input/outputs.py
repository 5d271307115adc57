"""Files that a command is asked to write: none is replaced unasked, none is left half written."""

from __future__ import annotations

from tests.bad_input.case import LONG, Case, corpus, fifo, folder, forbid, largest_file, link, loop, write

PLAN = "plan rebuild per_page"
ROWS = "inspect checkpoint --state 0 --side left --to rows.parquet"
STATE = corpus("join_inner_hdfs", "checkpoint")

CASES = (
    Case(f"{PLAN} --out new.json", 0, None, creates=("new.json",)),
    Case(f"{PLAN} --out plan.json", 2, "out-exists"),
    Case(f"{PLAN} --out clicks.py", 2, "out-exists"),
    Case(f"{PLAN} --out old.json", 2, "out-exists", write("old.json")),
    Case(f"{PLAN} --out old.json --force", 0, None, write("old.json"), creates=("old.json",)),
    Case(f"{PLAN} --out a-link", 2, "out-exists", link("a-link", "clicks.py")),
    Case(f"{PLAN} --out a-link", 2, "out-exists", link("a-link", "nowhere")),
    Case(f"{PLAN} --out clicks", 2, "out-unwritable"),
    Case(f"{PLAN} --out clicks --force", 2, "out-unwritable"),
    Case(f"{PLAN} --out .", 2, "out-unwritable"),
    Case(f"{PLAN} --out /", 2, "out-unwritable"),
    Case(f"{PLAN} --out no/such/folder/p.json", 2, "out-unwritable"),
    Case(f"{PLAN} --out clicks.py/p.json", 2, "out-unwritable"),
    Case(f"{PLAN} --out {LONG}", 2, "out-unwritable"),
    Case(f"{PLAN} --out ~nouser/p.json", 2, "out-unwritable"),
    Case(f"{PLAN} --out a-loop", 2, "out-exists", loop("a-loop")),
    Case(f"{PLAN} --out a-loop/p.json", 2, "out-unwritable", loop("a-loop")),
    Case(f"{PLAN} --out a-fifo", 2, "out-unwritable", fifo("a-fifo")),
    Case(f"{PLAN} --out below/p.json", 2, "out-unwritable", folder("below"), forbid("below", 0o500)),
    Case(f"{PLAN} --out /dev/full", 9, "disk-full"),
    Case(f"{PLAN} --out /dev/null", 0, None),
    Case("inspect per_page --state 0 --to clicks.py", 2, "out-exists"),
    Case("inspect per_page --state 0 --to clicks", 2, "out-unwritable"),
    Case("inspect per_page --state 0 --to no/such/rows.parquet", 2, "out-unwritable"),
    Case(f"inspect per_page --state 0 --to {LONG}", 2, "out-unwritable"),
    Case("inspect per_page --state 0 --to a-loop", 2, "out-exists", loop("a-loop")),
    Case("inspect per_page --force", 2, "without-state"),
    Case(ROWS, 0, None, STATE, creates=("rows.parquet",)),
    Case(ROWS, 2, "out-exists", STATE, write("rows.parquet", "old")),
    Case(f"{ROWS} --force", 0, None, STATE, write("rows.parquet", "old"), creates=("rows.parquet",)),
    Case(f"{ROWS} --format json", 0, None, STATE, creates=("rows.parquet",)),
    Case(ROWS, 9, "disk-full", STATE, largest_file(100)),
    Case("inspect checkpoint --state 0 --side left --to /dev/full", 9, "disk-full", STATE),
)
