"""The path at which the user's code names a checkpoint, and its meaning for a plan. Other streams have none."""

import os
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from slackwater.core.commands import command
from slackwater.core.errors import Refused
from slackwater.core.escaping import quoted
from slackwater.core.records import STREAM_NAME, StreamRecord
from slackwater.core.sink import exchange_path, staging_path
from slackwater.ledger.home import Home
from slackwater.ledger.ledger import Ledger
from slackwater.ledger.recording.places import generation_location
from slackwater.operations.action import PreconditionName
from slackwater.storage.open import Location, local_path_of

COPIES = "copies.json"
"""Hashes of both checkpoints, if an operation replaces objects, once both are complete."""
KEPT = "kept"
"""The old checkpoint in the folder of the operation, on stores without directories."""
_SETTINGS_UNKNOWN = (
    "the settings of the query's runs are not recorded: batches are run again with the settings in the "
    "checkpoint and otherwise with this session's; set others, such as the time zone, with --conf"
)
_UNTIL = (
    "until the plan is wholly applied or undone the program must not be started, also after an apply that was killed: "
)
_OUTPUT_FIRST = (
    f"{_UNTIL}its output has batches that its checkpoint has not, and it would skip its own with the same numbers"
)
_RISKS: Mapping[str, str] = {
    "cut-sink": f"{_UNTIL}rows that were cut are missing from its output, and its checkpoint counts their batches as "
    "written",
    "run-backfill": _OUTPUT_FIRST,
    "swap-output": _OUTPUT_FIRST,
}
"""The risk of an action if the program is started before the end of the plan."""
_NEEDS: Mapping[str, tuple[PreconditionName, ...]] = {
    "cut-sink": ("planned", "committed", "writer"),
    "run-backfill": ("writer",),
    "swap-output": ("planned", "committed", "writer"),
    "switch-generation": ("planned", "committed", "writer"),
}
"""More preconditions of an action: no lease keeps the program from being started."""


class CheckpointPath(NamedTuple):
    """The real path or URI that the user's code names, of a query that Slackwater only records: it has no lease, and a
    new checkpoint must end up there. ``None``: each generation has its own directory.
    """

    path: str | None

    def needs(self, kind: str) -> tuple[PreconditionName, ...]:
        """More preconditions of a kind of action: no lease keeps the program from being started."""
        return () if self.path is None else _NEEDS.get(kind, ())

    def risks(self, kinds: Iterable[str], *, settings_known: bool) -> tuple[str, ...]:
        if self.path is None:
            return ()
        risks = dict.fromkeys(_RISKS[kind] for kind in kinds if kind in _RISKS)
        return tuple(risks) if settings_known else (_SETTINGS_UNKNOWN, *risks)

    def notes(self, operation: str) -> tuple[str, ...]:
        """How the new checkpoint gets there."""
        named = f"the query's own code uses the checkpoint {self.path}: the new one is built in"
        if self.path is None:
            return ()
        if local_path_of(self.path) is None:
            how = (
                f"{named} the folder of the operation, "
                "and a copy of the old one is made there; then the files that differ are replaced"
            )
            return (how, "until all of them are, its metadata is no JSON, so that no query can start on it")
        real = Path(self.path)
        staging = real.with_name(staging_path(real.name, operation))
        return (f"{named} {staging}, then they change places", *recovery(real, operation))


def checkpoint_path(ledger: Ledger, stream: StreamRecord) -> CheckpointPath:
    """Raises Refused if no other directory can replace that of the user's code."""
    if not stream.is_watched:
        return CheckpointPath(None)
    if STREAM_NAME.fullmatch(stream.name) is None:
        # The name becomes a folder of the home.
        raise Refused(
            "query-name",
            "An operation on this query cannot be recorded: its name cannot be used for a folder",
            where=f"stream {stream.full_name}",
            expected="letters, digits, '.', '_' and '-', beginning with a letter or digit, at most 100",
            found=repr(stream.name),
            hint=f"forget the stream: {command('release', stream.full_name)}; then give the query such a name with "
            ".queryName(...), and start it once more with slackwater.watch",
        )
    location = ledger.generation(stream.full_name, stream.current_generation).location
    local = local_path_of(location)
    if local is None:
        return CheckpointPath(location.rstrip("/"))
    real = Path(local).resolve()
    problem = None
    # rename(2) fails on a mount point (EBUSY).
    if real.is_mount():
        problem = "a mount point"
    elif not os.access(next(one for one in (real.parent, *real.parent.parents) if one.exists()), os.W_OK):
        problem = f"no permission to write to {real.parent}"
    # The new checkpoint belongs to this user; a query of another user could not write to it.
    elif real.exists() and real.stat().st_uid != os.geteuid():
        problem = f"a directory of user {real.stat().st_uid}; this is user {os.geteuid()}"
    if problem is not None:
        raise Refused(
            "checkpoint-fixed",
            f"The directory of the checkpoint of stream {stream.full_name} cannot be exchanged with a new one",
            where=str(real),
            expected="a directory of this user that can be renamed, in a parent folder that can be written to",
            found=problem,
            hint="mount it one level higher, or repeat the command as the user who runs the query",
        )
    return CheckpointPath(str(real))


def recovery(real: Path, operation: str) -> tuple[str, ...]:
    """How to finish or undo an interrupted exchange by renames without Slackwater."""
    between = real.with_name(exchange_path(real.name, operation))
    staging = real.with_name(staging_path(real.name, operation))
    back, forth, rest = (
        f"mv -T {quoted(str(source))} {quoted(str(target))}"
        for source, target in ((between, real), (staging, real), (between, staging))
    )
    return (
        f"if the machine fails while they change places and {real} does not exist: to go back, {back}",
        f"to continue instead: {forth} && {rest}",
        f"if both it and {between} exist: {rest}",
    )


def kept_places(
    home: Home, ledger: Ledger, stream: StreamRecord, operations: Iterable[str]
) -> tuple[Mapping[int, Location], Sequence[Location]]:
    """The places of generations: the recorded places by number, and all places."""
    records = ledger.generations(stream.full_name)
    if not stream.is_watched:
        made = {one.number: generation_location(home, ledger, stream, one.number) for one in records}
        return made, [*made.values()]
    path = local_path_of(ledger.generation(stream.full_name, stream.current_generation).location)
    if path is None:
        owned = [home.operation(stream.pipeline, stream.name, one) / KEPT for one in operations]
    else:
        # Next to the checkpoint that the user's code names: nothing there is removed but what an operation owns.
        real = Path(path).resolve()
        owned = [Location(real.with_name(staging_path(real.name, one))) for one in operations]
    # Those that only ran the batch of a backfill are in the home.
    owned += [home.checkpoint(stream.pipeline, stream.name, one.number) for one in records]
    known = {one.location: one.number for one in records}
    return {known[str(one)]: one for one in owned if str(one) in known}, owned
