"""How state is read where the plan of its batch is lost, and which partitions and files a batch has."""

import json
import shutil
from pathlib import Path

import pyarrow as pa
import pytest

from slackwater.checkpoint.damage import find_damage
from slackwater.checkpoint.opened import OpenedCheckpoint, open_checkpoint
from slackwater.checkpoint.operators import OperatorReader
from slackwater.checkpoint.reader import read_checkpoint
from slackwater.checkpoint.state.decoder import FamilyRows
from slackwater.checkpoint.state.reader import StateChoice, StateReader, StateRows, shape
from slackwater.cli.verbs.inspect import StateRequest
from slackwater.cli.verbs.inspect.rows import inspect_state
from slackwater.core.errors import NotFound
from slackwater.core.state import AtomicType, ColumnFamily, Field, Operator, OperatorStore, StructType
from slackwater.storage.local import LocalStore
from tests.checkpoint.cases import CASES, checkpoint_folder, cut_after, remove_above
from tests.support.errors import raises_code

ROW_CHECKSUMS = [case for case in CASES if case[1].startswith("row_checksum_")]
AVRO = [case for case in CASES if "_avro_" in case[1]]
REPARTITIONED = ("4.3.0", "offline_repartition_rocksdb")
FORMAT_2 = ("4.3.0", "agg_cpv2_rocksdb_changelog")


def copy_of(case: tuple[str, str], folder: Path) -> Path:
    checkpoint = folder / "checkpoint"
    shutil.copytree(checkpoint_folder(*case), checkpoint)
    return checkpoint


def opened(checkpoint: Path) -> OpenedCheckpoint:
    return open_checkpoint(LocalStore(checkpoint))


def rows_of(checkpoint: Path, batch: int) -> StateRows:
    listed = opened(checkpoint)
    operator = OperatorReader(listed.store, listed.listing, listed.inventory).operator(0, batch)
    store = operator.stores[0]
    return StateReader(listed.batch_state(batch)).rows(StateChoice(operator, store, store.families[0].name))


def remove(checkpoint: Path, log: str, batch: int) -> None:
    (checkpoint / log / str(batch)).unlink()
    (checkpoint / log / f".{batch}.crc").unlink()


@pytest.mark.parametrize("case", ROW_CHECKSUMS + AVRO, ids="-".join)
def test_a_torn_plan_does_not_change_how_rows_are_read(case: tuple[str, str], tmp_path: Path) -> None:
    checkpoint = copy_of(case, tmp_path)
    batch = opened(checkpoint).logs.committed
    whole = rows_of(checkpoint, batch)
    plan = checkpoint / "offsets" / str(batch)
    plan.write_bytes(plan.read_bytes()[:100])

    rows = rows_of(checkpoint, batch)

    assert (rows.table, rows.undecoded) == (whole.table, whole.undecoded)
    assert [(item.path, item.kind) for item in rows.damage] == [(f"offsets/{batch}", "torn")]


@pytest.mark.parametrize("case", ROW_CHECKSUMS + AVRO, ids="-".join)
def test_a_plan_that_spark_has_purged_is_no_damage(case: tuple[str, str], tmp_path: Path) -> None:
    checkpoint = copy_of(case, tmp_path)
    batch = opened(checkpoint).logs.committed - 1
    whole = rows_of(checkpoint, batch)
    remove(checkpoint, "offsets", batch)

    assert rows_of(checkpoint, batch) == whole


@pytest.mark.parametrize("case", [FORMAT_2, *ROW_CHECKSUMS], ids="-".join)
def test_without_any_readable_plan_rows_stay_bytes(case: tuple[str, str], tmp_path: Path) -> None:
    checkpoint = copy_of(case, tmp_path)
    batch = opened(checkpoint).logs.committed
    for plan in (checkpoint / "offsets").glob("[0-9]*"):
        plan.write_bytes(b"v1")

    rows = rows_of(checkpoint, batch)

    assert (len(rows.table), [item.path for item in rows.damage]) == (0, [f"offsets/{batch}"])
    assert rows.undecoded is not None
    assert "no entry of offsets/ can be read" in rows.undecoded.column("reason")[0].as_py()
    [operator] = read_checkpoint(opened(checkpoint), state=True).operators
    assert [store.rows for store in operator.stores] == [None]


