"""The streams of an application: the name, the sink and the checkpoint of each query that it starts."""

from __future__ import annotations

import os
import re
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from slackwater.core.errors import PipelineError, Refused
from slackwater.core.records import STREAM_NAME, WATCHED
from slackwater.ledger.located import stream_with
from slackwater.runtime.application.writers import Start
from slackwater.runtime.code_reach import Reach, reach_of_file
from slackwater.runtime.pipeline import Pipeline, StreamDefinition, StreamFunction
from slackwater.sinks.common.registry import recognised
from slackwater.sinks.common.written import RecognisedSink
from slackwater.storage.open import check_no_secret

if TYPE_CHECKING:
    from collections.abc import Iterable

    from slackwater.ledger.ledger import Ledger


class ApplicationQueries(Pipeline):
    """The queries of an application, each a stream of the pipeline ``watched``."""

    def __init__(self, definitions: Iterable[StreamDefinition]) -> None:
        self.name = WATCHED
        self.connectors = ()
        self._streams = {one.name: one for one in definitions}
        self._audit_readers = {}


@dataclass(frozen=True, slots=True)
class ApplicationCode:
    """Returns the DataFrame of a query; its code is all of the application's file and what that reaches."""

    file: Path
    build: StreamFunction

    def __call__(self, spark: object) -> object:
        """Call ``build``."""
        return self.build(spark)

    def reach(self) -> Reach:
        """What the file reaches."""
        return reach_of_file(self.file)


def definition_of(start: Start, code: ApplicationCode) -> StreamDefinition | None:
    """The stream that this start is of, ``None`` of a query whose checkpoint Spark would delete.

    Raises PipelineError where its name cannot be that of a folder.
    """
    checkpoint = start.checkpoint
    if checkpoint is None:
        return None
    check_no_secret(checkpoint)
    identity = recognised(start.calls)
    given = start.given
    name = given.name or _name_of(identity.get("path") or identity.get("name") or identity.get("topic") or checkpoint)
    if STREAM_NAME.fullmatch(name) is None:
        raise PipelineError(
            "stream-name",
            "The name of this query cannot be that of a stream, which is the name of a folder",
            expected="letters, digits, '.', '_' and '-', beginning with a letter or digit, at most 100",
            found=repr(name),
            hint="give the query such a name with .queryName(...)",
        )
    sink = RecognisedSink(start, identity)
    location = local if (local := _local(checkpoint)) else checkpoint
    return StreamDefinition(WATCHED, name, code, sink, given.mode, given.trigger, given.partition_by, location)


def as_known(definition: StreamDefinition, ledger: Ledger | None) -> StreamDefinition:
    """The stream under the name by which its checkpoint is known: it was adopted, or recorded by its query's id.

    Raises Refused (``query-checkpoint``) where a stream of this name has another checkpoint, or a stream of a pipeline
    file has this one.
    """
    if ledger is None or definition.checkpoint is None:
        return definition
    known = stream_with(ledger, definition.name, definition.checkpoint)
    if known is not None:
        return replace(definition, name=known.name)
    if definition.full_name not in ledger.stream_names():
        return definition
    other = ledger.stream(definition.full_name)
    raise Refused(
        "query-checkpoint",
        f"Stream {definition.full_name} is known with another checkpoint: two queries have one name, or one was moved",
        expected=ledger.generation(other.full_name, other.current_generation).location,
        found=definition.checkpoint,
        hint="give the query another name with .queryName(...), or run the application with a home of its own: --home",
    )


def _name_of(output: str) -> str:
    """The last part of a path, or the name of a table, as a stream can be named."""
    last = output.rstrip("/").rpartition("/")[2]
    return re.sub(r"[^A-Za-z0-9._-]", "_", last).lstrip("._-")[:100]


def _local(checkpoint: str) -> str | None:
    """The absolute path of a checkpoint on a local disk."""
    if checkpoint.startswith("file:"):
        return "/" + checkpoint.removeprefix("file:").lstrip("/")
    return os.path.normpath(Path(checkpoint).absolute()) if "://" not in checkpoint else None
