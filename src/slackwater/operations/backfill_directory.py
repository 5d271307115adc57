"""The backfill directory, which replaces the stream's output: not shared, and empty."""

from __future__ import annotations

from slackwater.core.errors import Refused
from slackwater.core.records import StreamRecord
from slackwater.core.sink import BackfillDirectory
from slackwater.ledger.recording.places import checkpoints, home_place, inputs, outputs, overlap
from slackwater.ledger.workspace import Workspace
from slackwater.operations.plan.plan import Request
from slackwater.sinks.common.directory import absolute, directory
from slackwater.sinks.files.backfill_output import backfill_output, found_in, open_backfill_output

SHOWN = 3
ANOTHER = "give --into a directory that does not exist yet, outside of every output and of what streams read"


def absolute_path(path: str) -> str:
    """The absolute path or the URI. Raises PipelineError (``sink-path``)."""
    return absolute(directory(path, "--into /data/older"))


def backfill_directory(workspace: Workspace, stream: StreamRecord, request: Request) -> BackfillDirectory | None:
    """Raises Refused (``backfill-directory-...``) if it cannot be used."""
    if request.into is None:
        return None
    output = backfill_output(stream.sink, request.into)
    _check(workspace, output)
    return output


def _check(workspace: Workspace, output: BackfillDirectory) -> None:
    place = open_backfill_output(output).location
    ledger = workspace.ledger
    for taken in (home_place(workspace.home), *outputs(ledger), *checkpoints(ledger), *inputs(ledger)):
        if overlap(place, taken.place):
            raise Refused(
                "backfill-directory-shared",
                f"The backfill directory would be shared with {taken.what}",
                where=place,
                expected="a directory of its own",
                found=taken.place,
                hint=ANOTHER,
            )
    names = found_in(output)
    if names:
        more = f" and {len(names) - SHOWN} more" if len(names) > SHOWN else ""
        raise Refused(
            "backfill-directory-occupied",
            "There is something in the backfill directory already",
            where=place,
            expected="an empty directory, or none",
            found=", ".join(names[:SHOWN]) + more,
            hint=ANOTHER,
        )
