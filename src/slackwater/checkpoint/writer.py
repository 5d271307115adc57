"""Changes to the text logs and state names of a checkpoint that no other process writes to.

Hadoop's local file system keeps ``.N.crc`` beside ``N`` and refuses ``N`` when they differ, so whoever changes a file
removes that side file first: a file without one is read unchecked. Spark's own ``.crc`` of state files is renamed
with the file, as it covers only the content.
"""

from __future__ import annotations

from slackwater.checkpoint.layout import hadoop_checksum_path, spark_checksum_path
from slackwater.storage.protocols import WriteStore


def write_log(store: WriteStore, path: str, data: bytes) -> None:
    """Write a log file. The old checksum is removed first: after a kill in between, the old file is unchecked."""
    store.delete(hadoop_checksum_path(path))
    store.write(path, data)


def delete_log(store: WriteStore, path: str) -> None:
    """Remove a log file with its checksum; an absent file is no error."""
    store.delete(path)
    store.delete(hadoop_checksum_path(path))


def rename_log(store: WriteStore, source: str, target: str) -> None:
    """Give a log file another name. Raises ``FileExistsError`` where the target exists."""
    _drop_stale_checksum(store, target)
    store.rename(source, target)
    store.delete(hadoop_checksum_path(source))


def rename_state_file(store: WriteStore, source: str, target: str) -> None:
    """Give a state file another version, along with Spark's checksum of it."""
    rename_log(store, source, target)
    old_sum, new_sum = spark_checksum_path(source), spark_checksum_path(target)
    if store.exists(old_sum):
        rename_log(store, old_sum, new_sum)


def _drop_stale_checksum(store: WriteStore, path: str) -> None:
    """A checksum without its file is left over from another file of that name and would not match the new one."""
    if store.exists(path):
        raise FileExistsError(path)
    store.delete(hadoop_checksum_path(path))
