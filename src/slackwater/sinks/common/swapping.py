"""What all swaps share: the record that a swap makes durable before it changes anything, and the refusals."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from slackwater.core.damage import Damage
from slackwater.core.errors import Refused
from slackwater.core.sink import Owner, Swap, newest_batch
from slackwater.core.strict import STRICT
from slackwater.sinks.common.backup import RecordFile, foreign, is_at
from slackwater.storage.protocols import ReadStore, WriteStore

_AGAIN = "nothing was changed; undo the operation and make a new plan"


@dataclass(frozen=True, slots=True)
class Record:
    """A swap that is about to start. ``version`` is that of an output that has versions, else -1.

    Of an Iceberg table it is the snapshot that is put in place, of a table of PostgreSQL the newest batch. ``state``
    names the rows that are put in place, where the output has no versions. ``left`` are files of a staged directory
    that no batch has written, ``None`` for another output.
    """

    __pydantic_config__: ClassVar = STRICT

    output: str
    operation: str
    stream_id: str
    replaced: int
    version: int = -1
    state: str = ""
    left: tuple[str, ...] | None = None


RECORD = RecordFile("swap.json", "slackwater.swap/1", Record)


def start(backup: WriteStore, location: str, swap: Swap, version: int = -1) -> Record:
    """The record of the swap, made durable now unless it was before. Raises Refused (``backup-foreign``)."""
    return started(backup, location, swap) or record(backup, location, swap, version)


def record(
    backup: WriteStore,
    location: str,
    swap: Swap,
    version: int = -1,
    *,
    state: str = "",
    left: tuple[str, ...] | None = None,
) -> Record:
    """The record of the swap, made durable now; it replaces the one that an attempt before has made."""
    made = Record(location, swap.operation, swap.stream_id, swap.replaced, version, state, left)
    RECORD.write(backup, made)
    return made


def started(backup: ReadStore, location: str, swap: Swap) -> Record | None:
    """The record of a swap that was started, ``None`` if it was not. Raises Refused (``backup-foreign``)."""
    known = RECORD.read(backup)
    expected = (swap.operation, swap.stream_id, swap.replaced)
    same = known is None or (known.operation, known.stream_id, known.replaced) == expected
    if known is None or (same and is_at(known.output, location)):
        return known
    found = f"operation {known.operation} of {known.output}"
    raise foreign(location, f"operation {swap.operation} of {location}", found)


def check_parties(location: str, swap: Swap, newest: int, real: Owner | None, staged: Owner | None) -> None:
    """Raises Refused unless both outputs are the stream's and the real one has the batches that the swap expects."""
    for owner in (real, staged):
        if owner is None or owner.stream_id != swap.stream_id:
            raise Refused(
                "swap-foreign",
                "The output and its staged output are not both of this stream",
                where=location,
                expected=f"the owner {swap.stream_id} of both",
                found="no owner" if owner is None else f"stream {owner.stream} of home {owner.home}",
                hint=_AGAIN,
            )
    if newest != swap.replaced:
        raise Refused(
            "swap-moved",
            "Other batches were written to the output or cut since the swap was planned",
            where=location,
            expected=f"{newest_batch(swap.replaced)} as the newest",
            found=newest_batch(newest),
            hint=_AGAIN,
        )


def owners_of_program(swap: Swap, real: Owner | None) -> tuple[Owner, Owner]:
    """The owners of an output that a user's program fills, and of its staged output, for ``check_parties``.

    The program claims none of them. A stream of Slackwater that owns the real one is another one than the program's.
    """
    program = Owner(swap.stream_id, "", "")
    return real or program, program


def check_unmoved(location: str, swap: Swap, version: str) -> None:
    """Raises Refused (``swap-moved``) if others have changed the output, so that its state is ``version`` now."""
    if swap.version not in {None, version}:
        raise Refused(
            "swap-moved",
            "Others have changed the output since the swap was planned: their rows would go with it",
            where=location,
            expected=swap.version,
            found=version,
            hint=_AGAIN,
        )


def check_whole(location: str, damage: Sequence[Damage]) -> None:
    """Raises Refused (``staged-damaged``) if the staged output at ``location`` has damage."""
    if damage:
        raise Refused(
            "staged-damaged",
            "The staged output is damaged",
            where=f"{location}/{damage[0].path}",
            expected=damage[0].expected,
            found=damage[0].found,
            hint=_AGAIN,
        )


def absent(location: str, operation: str, found: str) -> Refused:
    """The refusal where the staged output is not there, or not ready."""
    return Refused(
        "staged-absent",
        "The operation has no staged output that is ready",
        where=location,
        expected=f"the staged output of operation {operation}",
        found=found,
        hint=_AGAIN,
    )


def occupied(location: str, operation: str, found: str) -> Refused:
    """The refusal where something else has the name of the staged output."""
    return Refused(
        "staged-foreign",
        "Something that is not marked as the operation's own is in the place of its staged output",
        where=location,
        expected=f"the staged output of operation {operation}, or nothing",
        found=found,
        hint="move it away and run the command again; nothing was changed",
    )


def incomplete(location: str, expected: str, found: str) -> Refused:
    """The refusal to stage what the real output does not have."""
    return Refused(
        "stage-incomplete",
        "The output does not have all that its staged output must start with",
        where=location,
        expected=expected,
        found=found,
        hint="replay from an older batch, or from batch 0, which needs nothing of the output",
    )


def unsupported(location: str, expected: str, found: str) -> Refused:
    """The refusal of an output that cannot be swapped as it is."""
    return Refused(
        "swap-unsupported",
        "This output cannot be replaced by a staged one",
        where=location,
        expected=expected,
        found=found,
        hint="change the output as expected, or make a plan that cuts it instead",
    )
