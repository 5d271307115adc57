"""Plan files that are none, consent that is missing, and files that a command writes: no half one, none unasked."""

from tests.bad_input.case import (
    BINARY,
    DEEP,
    LONG,
    Case,
    corpus,
    each,
    fifo,
    folder,
    forbid,
    largest_file,
    link,
    loop,
    refused,
    replace,
    write,
)

PLAN = "plan rebuild per_page"
ROWS = "inspect checkpoint --state 0 --side left --to rows.parquet"
STATE = corpus("join_inner_hdfs", "checkpoint")


def _plan(content: str | bytes, error: str) -> Case:
    return Case("apply p.json --yes", 2, error, write("p.json", content))


def _edited(old: str, new: str, error: str) -> Case:
    return Case("apply plan.json --yes", 2, error, replace("plan.json", old, new), says="plan.json")


CASES = (
    Case("apply absent.json --yes", 4, "plan-absent", says="There is no such plan file"),
    Case(f"apply {LONG} --yes", 2, "plan-unreadable"),
    Case("apply ~nouser/plan.json --yes", 4, "plan-absent"),
    Case("apply clicks --yes", 2, "plan-unreadable"),
    Case("apply clicks.py/below --yes", 4, "plan-absent"),
    Case("apply p.json --yes", 2, "plan-unreadable", folder("p.json")),
    Case("apply p.json --yes", 2, "plan-unreadable", fifo("p.json")),
    Case("apply p.json --yes", 2, "plan-unreadable", loop("p.json")),
    Case("apply p.json --yes", 2, "plan-unreadable", write("p.json", "{}"), forbid("p.json")),
    *refused(2, "plan-unreadable", "apply /dev/zero --yes", "apply /dev/null --yes", "apply clicks.py --yes"),
    *each(_plan, "plan-unreadable", "", "{", "nonsense", BINARY, b"\xff{}", '{"schema": ' + "9" * 5000 + "}", DEEP),
    Case("apply p.json", 2, "plan-unreadable", write("p.json", DEEP)),
    *each(_plan, "plan-unreadable", '{"schema": ' + DEEP + "}", "null", "5", "[]"),
    *each(_plan, "plan-schema", "{}", '{"schema": 5}', '{"schema": "slackwater.plan/999"}'),
    *each(_plan, "plan-schema", '{"schema": "slackwater.status/1"}', '{"schema": null}'),
    *each(_plan, "plan-unreadable", '"plan"', "\0"),
    _edited("slackwater.plan/1", "slackwater.plan/2", "plan-schema"),
    _edited('"planned": 5', '"planned": "five"', "plan-damaged"),
    _edited('"kind": "verify-generation"', '"kind": "destroy-everything"', "plan-damaged"),
    _edited("{", "", "plan-unreadable"),
    *refused(2, "unconfirmed", "apply plan.json", "apply plan.json --format json"),
    # Files that are written
    Case(f"{PLAN} --out new.json", 0, None, creates=("new.json",)),
    *refused(2, "out-exists", f"{PLAN} --out plan.json", f"{PLAN} --out clicks.py"),
    Case(f"{PLAN} --out old.json", 2, "out-exists", write("old.json")),
    Case(f"{PLAN} --out old.json --force", 0, None, write("old.json"), creates=("old.json",)),
    Case(f"{PLAN} --out a-link", 2, "out-exists", link("a-link", "clicks.py")),
    Case(f"{PLAN} --out a-link", 2, "out-exists", link("a-link", "nowhere")),
    *refused(2, "out-unwritable", f"{PLAN} --out clicks", f"{PLAN} --out clicks --force", f"{PLAN} --out ."),
    *refused(2, "out-unwritable", f"{PLAN} --out /", f"{PLAN} --out no/such/folder/p.json"),
    *refused(2, "out-unwritable", f"{PLAN} --out clicks.py/p.json", f"{PLAN} --out {LONG}"),
    *refused(2, "out-unwritable", f"{PLAN} --out ~nouser/p.json"),
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
