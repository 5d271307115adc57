"""What a plan says of a checkpoint at the path that the user's own code names: the new one has to end up there."""

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
"""Folders of the operation: the new checkpoint, and a copy of the old one, where the store has no directories."""


def is_of_objects(path: str) -> bool:
    """Whether the checkpoint is on a store that cannot exchange two directories: its location is a URI."""
    return not path.startswith("/")


def staging_of(path: str, operation: str) -> str:
    """Where the new checkpoint is built, and the old one is afterwards: next to ``path``, on the same file system."""
    place = PurePosixPath(path)
    return str(place.with_name(staging_path(place.name, operation)))


def held_of(path: str, operation: str) -> str:
    """Where one of the two is for a moment if the file system cannot exchange directories in one step."""
    place = PurePosixPath(path)
    return str(place.with_name(exchange_path(place.name, operation)))


def notes_of_adopted(path: str, operation: str) -> tuple[str, ...]:
    """Where the new checkpoint is built, and what to do by hand if the machine fails halfway."""
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
    """How an exchange by renames that was interrupted is finished, or taken back, without Slackwater."""
    staging, between = staging_of(path, operation), held_of(path, operation)
    return (
        f"if the machine fails while they change places and {path} does not exist: to go back, {_mv(between, path)}",
        f"to continue instead: {_mv(staging, path)} && {_mv(between, staging)}",
        f"if it exists, and {between} as well: {_mv(between, staging)}",
    )


def recovery_of_objects(location: str, folder: str) -> tuple[str, ...]:
    """How a replacement of files that was interrupted is taken back, or finished, without Slackwater."""
    back = f"to go back, make the files at {location} those of {folder}/{KEPT}, metadata last"
    return (f"if the machine fails while files are replaced: {back}; to continue instead, those of {folder}/{BUILT}",)


def _mv(source: str, target: str) -> str:
    return f"mv -T {quoted(source)} {quoted(target)}"
