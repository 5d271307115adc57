"""Where a side output may be: a directory of its own, in which nothing is yet."""

from __future__ import annotations

import re
from collections.abc import Iterator

from slackwater.app.workspace import Workspace
from slackwater.errors import Refused
from slackwater.model.records import StreamRecord
from slackwater.model.sink import SideOutput
from slackwater.plan.batch_history import BatchHistory
from slackwater.recording.history import history_of
from slackwater.sinks.directory import absolute, directory
from slackwater.sinks.place import Place
from slackwater.sinks.registry import open_each
from slackwater.sinks.side_output import found_in, open_side_output

SHOWN = 3
ANOTHER = "give --into a directory that does not exist yet, outside of every output and of what streams read"
_PARTITIONS = re.compile(r"(/[^/=]+=[^/]*)+$")


def absolute_path(path: str) -> str:
    """The path as a plan has it: absolute, or the URI. Raises PipelineError (``sink-path``) for what is neither."""
    return absolute(directory(path, "--into /data/older"))


def check_place(workspace: Workspace, output: SideOutput) -> None:
    """Raises Refused for a directory that is in use, or that is, has in it or is in the output of a stream."""
    place = open_side_output(output).location
    for what, taken in _taken(workspace):
        if _is_within(place, taken) or _is_within(taken, place):
            raise Refused(
                "side-output-shared",
                f"The side output would share its directory with {what}",
                where=place,
                expected="a directory of its own",
                found=taken,
                hint=ANOTHER,
            )
    names = found_in(output)
    if names:
        more = f" and {len(names) - SHOWN} more" if len(names) > SHOWN else ""
        raise Refused(
            "side-output-occupied",
            "There is something in the directory of the side output already",
            where=place,
            expected="an empty directory, or none",
            found=", ".join(names[:SHOWN]) + more,
            hint=ANOTHER,
        )


def _taken(workspace: Workspace) -> Iterator[tuple[str, str]]:
    """The places that are used, each with what it is."""
    yield "the home", Place(str(workspace.home.path)).location
    for stream in workspace.ledger.streams():
        for output in open_each(stream.sink):
            if output.location is not None:
                yield f"the output of stream {stream.full_name}", output.location
        for folder in _read_folders(workspace, stream):
            yield f"files that stream {stream.full_name} reads", folder


def _read_folders(workspace: Workspace, stream: StreamRecord) -> set[str]:
    """The folders of the files that batches have read, without those of partitions: more than one may be listed."""
    if not workspace.ledger.generations(stream.full_name):
        # Registered, and killed before its first checkpoint was made.
        return set()
    batches = BatchHistory(history_of(workspace.ledger, stream))
    spans = batches.spans(0, batches.batches[-1]) if batches.batches else []
    folders = {file.path.rpartition("/")[0] for kind, span in spans for file in kind.files(span)}
    return {Place(_PARTITIONS.sub("", folder)).location for folder in folders}


def _is_within(place: str, other: str) -> bool:
    return f"{place.rstrip('/')}/".startswith(f"{other.rstrip('/')}/")
