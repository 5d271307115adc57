"""State rows of every real checkpoint, row for row against Spark's own dumps."""

from __future__ import annotations

import ast
from typing import Any

import pytest

from slackwater.checkpoint.operators import OperatorReader
from slackwater.checkpoint.state.reader import StateChoice, StateReader, StateRows
from slackwater.cli.verbs.inspect import StateRequest
from slackwater.cli.verbs.inspect.rows import choices, choose
from slackwater.core.state import Operator
from tests.checkpoint.cases import CASES, description, opened
from tests.support.spark_dump import as_multiset

WRONG_IN_DUMP = {"join_v4_rocksdb": ("__event_time",)}
"""Spark 4.3.0 itself returns this column wrong: 12395 in place of 1704067269000000."""

DUMPS = [
    (version, case, key)
    for version, case in CASES
    for key, rows in (description(version, case).get("state_dump") or {}).items()
    if isinstance(rows, list)
]


def operators_of(version: str, case: str) -> dict[int, Operator]:
    checkpoint = opened(version, case)
    reader = OperatorReader(checkpoint.store, checkpoint.listing, checkpoint.inventory)
    found = {operator.id: operator for operator in reader.operators()}
    assert reader.damage == []
    return found


def choice_of(operator: Operator, options: str) -> StateChoice:
    """What the dump's key asks for: a store by name, or options of Spark's reader."""
    if not options.startswith("{"):
        return choose(operator, StateRequest(operator.id, store=options or "default"))
    asked: dict[str, Any] = ast.literal_eval(options)
    if "readRegisteredTimers" in asked:
        name = next(name for name in choices(operator) if name.endswith("_keyToTimestamp"))
        return choose(operator, StateRequest(operator.id, store=name))
    return choose(operator, StateRequest(operator.id, store=asked.get("stateVarName"), side=asked.get("joinSide")))


def read(version: str, case: str, choice: StateChoice) -> StateRows:
    checkpoint = opened(version, case)
    return StateReader(checkpoint.batch_state(checkpoint.logs.committed)).rows(choice)


@pytest.mark.parametrize(("version", "case", "key"), DUMPS, ids=["-".join(dump) for dump in DUMPS])
def test_rows_equal_the_dump(version: str, case: str, key: str) -> None:
    number, _, options = key.removeprefix("op=").partition(" ")
    operator = operators_of(version, case)[int(number)]
    rows = read(version, case, choice_of(operator, options.strip()))
    assert rows.damage == ()
    assert rows.undecoded is None
    ignore = (*WRONG_IN_DUMP.get(case, ()), "matched") if "joinSide" in key else ()
    found = as_multiset(rows.table.to_pylist(), ignore=ignore)
    assert found == as_multiset(description(version, case)["state_dump"][key], ignore=ignore)


def test_there_are_dumps_of_every_kind() -> None:
    assert {key.partition(" ")[2].strip()[:6] for _, _, key in DUMPS} >= {""}
    assert len(DUMPS) > 3


@pytest.mark.parametrize(("version", "case"), CASES, ids=["-".join(case) for case in CASES])
def test_every_kept_batch_of_every_store_is_decoded(version: str, case: str) -> None:
    checkpoint = opened(version, case)
    for operator in operators_of(version, case).values():
        for store in operator.stores:
            held = [
                item for op, _, name, item in checkpoint.inventory.each() if (op, name) == (operator.id, store.name)
            ]
            kept = frozenset.intersection(*(versions.loadable for versions in held))
            batches = [number - 1 for number in sorted(kept) if number - 1 in checkpoint.logs.commit_ids]
            for batch in batches[:1] + batches[-1:]:
                for family in store.families:
                    rows = StateReader(checkpoint.batch_state(batch)).rows(StateChoice(operator, store, family.name))
                    assert rows.damage == (), f"batch {batch}"
                    assert rows.undecoded is None, f"batch {batch}: {rows.undecoded}"
