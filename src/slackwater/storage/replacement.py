"""Replaces a file if a rename refuses an existing target, as on HDFS.

Renames the old file to a derived name, renames the new file into place, and removes the old file. If the writer is
killed in between, readers use the derived name, and the next write, rename or delete settles it first. At every point
the old or the new content is readable.
"""

import contextlib
import uuid
from typing import Any

from slackwater.storage.protocols import LEFTOVER, Folder

_SUFFIX = ".replaced.tmp"


def set_aside_path(path: str) -> str:
    """The path of the old content during a replacement; Spark ignores such names."""
    parent, slash, name = path.rpartition("/")
    return f"{parent}{slash}.{name}{_SUFFIX}"


def temporary_path(path: str) -> str:
    """A new name next to ``path`` for content being written; Spark ignores such names."""
    parent, slash, name = path.rpartition("/")
    return f"{parent}{slash}.{name}.{uuid.uuid4()}{LEFTOVER}"


def swap_in(filesystem: Any, temporary: str, path: str) -> None:
    """Rename ``temporary`` to ``path``, which may exist. After an error ``path`` has its old or its new content."""
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
    """Finish or undo an interrupted replacement of ``path``."""
    before = set_aside_path(path)
    if not filesystem.exists(before):
        return
    if filesystem.exists(path):
        filesystem.rm_file(before)
    else:
        move(filesystem, before, path)


def move(filesystem: Any, source: str, target: str) -> None:
    """Rename and check the result: WebHDFS answers a failed rename like a successful rename."""
    filesystem.mv(source, target)
    if filesystem.exists(source):
        raise OSError(f"{source} was not renamed to {target}")


def with_files_set_aside(folder: Folder) -> Folder:
    """The directory before interrupted replacements: set-aside files under their own names."""
    names = set(folder.files)
    own = {name: name[1 : -len(_SUFFIX)] for name in names if name.startswith(".") and name.endswith(_SUFFIX)}
    files = tuple(name if own.get(name) in names else own.get(name, name) for name in folder.files)
    return folder if files == folder.files else folder._replace(files=files)
