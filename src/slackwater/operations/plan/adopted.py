from __future__ import annotations

from pathlib import PurePosixPath

from slackwater.core.escaping import quoted
from slackwater.core.staging_names import exchange_path, staging_path

SETTINGS_UNKNOWN = (
    "the settings of the query's runs are not recorded: batches are run again under those that the checkpoint pins, "
    "and else under those of this session; give others, such as the time zone, with --conf"
)

OUTPUT_FIRST = (
    "until the plan is wholly applied or undone the program must not be started, also after an apply that was killed: "
    "its output has batches that its checkpoint has not, and it would skip its own with the same numbers"
)

BUILT, KEPT = "checkpoint", "kept"
"""Folders of the operation, on stores without directories."""


def is_of_objects(path: str) -> bool:
    """Whether the store cannot exchange directories: the location is a URI."""
    return not path.startswith("/")


def staging_of(path: str, operation: str) -> str:
    """A hidden directory on the same file system as ``path``."""
    place = PurePosixPath(path)
    return str(place.with_name(staging_path(place.name, operation)))


def held_of(path: str, operation: str) -> str:
    """A temporary path if the file system cannot exchange directories atomically."""
    place = PurePosixPath(path)
    return str(place.with_name(exchange_path(place.name, operation)))


def notes_of_adopted(path: str, operation: str) -> tuple[str, ...]:
    if is_of_objects(path):
        how = (
            f"the query's own code names the checkpoint {path}: the new one is built in the folder of the operation, "
            "and a copy of the old one is made there; then the files that differ are replaced"
        )
        return (how, "until all of them are, its metadata is no JSON, so that no query can start on it")
    staging = staging_of(path, operation)
    return (
        f"the query's own code names the checkpoint {path}: the new one is built in {staging}, then they change places",
        *recovery(path, operation),
    )


def recovery(path: str, operation: str) -> tuple[str, ...]:
    """How to finish or undo an interrupted exchange by renames without Slackwater."""
    staging, between = staging_of(path, operation), held_of(path, operation)
    return (
        f"if the machine fails while they change places and {path} does not exist: to go back, {_mv(between, path)}",
        f"to continue instead: {_mv(staging, path)} && {_mv(between, staging)}",
        f"if it exists, and {between} as well: {_mv(between, staging)}",
    )


def recovery_of_objects(location: str, folder: str) -> tuple[str, ...]:
    """How to undo or finish an interrupted replacement of files without Slackwater."""
    back = f"to go back, make the files at {location} those of {folder}/{KEPT}, metadata last"
    return (f"if the machine fails while files are replaced: {back}; to continue instead, those of {folder}/{BUILT}",)


def _mv(source: str, target: str) -> str:
    return f"mv -T {quoted(source)} {quoted(target)}"
