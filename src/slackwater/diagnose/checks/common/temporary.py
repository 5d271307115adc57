"""Temporary files in a checkpoint: Spark writes a file under a hidden name first, and renames it then."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

from slackwater.core.facts import CheckpointSeen

_TEMPORARY = re.compile(r"\.(.+)\.[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}(?:\.TID[0-9]+)?\.tmp")
"""The name of ``RenameBasedFSDataOutputStream``: a dot, the file's name, a UUID, in a task also its id, ``.tmp``."""


class Temporary(NamedTuple):
    """A temporary file: its folder in the checkpoint, its name, and the name of the file that it was to become."""

    folder: str
    name: str
    target: str

    @property
    def path(self) -> str:
        """Its path in the checkpoint."""
        return f"{self.folder}/{self.name}"


def temporary_files(checkpoint: CheckpointSeen) -> Iterator[Temporary]:
    """All temporary files, by folder."""
    for folder, names in sorted(checkpoint.folders.items()):
        for name in sorted(names):
            match = _TEMPORARY.fullmatch(name)
            if match is not None:
                yield Temporary(folder, name, match[1])
