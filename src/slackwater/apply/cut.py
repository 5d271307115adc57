"""Cuts a file sink back: whole batches out of its manifest, newest first, and their files into the operation's backup.

Every step can be repeated, so that a killed cut is carried on by doing it again.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from slackwater.model.plan import CutSink
from slackwater.sinks.files_output import MANIFEST, FilesOutput
from slackwater.storage.local import LocalStore
from slackwater.storage.open import local_path_of
from slackwater.storage.protocols import WriteStore

PLAN_FOLDER = "backup"


def cut(output: FilesOutput, action: CutSink, recorded: Mapping[int, Sequence[str]], operation: Path) -> None:
    """Take the action's batches out of ``output``. What is taken out lies in ``operation/backup`` afterwards."""
    backup = LocalStore(operation / PLAN_FOLDER)
    for name, text in output.manifest_after_cut(action.after, recorded).items():
        if not output.store.exists(f"{MANIFEST}/{name}"):
            output.store.write(f"{MANIFEST}/{name}", text.encode())
    for name in output.names_after(action.after):
        _move(output.store, f"{MANIFEST}/{name}", backup)
        output.store.delete(f"{MANIFEST}/.{name}.crc")
    for uri in action.files:
        _move(output.store, _below(output.store, uri), backup)


def _below(store: WriteStore, uri: str) -> str:
    """A manifest's absolute URI as a path below the output directory."""
    root, path = local_path_of(store.location), local_path_of(uri)
    if root is not None and path is not None:
        return str(Path(path).relative_to(Path(root).absolute()))
    scheme_free = uri.split("://", 1)[-1]
    return scheme_free.removeprefix(store.location.split("://", 1)[-1].rstrip("/")).lstrip("/")


def _move(store: WriteStore, path: str, backup: WriteStore) -> None:
    try:
        data = store.read(path)
    except FileNotFoundError:
        return  # moved by an earlier, killed apply
    backup.write(path, data)
    store.delete(path)
