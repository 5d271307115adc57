"""An Iceberg table that Iceberg's own streaming sink fills: a batch is taken out and put back, and nothing else."""

from __future__ import annotations

from pathlib import Path

import pytest

from slackwater.sinks.common.contract import MarkedByQuery, StagedByPath, of_query
from slackwater.sinks.common.registry import open_output
from slackwater.sinks.iceberg.output import QueryTable
from slackwater.storage.local import LocalStore
from tests.sinks import iceberg_tables

QUERY, EARLIER = "11111111-2222-4333-8444-555555555555", "99999999-2222-4333-8444-555555555555"
LAST = 4


@pytest.fixture
def table(tmp_path: Path) -> Path:
    """With batches of an earlier query, then 0 to LAST of this one."""
    folder = tmp_path / "shop" / "counts"
    iceberg_tables.create(folder)
    for query in (EARLIER, QUERY):
        for batch in range(LAST + 1):
            write(folder, query, batch)
    return folder


def write(table: Path, query: str, batch: int) -> None:
    """As the sink does; a batch without rows has a snapshot, too."""
    names = [iceberg_tables.data_file(table, f"{query[:4]}-{batch}.parquet", [batch])] if batch % 2 else []
    summary = {"spark.sql.streaming.queryId": query, "spark.sql.streaming.epochId": str(batch)}
    iceberg_tables.commit(table, names, summary)


def opened(table: Path) -> QueryTable:
    sink = {"kind": "table", "name": f"iceberg.{table}", "format": "iceberg"}
    output = of_query(open_output(sink), QUERY)
    assert isinstance(output, QueryTable)
    assert not isinstance(output, StagedByPath)
    return output


def newest(table: Path) -> int | None:
    """What the sink finds before it commits a batch."""
    sink = {"kind": "table", "name": f"iceberg.{table}", "format": "iceberg"}
    output = open_output(sink)
    assert isinstance(output, MarkedByQuery)
    return output.written_by(QUERY)


@pytest.mark.parametrize("after", [LAST - 1, 1, -1])
def test_batches_of_the_query_are_taken_out_and_put_back(table: Path, tmp_path: Path, after: int) -> None:
    before, backup = iceberg_tables.metadata(table)["current-snapshot-id"], LocalStore(tmp_path / "backup")
    cut = opened(table).cut_after(after, {})
    assert cut.batches == tuple(range(after + 1, LAST + 1))
    for _ in range(2):
        opened(table).cut(cut, {}, backup)
        assert (opened(table).last_written(), newest(table)) == (after, after if after >= 0 else None)
    for _ in range(2):
        opened(table).restore(cut, backup)
        assert (opened(table).last_written(), newest(table)) == (LAST, LAST)
        assert iceberg_tables.metadata(table)["current-snapshot-id"] == before
    # The program goes on after a cut.
    opened(table).cut(opened(table).cut_after(after, {}), {}, LocalStore(tmp_path / "again"))
    write(table, QUERY, after + 1)
    assert (opened(table).last_written(), newest(table)) == (after + 1, after + 1)


def test_nothing_is_taken_out_of_a_table_without_the_batch(table: Path) -> None:
    cut = opened(table).cut_after(LAST, {})
    assert (cut.batches, cut.files) == ((), ())
