"""The directories that a home uses: its own, its streams' outputs, checkpoints and inputs.

Outputs in a shared directory are read as input, or removed together.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from fnmatch import fnmatchcase

from slackwater.core.records import StreamRecord
from slackwater.ledger.home import Home
from slackwater.ledger.ledger import Ledger
from slackwater.ledger.recording.batch_history import BatchHistory
from slackwater.ledger.recording.history import history_of
from slackwater.sinks.common.directory import OutputPlace
from slackwater.sinks.common.registry import open_each
from slackwater.storage.open import Location, is_same_store

_PARTITIONS = re.compile(r"(/[^/=]+=[^/]*)+$")
_GLOB = re.compile(r"[{}\[\]*?\\]")
_ALTERNATIVES = re.compile(r"\{[^/]*\}")


@dataclass(frozen=True, slots=True)
class TakenPlace:
    """A directory, symlinks resolved; ``stream`` owns the output, checkpoint or input."""

    what: str
    place: str
    stream: str | None = None


def home_place(home: Home) -> TakenPlace:
    return TakenPlace("the home", home.resolved)


def generation_location(home: Home, ledger: Ledger, stream: StreamRecord, number: int) -> Location:
    """The location of a generation: on the checkpoint's store, which may differ from the home's."""
    first = next((Location(one.location) for one in ledger.generations(stream.full_name)), None)
    if first is None or is_same_store(first, home.location):
        return home.checkpoint(stream.pipeline, stream.name, number)
    return Location(f"{first}.{number:04d}")


def outputs(ledger: Ledger) -> Iterator[TakenPlace]:
    for stream in ledger.streams():
        for output in open_each(stream.sink):
            if output.location is not None:
                yield TakenPlace(f"the output of stream {stream.full_name}", output.location, stream.full_name)


def checkpoints(ledger: Ledger) -> Iterator[TakenPlace]:
    for stream in ledger.streams():
        for generation in ledger.generations(stream.full_name):
            place = OutputPlace(generation.location).location
            yield TakenPlace(f"a checkpoint of stream {stream.full_name}", place, stream.full_name)


def inputs(ledger: Ledger) -> Iterator[TakenPlace]:
    for stream in ledger.streams():
        if not ledger.generations(stream.full_name):
            # Registered, and killed before its first checkpoint was made.
            continue
        batches = BatchHistory(history_of(ledger, stream))
        spans = batches.spans(0, batches.batches[-1]) if batches.batches else []
        folders = {file.path.rpartition("/")[0] for kind, span in spans for file in kind.files(span)}
        for place in {OutputPlace(_PARTITIONS.sub("", folder)).location for folder in folders}:
            yield TakenPlace(f"files that stream {stream.full_name} reads", place, stream.full_name)


def is_within(place: str, other: str) -> bool:
    return f"{place.rstrip('/')}/".startswith(f"{other.rstrip('/')}/")


def overlap(place: str, other: str) -> bool:
    return is_within(place, other) or is_within(other, place)


def reads_within(path: str, output: str) -> bool:
    """Return whether a source reads within an output, even if it would only list it. A pattern counts if it matches the
    output, a parent folder, or only files in it.
    """
    found = _GLOB.search(path)
    if found is None:
        return overlap(OutputPlace(path).location, output)
    fixed = path[: found.start()].rpartition("/")[0] or "/"
    # ``fnmatch`` has no alternatives such as Hadoop's ``{a,b}``: a ``*`` matches more, and at most refuses too much.
    base, pattern = OutputPlace(fixed).location.rstrip("/"), _ALTERNATIVES.sub("*", path[len(fixed) :].lstrip("/"))
    if is_within(base, output):
        return True
    if not is_within(output, base):
        return False
    parts, wanted = output[len(base) + 1 :].split("/"), pattern.rstrip("/").split("/")
    return len(parts) >= len(wanted) and all(map(fnmatchcase, parts, wanted))
