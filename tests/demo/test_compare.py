"""The comparison sees a row that is changed, missing, doubled or not committed."""

import json
from collections import Counter
from datetime import UTC, datetime
from pathlib import Path

import pyarrow as pa
import pytest
from pyarrow import parquet

from examples.demo.compare import Row, committed_files, compare, rows_of, timestamp_of, up_to_then

ROWS = [{"station": "EWR", "mean": 38.7}, {"station": "JFK", "mean": 38.9}, {"station": "JFK", "mean": 38.9}]


def write(output: Path, name: str, rows: list[dict[str, object]], *, batch: str | None) -> None:
    (output / "_spark_metadata").mkdir(parents=True, exist_ok=True)
    parquet.write_table(pa.Table.from_pylist(rows), output / name)
    if batch is not None:
        log(output, batch, [name])


def log(output: Path, batch: str, names: list[str]) -> None:
    entries = [
        json.dumps(
            {"path": f"file:///elsewhere/{name}", "size": 1, "isDir": False, "modificationTime": 1, "action": "add"}
        )
        for name in names
    ]
    (output / "_spark_metadata" / batch).write_text("\n".join(["v1", *entries]))


@pytest.fixture
def expected(tmp_path: Path) -> Counter[Row]:
    write(tmp_path / "expected", "part-0.parquet", ROWS, batch="0")
    return rows_of(tmp_path / "expected")


@pytest.mark.parametrize(
    ("found", "missing", "extra"),
    [
        (ROWS[::-1], 0, 0),
        ([{"station": "EWR", "mean": 38.8}, *ROWS[1:]], 1, 1),
        (ROWS[:2], 1, 0),
        ([*ROWS, ROWS[0]], 0, 1),
        ([{**row, "rain": None} for row in ROWS], 3, 3),
    ],
    ids=["other order", "changed row", "one of two equal rows missing", "doubled row", "one more column"],
)
def test_rows_are_compared_as_a_multiset(
    expected: Counter[Row], tmp_path: Path, found: list[dict[str, object]], missing: int, extra: int
) -> None:
    write(tmp_path / "found", "part-0.parquet", found, batch="0")
    comparison = compare("gold", expected, rows_of(tmp_path / "found"))
    assert (comparison.missing, comparison.extra) == (missing, extra)
    assert comparison.equal is (missing == extra == 0)


def test_files_that_the_manifest_does_not_name_do_not_count(expected: Counter[Row], tmp_path: Path) -> None:
    write(tmp_path / "found", "part-0.parquet", ROWS, batch="0")
    write(tmp_path / "found", "part-left-by-a-killed-task.parquet", ROWS, batch=None)
    assert compare("gold", expected, rows_of(tmp_path / "found")).equal


def test_files_without_rows_and_compacted_entries_are_read(tmp_path: Path) -> None:
    empty = pa.Table.from_pylist([], schema=pa.schema([("station", pa.string())]))
    output = tmp_path / "found"
    for batch in range(12):
        write(output, f"part-{batch}.parquet", [{"batch": batch}], batch=None)
    parquet.write_table(empty, output / "part-12.parquet")
    # Spark keeps the entries that it has compacted for a while.
    for batch in range(13):
        log(output, str(batch), [f"part-{batch}.parquet"])
    (output / "_spark_metadata" / "9").unlink()
    log(output, "9.compact", [f"part-{batch}.parquet" for batch in range(10)])
    assert len(committed_files(output)) == 13
    assert {dict(row)["batch"] for row in rows_of(output)} == set(range(12))


def test_old_rows_up_to_a_time_and_new_ones_after_it() -> None:
    def row(day: int, version: str) -> Row:
        return (("day", datetime(2013, 1, day)), ("version", version))  # noqa: DTZ001 - as pyarrow reads Spark's

    old = Counter([row(1, "old"), row(2, "old"), row(2, "old"), row(3, "old")])
    new = Counter([row(1, "new"), row(3, "new"), row(3, "new")])
    expected = up_to_then(old, new, lambda candidate: timestamp_of(candidate, "day") < datetime(2013, 1, 3, tzinfo=UTC))
    assert expected == Counter([row(1, "old"), row(2, "old"), row(2, "old"), row(3, "new"), row(3, "new")])
