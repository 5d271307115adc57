"""Plan files that are none, and consent that is missing."""

from __future__ import annotations

from tests.bad_input.case import BINARY, DEEP, LONG, Case, fifo, folder, forbid, loop, replace, write


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
    Case("apply /dev/zero --yes", 2, "plan-unreadable"),
    Case("apply /dev/null --yes", 2, "plan-unreadable"),
    Case("apply clicks.py --yes", 2, "plan-unreadable"),
    _plan("", "plan-unreadable"),
    _plan("{", "plan-unreadable"),
    _plan("nonsense", "plan-unreadable"),
    _plan(BINARY, "plan-unreadable"),
    _plan(b"\xff{}", "plan-unreadable"),
    _plan('{"schema": ' + "9" * 5000 + "}", "plan-unreadable"),
    _plan(DEEP, "plan-unreadable"),
    Case("apply p.json", 2, "plan-unreadable", write("p.json", DEEP)),
    _plan('{"schema": ' + DEEP + "}", "plan-unreadable"),
    _plan("null", "plan-unreadable"),
    _plan("5", "plan-unreadable"),
    _plan("[]", "plan-unreadable"),
    _plan("{}", "plan-schema"),
    _plan('{"schema": 5}', "plan-schema"),
    _plan('{"schema": "slackwater.plan/999"}', "plan-schema"),
    _plan('{"schema": "slackwater.status/1"}', "plan-schema"),
    _edited("slackwater.plan/1", "slackwater.plan/2", "plan-schema"),
    _edited('"planned": 5', '"planned": "five"', "plan-damaged"),
    _edited('"kind": "verify-generation"', '"kind": "destroy-everything"', "plan-damaged"),
    _edited("{", "", "plan-unreadable"),
    Case("apply plan.json", 2, "unconfirmed"),
    Case("apply plan.json --format json", 2, "unconfirmed"),
)
