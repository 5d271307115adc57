"""Delta tables on a real S3 API, written by deltalake with a stream's transactions: cut, undone, staged, swapped."""

from collections.abc import Callable, Sequence
from pathlib import Path

import pyarrow as pa
import pytest
from deltalake import CommitProperties, DeltaTable, Transaction, write_deltalake

from slackwater.core.errors import Refused
from slackwater.core.sink import Owner
from slackwater.sinks.delta.sink import DeltaOutput, app_of
from slackwater.sinks.delta.table import DeltaVersion, storage_options
from slackwater.storage.local import LocalStore
from slackwater.storage.open import open_write_store
from tests.support.errors import raises_code

OPERATION = "20260105T093000-1a2b3c"
OWNER = Owner("5f0e", "clicks/per_page", "/srv/home")
APP = app_of(OWNER.stream_id)
Rows = list[tuple[str, int]]


@pytest.fixture
def table(s3_location: str) -> str:
    """A table with batches 0 to 4, of one file each."""
    location = f"{s3_location}/data/a table"
    _write(location, range(5))
    DeltaOutput(location).claim(OWNER)
    return location


def _write(location: str, batches: Sequence[int], first: int = 0) -> None:
    for batch in batches:
        _append(location, {"day": [f"ö {batch % 2}"], "n": [first + batch]}, [Transaction(APP, batch)])


def _append(location: str, rows: dict[str, list[object]], transactions: list[Transaction]) -> None:
    write_deltalake(
        location,
        pa.table(rows),
        mode="append",
        partition_by=["day"],
        storage_options=storage_options(location),
        commit_properties=CommitProperties(app_transactions=transactions),
    )


def _rows(location: str) -> Rows:
    found = DeltaTable(location, storage_options=storage_options(location)).to_pyarrow_table().to_pylist()
    return sorted((row["day"], row["n"]) for row in found)


def _expected(batches: Sequence[int], first: int = 0) -> Rows:
    return sorted((f"ö {batch % 2}", first + batch) for batch in batches)


@pytest.mark.parametrize("shared", [False, True])
def test_cut_and_undone(table: str, tmp_path: Path, *, shared: bool) -> None:
    """By restoring a version, or by removing the batches' files where another writer has appended."""
    others: Rows = [("others", 99)] if shared else []
    if shared:
        _append(table, {"day": ["others"], "n": [99]}, [])
        _write(table, [5])
    output, backup, whole = DeltaOutput(table), LocalStore(tmp_path / "backup"), _rows(table)
    cut = output.cut_after(1, {})
    assert (len(cut.files), cut.rows) == (len(cut.batches), len(cut.batches))
    for _ in range(2):
        output.cut(cut, {}, backup)
        assert (_rows(table), output.last_written()) == (sorted([*_expected(range(2)), *others]), 1)
    output.check_restore(cut, backup)
    for _ in range(2):
        output.restore(cut, backup)
        assert (_rows(table), output.last_written()) == (whole, cut.batches[-1])
    assert output.damage("all") == ()


def test_a_commit_never_replaces_another_writers(table: str) -> None:
    """By the conditional put of S3."""
    stale = DeltaVersion(table)
    _append(table, {"day": ["others"], "n": [99]}, [])
    whole = _rows(table)
    acts: list[Callable[[], object]] = [lambda: stale.restore(1, APP, 1), lambda: stale.commit(APP, 1, {})]
    for act in acts:
        with pytest.raises(FileExistsError):
            act()
    assert (_rows(table), DeltaVersion(table).number) == (whole, stale.number + 1)


@pytest.mark.parametrize("after", [-1, 1])
def test_staged_swapped_cut_and_undone(table: str, tmp_path: Path, after: int) -> None:
    output, backup, whole = DeltaOutput(table), LocalStore(tmp_path / "backup"), _rows(table)
    for _ in range(2):
        output.stage(OPERATION, after, {})
    staged = output.staged(OPERATION)
    staged.claim(OWNER)
    _write(staged.location, range(after + 1, 4), first=100)
    assert staged.last_written() == 3
    new = sorted([*_expected(range(after + 1)), *_expected(range(after + 1, 4), 100)])
    swap = output.swap_of(OPERATION, OWNER.stream_id)
    for _ in range(2):
        output.swap(swap, backup)
        assert (_rows(table), output.last_written(), output.damage("all")) == (new, 3, ())
    cuts = LocalStore(tmp_path / "cut")
    cut = output.cut_after(2, {})
    output.cut(cut, {}, cuts)
    assert (_rows(table), output.last_written()) == ([row for row in new if row[1] != 103], 2)
    output.restore(cut, cuts)
    output.check_swap_back(swap, backup)
    for _ in range(2):
        output.swap_back(swap, backup)
        assert (_rows(table), output.last_written()) == (whole, 4)
    output.discard(OPERATION, "staged")
    assert not open_write_store(staged.location).list()
    assert _rows(table) == whole


def test_a_place_that_is_taken(table: str) -> None:
    output = DeltaOutput(table)
    other = open_write_store(output.staged(OPERATION).location)
    other.write("somebody's.parquet", b"rows")
    acts: list[Callable[[], object]] = [
        lambda: output.stage(OPERATION, 1, {}),
        lambda: output.discard(OPERATION, "staged"),
    ]
    for act in acts:
        with raises_code(Refused, "staged-foreign"):
            act()
    assert [entry.name for entry in other.list()] == ["somebody's.parquet"]


def test_a_removal_that_was_interrupted_is_finished(table: str) -> None:
    output = DeltaOutput(table)
    output.stage(OPERATION, 2, {})
    staged = open_write_store(output.staged(OPERATION).location)
    staged.write("_slackwater_swap.json", staged.read("_slackwater_swap.json").replace(b"staged", b"discarded"))
    output.stage(OPERATION, 3, {})
    assert output.staged(OPERATION).last_written() == 3
    assert _rows(output.staged(OPERATION).location) == _expected(range(4))
