"""Changes text logs and state names of a checkpoint without another writer, and copies state.

Hadoop's local file system refuses ``N`` if ``.N.crc`` differs, so a writer removes that file first: ``N`` is then read
unchecked.
"""

import json
import re
from collections.abc import Iterator

from slackwater.checkpoint.layout import METADATA, STATE, is_leftover, parse_id, parse_state_file, spark_checksum_path
from slackwater.core.commands import command
from slackwater.storage.open import is_uri, spark_uri
from slackwater.storage.protocols import Folder, ReadStore, WriteStore, hadoop_checksum_path


def write_log(store: WriteStore, path: str, data: bytes) -> None:
    """The old checksum is removed first: after a kill in between, the old file is unchecked."""
    store.delete(hadoop_checksum_path(path))
    store.write(path, data)


def delete_log(store: WriteStore, path: str) -> None:
    """Removes the checksum too; an absent file is no error."""
    # The checksum first, as Hadoop does: alone it would count as a missing file, and Hadoop could not write another.
    store.delete(hadoop_checksum_path(path))
    store.delete(path)


def rename_log(store: WriteStore, source: str, target: str) -> None:
    """Raises ``FileExistsError``."""
    # Before the rename: a kill in between must not leave the target next to the checksum of another file.
    if store.exists(target):
        raise FileExistsError(target)
    store.delete(hadoop_checksum_path(target))
    store.delete(hadoop_checksum_path(source))
    store.rename(source, target)


def rename_state_file(store: WriteStore, source: str, target: str) -> None:
    """Renames Spark's checksum with the file."""
    # The file comes first: a state file without Spark's checksum is loaded unverified, and a checksum alone is ignored.
    rename_log(store, source, target)
    old_sum, new_sum = spark_checksum_path(source), spark_checksum_path(target)
    if store.exists(old_sum):
        rename_log(store, old_sum, new_sum)


# `StreamMetadata.read` fails on a file that is not JSON, so that no query starts on files that are half replaced.
_HALT = b"slackwater_is_replacing_this_checkpoint"
"""Without spaces, because Spark's error quotes only the first word of the file."""


def halted_by(operation: str) -> bytes:
    return _HALT + f" {command('undo', operation)} goes back\n".encode()


def is_halted(store: ReadStore) -> bool:
    """Whether an operation replaces the files, or was killed doing so."""
    try:
        return store.read(METADATA).startswith(_HALT)
    except FileNotFoundError:
        return False


_HIDDEN_SUM = ".crc"
_SPARK_SUM = spark_checksum_path("")
_OPERATOR_METADATA = "_metadata/v2"
_SCHEMA_PATHS = "stateSchemaFilePaths"
_SCHEME = re.compile(r"file:(?://(?=/))?")


def copy_state(source: ReadStore, target: WriteStore, last: int) -> None:
    """Copies all files that may be needed to load the state after batch ``last`` or an older batch."""
    for folder in source.folders(STATE):
        names = list(_needed(folder, last))
        # These files name the schemas by absolute paths, by which Spark would read those of the source checkpoint.
        if folder.path.endswith(_OPERATOR_METADATA):
            for name in names:
                data = source.read(f"{folder.path}/{name}")
                target.write(f"{folder.path}/{name}", _with_paths_in(data, spark_uri(target.location)))
        else:
            target.copy_from(source, folder.path, names)


def relocate_operators(store: WriteStore, location: str) -> None:
    """Makes operators name their schema files at ``location``."""
    for folder in store.folders(STATE):
        for name in folder.files if folder.path.endswith(_OPERATOR_METADATA) else ():
            if is_leftover(name) or parse_id(name) is None:
                continue
            path = f"{folder.path}/{name}"
            data = store.read(path)
            moved = _with_paths_in(data, spark_uri(location))
            if moved != data:
                write_log(store, path, moved)


def _needed(folder: Folder, last: int) -> Iterator[str]:
    of_batches = folder.path.endswith(_OPERATOR_METADATA)
    for name in folder.files:
        if is_leftover(name):
            continue
        if of_batches:
            # By batch; the hidden checksums would not match the new content.
            batch = parse_id(name)
            if batch is not None and batch <= last:
                yield name
            continue
        # Batch N makes state version N + 1. Names without a version, such as those of tables and schemas, may be needed
        # by any batch.
        described = name[1 : -len(_HIDDEN_SUM)] if name.startswith(".") and name.endswith(_HIDDEN_SUM) else name
        file = parse_state_file(described.removesuffix(_SPARK_SUM))
        if file is None or file.version <= last + 1:
            yield name


def _with_paths_in(data: bytes, location: str) -> bytes:
    """Operator metadata names schema files by absolute paths."""
    version, _, content = data.decode().partition("\n")
    record = json.loads(content)
    for store in record["stateStoreInfo"]:
        moved = []
        for path in store.get(_SCHEMA_PATHS, ()):
            # Hadoop writes `file:/a` and `file:///a`: the spelling of each path is kept.
            scheme = _SCHEME.match(path)
            prefix = scheme[0] if scheme and not is_uri(location) else ""
            moved.append(f"{prefix}{location.rstrip('/')}/{STATE}/{path.rpartition(f'/{STATE}/')[2]}")
        store[_SCHEMA_PATHS] = moved
    return f"{version}\n{json.dumps(record, separators=(',', ':'))}".encode()
