"""What an output of an example holds, as a multiset of rows, each as one text."""

from collections import Counter
from collections.abc import Iterable
from pathlib import Path

import pyarrow as pa
from deltalake import DeltaTable
from pyarrow import orc, parquet

from tests.sinks.iceberg_tables import live_files
from tests.support.outputs import Rows, files_by_batch, row_text, rows_of

TEXTS = (".json", ".csv", ".txt")


def rows_of_sink(output: Path) -> Rows:
    if (output / "_delta_log").is_dir():
        return _counted(DeltaTable(str(output)).to_pyarrow_table())
    if (output / "metadata").is_dir():
        contents = live_files(output).values()
        return _all(_counted(parquet.read_table(pa.BufferReader(content))) for content in contents)
    if not (output / "_spark_metadata").is_dir():
        return _all(map(_lines, output.glob("part-*")))
    files = [output / name for names in files_by_batch(output).values() for name in names]
    if any(file.suffix == ".parquet" for file in files):
        return rows_of(output)
    return _all(_lines(file) if file.suffix in TEXTS else _counted(orc.read_table(file)) for file in files)


def _all(counts: Iterable[Rows]) -> Rows:
    return sum(counts, Counter())


def _lines(file: Path) -> Rows:
    return Counter(file.read_text().splitlines())


def _counted(table: pa.Table) -> Rows:
    return Counter(map(row_text, table.to_pylist()))
