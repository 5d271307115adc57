"""What needs the ``deltalake`` library: reading a table's checkpoints, and restoring an earlier version."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from importlib.util import find_spec
from typing import Any
from urllib.parse import unquote

from slackwater.errors import EnvironmentMissing, Refused, SinkUnreadable
from slackwater.sinks.delta.log import NOTE, DataFile


def require_library() -> None:
    """Raises EnvironmentMissing unless ``deltalake`` is installed."""
    if find_spec("deltalake") is None:
        raise EnvironmentMissing(
            "extra-missing",
            "Reading and restoring a Delta table needs the deltalake library",
            hint="pip install 'slackwater[delta]'",
        )


def newest_batch(location: str, app: str) -> int:
    """The newest batch of an application that the table records, -1 for none."""
    version = _open(location).transaction_version(app)
    return -1 if version is None else int(version)


def live_files(location: str) -> Iterator[DataFile]:
    """All files of the newest version."""
    actions = _open(location).get_add_actions(flatten=True)
    for path, size in zip(actions.column("path"), actions.column("size_bytes"), strict=True):
        yield DataFile(unquote(path.as_py()), size.as_py(), None)


def table_id(location: str) -> str:
    """The id that the table was created with, which its readers log."""
    return str(_open(location).metadata().id)


def writer_version(location: str) -> int:
    """The protocol version that a writer of the table must support."""
    return int(_open(location).protocol().min_writer_version)


def restore(location: str, version: int, batch: tuple[str, int], note: Mapping[str, object]) -> None:
    """Commit the rows of ``version`` again, with the application's batch and a note, in one step.

    Raises Refused where the library cannot: files of that version were removed, or the table has a feature that the
    library does not support.
    """
    table = _open(location)
    from deltalake import CommitProperties, PostCommitHookProperties, Transaction  # noqa: PLC0415
    from deltalake.exceptions import DeltaError  # noqa: PLC0415

    try:
        table.restore(
            version,
            commit_properties=CommitProperties({NOTE: json.dumps(note)}, app_transactions=[Transaction(*batch)]),
            post_commithook_properties=PostCommitHookProperties(create_checkpoint=False, cleanup_expired_logs=False),
        )
    except (DeltaError, OSError) as error:
        raise Refused(
            "delta-restore",
            f"The Delta table cannot be restored to version {version}: {error}",
            where=location,
            hint="VACUUM removes the files of old versions after delta.deletedFileRetentionDuration; without them "
            "rebuild at the last written batch, which removes nothing",
        ) from error


def _open(location: str) -> Any:
    require_library()
    from deltalake import DeltaTable  # noqa: PLC0415 - heavy; most reads do without
    from deltalake.exceptions import DeltaError  # noqa: PLC0415

    try:
        return DeltaTable(location)
    except (DeltaError, OSError) as error:
        raise SinkUnreadable(
            "delta-unreadable",
            f"The Delta table cannot be read: {error}",
            where=location,
            hint="read it with Spark to see whether it is damaged or has a feature that deltalake does not support",
        ) from error
