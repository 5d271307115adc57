"""Copies the state of a checkpoint up to one batch into another checkpoint on this machine.

Spark never changes a state file in place, so the copies are hard links where both are on one file system that has them:
a copy takes as long as listing the files. Facts: checkpoint-format sections 1 and 9.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator

from slackwater.checkpoint.layout import STATE, is_leftover, parse_id, parse_state_file, spark_checksum_path
from slackwater.checkpoint.writer import write_log
from slackwater.storage.local import LocalStore
from slackwater.storage.open import is_uri
from slackwater.storage.protocols import Folder, ReadStore

_HIDDEN_SUM = ".crc"
_SPARK_SUM = spark_checksum_path("")
_OPERATOR_METADATA = "_metadata/v2"
_SCHEMA_PATHS = "stateSchemaFilePaths"
_SCHEME = re.compile(r"file:(?://(?=/))?")


def copy_state(source: ReadStore, target: LocalStore, last: int) -> None:
    """Everything below ``state/`` that loading the state after batch ``last``, or an older one, can need."""
    for folder in source.folders(STATE):
        names = list(_needed(folder, last))
        if folder.path.endswith(_OPERATOR_METADATA):
            for name in names:
                data = source.read(f"{folder.path}/{name}")
                target.write(f"{folder.path}/{name}", _with_paths_in(data, target.location))
        elif isinstance(source, LocalStore):
            target.link_from(source, folder.path, names)
        else:
            for path in (f"{folder.path}/{name}" for name in names):
                target.write_pieces(path, source.read_pieces(path))


def relocate_operators(store: LocalStore, location: str) -> None:
    """Make the operators of a checkpoint name their schema files as they are when it has been moved to ``location``."""
    for folder in store.folders(STATE):
        for name in folder.files if folder.path.endswith(_OPERATOR_METADATA) else ():
            if is_leftover(name) or parse_id(name) is None:
                continue
            path = f"{folder.path}/{name}"
            data = store.read(path)
            moved = _with_paths_in(data, location)
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
        file = parse_state_file(_described(name))
        if file is None or file.version <= last + 1:
            yield name


def _described(name: str) -> str:
    """The name of the state file that a checksum file belongs to, else the name itself."""
    if name.startswith(".") and name.endswith(_HIDDEN_SUM):
        name = name[1 : -len(_HIDDEN_SUM)]
    return name.removesuffix(_SPARK_SUM)


def _with_paths_in(data: bytes, location: str) -> bytes:
    """Operator metadata whose schema files, which it names by absolute paths, are those of another checkpoint."""
    version, _, content = data.decode().partition("\n")
    record = json.loads(content)
    for store in record["stateStoreInfo"]:
        store[_SCHEMA_PATHS] = [_moved(path, location) for path in store.get(_SCHEMA_PATHS, ())]
    return f"{version}\n{json.dumps(record, separators=(',', ':'))}".encode()


def _moved(path: str, location: str) -> str:
    scheme = _SCHEME.match(path)
    prefix = scheme[0] if scheme and not is_uri(location) else ""
    return f"{prefix}{location.rstrip('/')}/{STATE}/{path.rpartition(f'/{STATE}/')[2]}"
