"""Edits of a checkpoint: no checksum is left of bytes that were replaced, and nothing is replaced by a rename."""

from pathlib import Path

import pytest

from slackwater.checkpoint.logs import marks, read_logs
from slackwater.checkpoint.writer import delete_log, rename_log, rename_state_file, write_log
from slackwater.core.checkpoint import Marks
from slackwater.storage.local import LocalStore


def names(folder: Path) -> set[str]:
    return {path.name for path in folder.iterdir()}


@pytest.fixture
def store(tmp_path: Path) -> LocalStore:
    for name in ("offsets/0", "offsets/.0.crc", "offsets/1", "offsets/.1.crc", "offsets/.2.crc"):
        LocalStore(tmp_path).write(name, b"v1\n{}\n1")
    return LocalStore(tmp_path)


def test_writing_a_log_drops_its_checksum(store: LocalStore, tmp_path: Path) -> None:
    write_log(store, "offsets/0", b"new")
    assert names(tmp_path / "offsets") == {"0", "1", ".1.crc", ".2.crc"}
    assert store.read("offsets/0") == b"new"


def test_deleting_a_log_drops_its_checksum(store: LocalStore, tmp_path: Path) -> None:
    delete_log(store, "offsets/0")
    delete_log(store, "offsets/0")
    assert names(tmp_path / "offsets") == {"1", ".1.crc", ".2.crc"}


def test_renaming_drops_the_checksum_of_both_names(store: LocalStore, tmp_path: Path) -> None:
    rename_log(store, "offsets/1", "offsets/2")
    assert names(tmp_path / "offsets") == {"0", ".0.crc", "2"}


def test_renaming_never_replaces(store: LocalStore, tmp_path: Path) -> None:
    with pytest.raises(FileExistsError):
        rename_log(store, "offsets/1", "offsets/0")
    assert names(tmp_path / "offsets") == {"0", ".0.crc", "1", ".1.crc", ".2.crc"}


def test_a_state_file_takes_sparks_own_checksum_along(tmp_path: Path) -> None:
    store = LocalStore(tmp_path)
    for name in ("1.delta", ".1.delta.crc", "1.delta.crc", ".1.delta.crc.crc"):
        store.write(f"state/0/0/{name}", name.encode())
    rename_state_file(store, "state/0/0/1.delta", "state/0/0/7.delta")
    assert names(tmp_path / "state/0/0") == {"7.delta", "7.delta.crc"}
    assert store.read("state/0/0/7.delta.crc") == b"1.delta.crc"


def checkpoint(folder: Path, *paths: str) -> LocalStore:
    """A checkpoint of these files: logs of two partitions, empty state."""
    store = LocalStore(folder)
    store.write("metadata", b'{"id":"x"}')
    for path in paths:
        conf = b'{"batchWatermarkMs":0,"batchTimestampMs":0,"conf":{"spark.sql.shuffle.partitions":"2"}}'
        store.write(path, b"v1\n" + conf + b"\n1" if path.startswith("offsets") else b"v1\n{}")
    return store


@pytest.mark.parametrize(
    ("files", "state"),
    [
        (["1.delta", "2.delta", "3.delta"], 2),
        (["2.delta", "3.delta"], -1),
        (["1.snapshot", "3.delta"], 0),
        (["3.snapshot"], 2),
        (["2.zip", "3.changelog"], 2),
        (["1.changelog", "2.changelog"], 1),
        ([".1.delta.tmp", "1.delta.crc"], -1),
    ],
)
def test_the_state_mark_needs_every_partition(tmp_path: Path, files: list[str], state: int) -> None:
    logs = [f"{log}/{batch}" for log in ("offsets", "commits") for batch in range(3)]
    whole = [f"state/0/0/{version}.delta" for version in (1, 2, 3)]
    store = checkpoint(tmp_path, *logs, *whole, *(f"state/0/1/{name}" for name in files))
    assert marks(store) == Marks(planned=2, committed=2, state=state)


def test_a_lost_partition_counts_as_lost(tmp_path: Path) -> None:
    store = checkpoint(tmp_path, "offsets/0", "commits/0", "state/0/1/1.delta")
    assert marks(store).state == -1


def test_an_empty_place_has_no_marks(tmp_path: Path) -> None:
    store = LocalStore(tmp_path / "nothing")
    assert marks(store) == Marks(planned=-1, committed=-1, state=None)
    assert [item.kind for item in read_logs(store).damage] == ["missing"]
    assert marks(store).next_batch == 0


def test_a_kill_leaves_no_checksum_without_its_log(store: LocalStore, tmp_path: Path) -> None:
    class Killed(LocalStore):
        def delete(self, path: str) -> None:
            super().delete(path)
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        delete_log(Killed(tmp_path), "offsets/0")
    assert names(tmp_path / "offsets") == {"0", "1", ".1.crc", ".2.crc"}
    delete_log(store, "offsets/0")
    assert names(tmp_path / "offsets") == {"1", ".1.crc", ".2.crc"}
