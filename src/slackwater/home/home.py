"""The home of pipelines: the ledger, and for each stream its checkpoints, its operations and ``stream.json``.

What Slackwater creates here is private (modes 0600 and 0700); checkpoints have the modes that Spark gives them.
"""

from __future__ import annotations

from os import PathLike
from pathlib import Path

NUMBER_DIGITS = 10
"""Folders with longer names are not generations."""


class Home:
    """Paths below one folder. Names of pipelines and streams must have been validated."""

    def __init__(self, path: str | PathLike[str]) -> None:
        self.path = Path(path).expanduser().absolute()

    @property
    def ledger_url(self) -> str:
        """The ledger of this home, unless the settings name another one."""
        return str(self.path / "ledger.db")

    def stream_folder(self, pipeline: str, stream: str) -> Path:
        """The folder of one stream."""
        return self.path / "streams" / pipeline / stream

    def checkpoints(self, pipeline: str, stream: str) -> Path:
        """The parent of the checkpoint directories."""
        return self.stream_folder(pipeline, stream) / "checkpoints"

    def generation_numbers(self, pipeline: str, stream: str) -> list[int]:
        """The numbers of the checkpoint folders that exist, whoever made them."""
        folder = self.checkpoints(pipeline, stream)
        names = [path.name for path in folder.iterdir()] if folder.is_dir() else []
        return sorted(int(name) for name in names if name.isascii() and name.isdigit() and len(name) < NUMBER_DIGITS)

    def checkpoint(self, pipeline: str, stream: str, number: int) -> Path:
        """The checkpoint directory of one generation."""
        return self.checkpoints(pipeline, stream) / f"{number:04d}"

    def operations(self, pipeline: str, stream: str) -> Path:
        """The parent of the operations' folders."""
        return self.stream_folder(pipeline, stream) / "operations"

    def operation(self, pipeline: str, stream: str, operation_id: str) -> Path:
        """The folder with the plan, journal and backup of one operation."""
        return self.operations(pipeline, stream) / operation_id
