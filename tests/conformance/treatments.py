"""Runs on one half of the input and then on the rest, and what is done to checkpoints between the two."""

import re
import shutil
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from tests.conformance.matrix import EXAMPLES, Area, Workspace
from tests.support.outputs import Rows

STATE = "org.apache.spark.sql.execution.streaming.state."
PROVIDER = "spark.sql.streaming.stateStore.providerClass"
ROCKSDB, HDFS = f"{STATE}RocksDBStateStoreProvider", f"{STATE}HDFSBackedStateStoreProvider"
UNMAINTAINED = {"spark.sql.streaming.stateStore.maintenanceInterval": "1h"}
"""Stores of an ended run, which the JVM keeps, write no snapshot into a checkpoint that was deleted meanwhile."""
INPUT = ("readings", "views", "clicks", "orders")
FEW = "3"
"""Not a number of partitions that a test runs with."""


def keep(checkpoint: Path) -> None:
    assert checkpoint.is_dir()


def delete(checkpoint: Path) -> None:
    shutil.rmtree(checkpoint)


def damage(checkpoint: Path) -> None:
    """Cut each file of the state to half its size."""
    files = [file for file in (checkpoint / "state").rglob("*") if file.is_file() and file.stat().st_size > 1]
    assert files
    for file in files:
        file.write_bytes(file.read_bytes()[: file.stat().st_size // 2])


def change_provider(checkpoint: Path) -> None:
    """Write the other state store into all entries of the offset log."""
    other = {ROCKSDB: HDFS, HDFS: ROCKSDB}
    _edit(checkpoint, f"{re.escape(ROCKSDB)}|{re.escape(HDFS)}", lambda found: other[found[0]])


def change_partitions(checkpoint: Path) -> None:
    """Write another number of partitions into all entries of the offset log."""
    _edit(checkpoint, r'(?<="spark.sql.shuffle.partitions":")\d+', lambda _: FEW)


def _edit(checkpoint: Path, pattern: str, other: Callable[[re.Match[str]], str]) -> None:
    for entry in (checkpoint / "offsets").iterdir():
        if entry.name.isdigit():
            before = entry.read_text()
            after = re.sub(pattern, other, before)
            assert after != before, before
            entry.write_text(after)
            entry.with_name(f".{entry.name}.crc").unlink(missing_ok=True)


TREATMENTS = (keep, damage, delete, change_provider, change_partitions)


def area_of(streams: Sequence[str], settings: Mapping[str, str]) -> Area:
    """These examples of operations and joins as one area."""
    joins = {file.stem for file in (EXAMPLES / "joins").glob("*.py")}
    borrowed = {one: "joins" if one in joins else "operations" for one in streams}
    return Area("rebuilds", streams, {**UNMAINTAINED, **settings}, borrowed=borrowed)


def _halves(workspace: Workspace) -> Callable[[], None]:
    """Move the later half of the input away; the function that moves it back."""
    moved: list[tuple[Path, Path]] = []
    for folder in (workspace.folder / name for name in INPUT):
        files = sorted(folder.glob("*.json")) if folder.is_dir() else []
        for file in files[len(files) // 2 :]:
            away = workspace.folder / "later" / folder.name / file.name
            away.parent.mkdir(parents=True, exist_ok=True)
            moved.append((file.rename(away), file))
    assert moved

    def bring_back() -> None:
        for away, file in moved:
            away.rename(file)

    return bring_back


def run_twice(workspace: Workspace, saved: Path) -> tuple[dict[str, Rows], Callable[[], None]]:
    """What the outputs hold after a run on each half. Then the workspace is as it was between the two.

    The function moves the later half of the input to its place.
    """
    bring_back = _halves(workspace)
    workspace.run()
    shutil.copytree(workspace.folder, saved, symlinks=True)
    bring_back()
    workspace.run()
    expected = {stream: workspace.rows(stream) for stream in workspace.area.streams}
    # A home that is elsewhere is a copy: it is put back at its place.
    shutil.rmtree(workspace.folder)
    saved.rename(workspace.folder)
    return expected, bring_back