def with_old_partition(folder: Path) -> tuple[Path, int]:
    """As after a repartition to fewer partitions: one more directory, whose versions end before the repartition."""
    checkpoint = copy_of(REPARTITIONED, folder)
    pinned = partitions_pinned(checkpoint)
    newest = max(pinned)
    first = min(batch for batch in pinned if pinned[batch] == pinned[newest])
    old = checkpoint / "state/0" / str(pinned[newest])
    shutil.copytree(checkpoint / "state/0/0", old)
    remove_above(old, first)
    return checkpoint, newest


def partitions_pinned(checkpoint: Path) -> dict[int, int]:
    plans = {int(file.name): file.read_text().split("\n")[1] for file in (checkpoint / "offsets").glob("[0-9]*")}
    return {batch: int(json.loads(text)["conf"]["spark.sql.shuffle.partitions"]) for batch, text in plans.items()}


def test_partitions_that_a_repartition_left_are_not_read(tmp_path: Path) -> None:
    whole = copy_of(REPARTITIONED, tmp_path / "whole")
    checkpoint, batch = with_old_partition(tmp_path)
    count = partitions_pinned(checkpoint)[batch]

    report, before = (read_checkpoint(opened(one), state=True) for one in (checkpoint, whole))

    assert find_damage(opened(checkpoint), "all").damage == report.damage == ()
    [operator], [same] = report.operators, before.operators
    assert operator.partitions == count
    assert [(store.rows, store.first, store.last, store.missing) for store in operator.stores] == [
        (store.rows, store.first, store.last, store.missing) for store in same.stores
    ]
    assert rows_of(checkpoint, batch) == rows_of(whole, batch)
    with raises_code(NotFound, "no-such-partition"):
        inspect_state(str(checkpoint), StateRequest(0, partition=count))


def test_a_partition_with_the_newest_state_is_shown_whatever_the_plan_pins(tmp_path: Path) -> None:
    """The plan was edited: `inspect --operators` shows the partitions that the state has."""
    checkpoint = copy_of(REPARTITIONED, tmp_path)
    listed = opened(checkpoint)
    batch, count = listed.logs.committed, len(listed.inventory.stores[0])
    plan = checkpoint / "offsets" / str(batch)
    plan.write_text(plan.read_text().replace(f'shuffle.partitions":"{count}"', f'shuffle.partitions":"{count - 1}"'))
    (checkpoint / "offsets" / f".{batch}.crc").unlink()

    [operator] = read_checkpoint(opened(checkpoint)).operators

    assert operator.partitions == count


def test_state_of_format_2_before_the_first_commit_is_empty(tmp_path: Path) -> None:
    checkpoint = copy_of(FORMAT_2, tmp_path)
    cut_after(checkpoint, 0)
    remove(checkpoint, "commits", 0)

    place, rows = inspect_state(str(checkpoint), StateRequest(0))

    assert (place["batch"], len(rows.table), rows.damage) == (-1, 0, ())


@pytest.mark.parametrize(
    ("family", "columns"),
    [
        ("$eventTimers_keyToTimestamp", ["key", "expiration_timestamp_ms"]),
        ("$procTimers_keyToTimestamp", ["key", "expiration_timestamp_ms"]),
        ("first_keyToTimestamp", ["key", "value"]),
    ],
)
def test_a_variable_may_be_named_like_timers(family: str, columns: list[str]) -> None:
    key = pa.StructArray.from_arrays([pa.array(["a"]), pa.array([7])], ["key", "expiryTimestampMs"])
    value = pa.StructArray.from_arrays([pa.array([1])], ["n"])
    schema = StructType((Field("n", AtomicType("long")),))
    store = OperatorStore("default", (ColumnFamily(family, schema, schema),), with_families=True)
    operator = Operator(0, "transformWithStateInPandasExec", False, 1, (store,), {"stateVariables": []})

    assert list(shape(FamilyRows(key, value), StateChoice(operator, store, family))) == columns
