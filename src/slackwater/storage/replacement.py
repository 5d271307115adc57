"""Replacing a file where a rename refuses a target that exists, as on HDFS.

The old file is renamed to a name derived from its own, the new one is renamed into place, the old one is removed. If
the writer is killed in between, the old content is under the derived name: readers use it, and the next write,
rename or delete of the file starts by settling it. At every point either the old or the new content can be read.
"""

from __future__ import annotations

import contextlib
import uuid
from collections.abc import Iterable
from typing import Any

from slackwater.storage.protocols import LEFTOVER, Folder

_SUFFIX = ".replaced.tmp"


def set_aside_path(path: str) -> str:
    """Where the old content of ``path`` is while it is being replaced; Spark ignores such names."""
    parent, slash, name = path.rpartition("/")
    return f"{parent}{slash}.{name}{_SUFFIX}"


def temporary_path(path: str) -> str:
    """A new name next to ``path`` for content that is being written; Spark ignores such names."""
    parent, slash, name = path.rpartition("/")
    return f"{parent}{slash}.{name}.{uuid.uuid4()}{LEFTOVER}"


def swap_in(filesystem: Any, temporary: str, path: str) -> None:
    """Rename ``temporary`` to ``path``, which may exist. After an error ``path`` has its old content or the new."""
    try:
        settle(filesystem, path)
        if filesystem.exists(path):
            move(filesystem, path, set_aside_path(path))
        move(filesystem, temporary, path)
    except OSError:
        # If only the first rename was done, this puts the old content back.
        with contextlib.suppress(OSError):
            settle(filesystem, path)
        with contextlib.suppress(OSError):
            filesystem.rm_file(temporary)
        raise
    if filesystem.exists(set_aside_path(path)):
        filesystem.rm_file(set_aside_path(path))


def settle(filesystem: Any, path: str) -> None:
    """Finish or take back a replacement of ``path`` that was interrupted."""
    before = set_aside_path(path)
    if not filesystem.exists(before):
        return
    if filesystem.exists(path):
        filesystem.rm_file(before)
    else:
        move(filesystem, before, path)


def move(filesystem: Any, source: str, target: str) -> None:
    """Rename a file. WebHDFS answers a rename that it did not do like one that it did, so the result is checked."""
    filesystem.mv(source, target)
    if filesystem.exists(source):
        raise OSError(f"{source} was not renamed to {target}")


def with_files_set_aside(folder: Folder) -> Folder:
    """The directory as it was before the replacements that were interrupted: files set aside under their own names."""
    names = set(folder.files)
    files = tuple(_own_name(name, names) for name in folder.files)
    return folder if files == folder.files else folder._replace(files=files)


def _own_name(name: str, names: Iterable[str]) -> str:
    if not (name.startswith(".") and name.endswith(_SUFFIX)):
        return name
    own = name[1 : -len(_SUFFIX)]
    return name if own in names else own
