"""The project's own modules for the Python workers of a cluster, which have no disk in common with the driver."""

from __future__ import annotations

import atexit
import sys
import tempfile
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING
from zipfile import ZipFile

from slackwater.runtime.code_source import in_archive

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

ARCHIVE = "slackwater-project.zip"


def send_modules(spark: SparkSession, files: Iterable[Path]) -> None:
    """Have every Python worker of the session import these modules from an archive that the driver serves.

    One in an archive is left out: ``--py-files`` has sent that whole, and a part of its package would hide the rest.
    """
    named = {module_path(file): file for file in files if not in_archive(file)}
    if not named:
        return
    folder = tempfile.TemporaryDirectory(prefix="slackwater-modules-")
    # Spark's file server reads the archive as long as there are executors to start.
    atexit.register(folder.cleanup)
    archive = Path(folder.name) / ARCHIVE
    with ZipFile(archive, "w") as opened:
        for name, file in sorted(named.items()):
            opened.write(file, name)
    spark.sparkContext.addPyFile(str(archive))


def module_path(file: Path) -> str:
    """The path of a module in an archive: relative to the innermost folder of ``sys.path`` that it is in."""
    folders = [Path(entry or ".").absolute() for entry in sys.path]
    around = [folder for folder in folders if file.is_relative_to(folder)]
    inner = max(around, key=lambda folder: len(folder.parts), default=file.parent)
    return file.relative_to(inner).as_posix()
