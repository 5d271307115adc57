"""Compares outputs as multisets of rows: the same rows, each as often, in any order."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

from slackwater.formats.compactible import SINK_LOG, parse_entry_name, parse_file_sink_log

Row = tuple[tuple[str, object], ...]
"""A row by its column names, in their alphabetical order: rows with other columns are other rows."""


@dataclass(frozen=True, slots=True)
class Comparison:
    """What one stream wrote against what it should have written; ``missing`` and ``extra`` count rows."""

    stream: str
    expected_rows: int
    rows: int
    missing: int
    extra: int

    @property
    def equal(self) -> bool:
        """Whether both are the same multiset of rows."""
        return self.missing == 0 and self.extra == 0


def compare(stream: str, expected: Counter[Row], found: Counter[Row]) -> Comparison:
    """The two multisets, compared."""
    return Comparison(
        stream=stream,
        expected_rows=expected.total(),
        rows=found.total(),
        missing=(expected - found).total(),
        extra=(found - expected).total(),
    )


def rows_of(output: Path) -> Counter[Row]:
    """All rows of a Parquet output of Spark's file sink: those in files that its manifest names, and no others."""
    return rows_in(output / file for file in committed_files(output))


def rows_in(files: Iterable[Path]) -> Counter[Row]:
    """All rows of Parquet files."""
    return Counter(row for file in files for row in _rows(file))


def row_of(values: Mapping[str, object]) -> Row:
    """A row from its columns. Timestamps are in UTC and without a zone, as Spark's Parquet files are read."""
    return tuple(sorted((name, _in_utc(value)) for name, value in values.items()))


def committed_files(output: Path) -> tuple[str, ...]:
    """The names of the data files that the manifest lists, in the order they were written.

    Names, not the URIs in it: a copied output has its files next to it, too.
    """
    manifest = output / SINK_LOG
    entries = {path: found for path in manifest.iterdir() if (found := parse_entry_name(path.name))}
    compacted = max((number for number, is_compact in entries.values() if is_compact), default=-1)
    # A compacted entry contains all entries before it and replaces its own.
    counting = sorted((number, path) for path, (number, _) in entries.items() if number >= compacted)
    files = (file for _, path in counting for file in parse_file_sink_log(path.read_bytes()))
    return tuple(unquote(Path(urlsplit(file.path).path).name) for file in files)


def up_to_then(old: Counter[Row], new: Counter[Row], is_old: Callable[[Row], bool]) -> Counter[Row]:
    """The rows of ``old`` for which ``is_old`` holds, and those of ``new`` for which it does not."""
    chosen = {row: times for row, times in old.items() if is_old(row)}
    return Counter(chosen) + Counter({row: times for row, times in new.items() if not is_old(row)})


def timestamp_of(row: Row, column: str) -> datetime:
    """A timestamp of a row, in UTC."""
    value = dict(row)[column]
    if not isinstance(value, datetime):
        raise TypeError(f"{column} holds no timestamp but {value!r}")
    return value.replace(tzinfo=UTC) if value.tzinfo is None else value.astimezone(UTC)


def _rows(file: Path) -> Iterator[Row]:
    from pyarrow import parquet  # noqa: PLC0415 - costs more than the whole start of a command

    # Spark writes timestamps as INT96, which pyarrow reads as nanoseconds that need pandas.
    with parquet.ParquetFile(file, coerce_int96_timestamp_unit="us") as content:
        # A file without rows has no row groups, and pyarrow cannot read all of none.
        for group in range(content.num_row_groups):
            for row in content.read_row_group(group).to_pylist():
                yield row_of(row)


def _in_utc(value: object) -> object:
    if isinstance(value, datetime) and value.tzinfo is not None:
        return value.astimezone(UTC).replace(tzinfo=None)
    return value


LOG = "_delta_log"


def rows_of_table(table: Path) -> Counter[Row]:
    """All rows of the newest version. The tables of the demo are too young for a log without its first entries."""
    live: set[str] = set()
    for entry in _entries(table):
        for action in _actions(entry):
            if "remove" in action:
                live.discard(unquote(action["remove"]["path"]))
            if "add" in action:
                live.add(unquote(action["add"]["path"]))
    return rows_in(table / name for name in sorted(live))


def newest_batch(table: Path) -> int:
    """The newest batch that the table has, by the transaction of its newest version; -1 for none."""
    entries = _entries(table)
    written = (action["txn"]["version"] for action in _actions(entries[-1]) if "txn" in action) if entries else iter(())
    return max(written, default=-1)


def _entries(table: Path) -> list[Path]:
    try:
        return sorted(path for path in (table / LOG).iterdir() if path.name.endswith(".json") and path.stem.isdigit())
    except FileNotFoundError:
        return []


def _actions(entry: Path) -> Iterator[dict[str, Any]]:
    return (json.loads(line) for line in entry.read_text(encoding="utf-8").splitlines())
