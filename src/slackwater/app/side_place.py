"""Where a side output may be: a directory of its own, in which nothing is yet."""

from __future__ import annotations

from collections.abc import Iterator

from slackwater.app.workspace import Workspace
from slackwater.errors import Refused
from slackwater.model.sink import SideOutput
from slackwater.sinks.directory import absolute, directory
from slackwater.sinks.place import Place
from slackwater.sinks.registry import open_each
from slackwater.sinks.side_output import found_in, open_side_output

SHOWN = 3
ANOTHER = "give --into a directory that does not exist yet, outside of every output"


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


def _is_within(place: str, other: str) -> bool:
    return f"{place.rstrip('/')}/".startswith(f"{other.rstrip('/')}/")
