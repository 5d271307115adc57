"""What a file sink holds, by its own manifest: rows as multisets, whole or batch by batch."""

import json
from collections import Counter
from pathlib import Path
from urllib.parse import unquote, urlsplit

import pyarrow.parquet

Rows = Counter[str]


def manifest_ids(output: Path) -> list[int]:
    folder = output / "_spark_metadata"
    names = [path.name.removesuffix(".compact") for path in folder.iterdir()] if folder.is_dir() else []
    # As in Spark, other names are no entries.
    return sorted(int(name) for name in names if name.isdigit())


def rows_of(output: Path, first: int = 0, last: int | None = None) -> Rows:
    """The rows of batches ``first`` to ``last`` (default: all), each row as one text."""
    files = files_by_batch(output)
    rows: Rows = Counter()
    for batch, names in files.items():
        if first <= batch and (last is None or batch <= last):
            for name in names:
                rows.update(row_text(row) for row in pyarrow.parquet.read_table(output / name).to_pylist())
    return rows


def files_by_batch(output: Path) -> dict[int, list[str]]:
    """Files by the batch that added them: a compacted entry repeats those of all batches before."""
    folder, seen, files = output / "_spark_metadata", set[str](), dict[int, list[str]]()
    for batch in manifest_ids(output):
        compacted = folder / f"{batch}.compact"
        text = (compacted if compacted.exists() else folder / str(batch)).read_text()
        names = [_name(line, output) for line in text.split("\n")[1:] if line]
        files[batch] = [name for name in names if name not in seen]
        seen.update(names)
    return files


def _name(line: str, output: Path) -> str:
    return str(Path(unquote(urlsplit(json.loads(line)["path"]).path)).relative_to(output))


def row_text(row: dict[str, object]) -> str:
    """A row as one text, its columns by name."""
    return repr(sorted((name, str(value)) for name, value in row.items()))
