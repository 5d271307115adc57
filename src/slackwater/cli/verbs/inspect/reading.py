"""Reads a checkpoint and reports its content. Nothing is written, no JVM is started.

A local checkpoint needs only the standard library.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from slackwater.checkpoint.file_text import file_text
from slackwater.checkpoint.limited_store import limited
from slackwater.checkpoint.opened import OpenedCheckpoint, open_checkpoint
from slackwater.checkpoint.reader import collector_off, read_checkpoint
from slackwater.cli.common.targets import require_recorded, resolve
from slackwater.core.checkpoint import CheckpointReport, ReadLimits, ReadOptions
from slackwater.core.commands import command
from slackwater.core.errors import FormatError, NotFound
from slackwater.core.units import size_text
from slackwater.storage.open import open_read_store
from slackwater.storage.protocols import FileTooLarge

READ_WITH_DAMAGE = 3
"""The exit code if a file is damaged; the rest was read."""


@dataclass(frozen=True, slots=True)
class StateRequest:
    operator: int
    store: str | None = None
    side: str | None = None
    partition: int | None = None
    batch: int | None = None
    limits: ReadLimits = field(default_factory=ReadLimits)


def open_target(target: str, home: str | None = None, limits: ReadLimits | None = None) -> OpenedCheckpoint:
    """The checkpoint, listed. Raises ``NotFound`` with the content of the location."""
    store = open_read_store(resolve(target, home))
    require_recorded(store, home)
    return open_checkpoint(store, limits)


def inspect_checkpoint(target: str, *, home: str | None = None, options: ReadOptions | None = None) -> CheckpointReport:
    with collector_off():
        report = read_checkpoint(open_target(target, home, options.limits if options else None), options)
    batch = options.batch if options else None
    if batch is not None and all(line.id != batch for line in report.batches):
        raise NotFound(
            "no-such-batch",
            "This batch is not kept in the checkpoint",
            where=report.location,
            expected=_kept(report),
            found=f"batch {batch}",
            hint=command("inspect", target),
        )
    return report


def _kept(report: CheckpointReport) -> str:
    ids = [line.id for line in report.batches]
    return f"a batch from {min(ids)} to {max(ids)}" if ids else "no batch, as none is kept"


def inspect_file(target: str, path: str, *, home: str | None = None, limits: ReadLimits | None = None) -> str:
    """A file as text; binary files are decoded. Raises ``NotFound`` or ``FormatError``."""
    store = limited(open_read_store(resolve(target, home)), limits)
    try:
        data = store.read(path.strip("/"))
    except FileTooLarge as error:
        raise FormatError(
            "too-large", "The file is too large to be shown", where=path,
            expected=f"at most {size_text(error.limit)}",
            found="more" if error.size is None else size_text(error.size),
            hint="raise the limit with --max-bytes",
        ) from error  # fmt: skip
    except PermissionError:
        # The file may exist: the error is shown as it is.
        raise
    except OSError as error:
        if not store.exists(""):
            require_recorded(store, home)
        raise NotFound(
            "no-such-file",
            "There is no such file in the checkpoint",
            where=store.location,
            expected="the path of a regular file below the checkpoint, such as offsets/0",
            found=path,
            hint=f"{command('inspect', target)} shows what the checkpoint has",
        ) from error
    try:
        return file_text(path, data, store.limits)
    except FormatError as error:
        error.where = error.where or path
        raise
