"""The schema or the metadata of a stateful operator is missing.

What it finds: an operator has state, and no schema file, or no operator metadata though Spark 4.0 or later wrote it; or
the metadata cannot be parsed. A tool that leaves out names with an underscore copies a checkpoint without both.
Why it matters: Spark compares the query with these files at each start. Without them it compares nothing: it writes
the schema of whatever query is started, and reads the kept state by it.
How to confirm: `slackwater inspect STREAM --operators` shows the operators, and which of them are inferred.
What to do: restore the file from a copy of the checkpoint; or compare the code with `slackwater check FILE`.
Is the remedy safe: yes; both change nothing but the missing file. To set
`spark.sql.streaming.stateStore.stateSchemaCheck` to false has the effect that this finding is about.
References: SPARK-27237
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from slackwater.core.commands import check_command
from slackwater.core.facts import CheckpointSeen, Facts
from slackwater.core.finding import Severity
from slackwater.core.state import StoreVersions
from slackwater.diagnose.checks.common.check import Check
from slackwater.diagnose.checks.common.settings import ENCODING, newest_committed, settings_of

_STORE_WITHOUT_FOLDER = "default"


class Disabled(NamedTuple):
    """An operator, the file, what that is, and what was found instead."""

    operator: int
    path: str
    what: str
    found: str


def find(facts: Facts) -> Iterator[Disabled]:
    """The operators with state of committed batches that lack a schema or metadata."""
    checkpoint = facts.checkpoint
    entry = newest_committed(checkpoint)
    if entry is None:
        return
    # Spark 3.5 writes no metadata of operators; from 4.0 on it does, and pins the encoding.
    with_metadata = ENCODING in settings_of(entry)
    for operator in sorted(checkpoint.inventory.stores):
        if not any(held.loadable for _, _, held in _stores(checkpoint, operator)):
            continue
        yield from _schemas(checkpoint, operator)
        if with_metadata:
            yield from _metadata(checkpoint, operator)


def _stores(checkpoint: CheckpointSeen, operator: int) -> Iterator[tuple[int, str, StoreVersions]]:
    for number, partition, name, held in checkpoint.inventory.each():
        if number == operator:
            yield partition, name, held


def _schemas(checkpoint: CheckpointSeen, operator: int) -> Iterator[Disabled]:
    """Version 3 of the schema has a folder for each store; older ones have a file in partition 0."""
    if any(path.startswith(f"state/{operator}/_stateSchema/") for path in checkpoint.folders):
        return
    for name in checkpoint.inventory.names(operator):
        store = "" if name == _STORE_WITHOUT_FOLDER else f"/{name}"
        path = f"state/{operator}/0{store}/_metadata/schema"
        if not checkpoint.has(path):
            yield Disabled(operator, path, "schema", "nothing")


def _metadata(checkpoint: CheckpointSeen, operator: int) -> Iterator[Disabled]:
    folder = f"state/{operator}/_metadata"
    damage = next(checkpoint.damage_below(folder), None)
    if damage is not None:
        yield Disabled(operator, damage.path, "metadata", damage.found)
    elif not checkpoint.has(f"{folder}/metadata") and not checkpoint.folders.get(f"{folder}/v2"):
        yield Disabled(operator, f"{folder}/metadata", "metadata", "nothing")


CHECK = Check(
    "SW-STATE-006",
    Severity.WARNING,
    find=find,
    doc=__doc__,
    text="the {it.what} of operator {it.operator} is missing or malformed: Spark would accept any query for its state",
    risk="wrong",
    where="{facts.checkpoint.location}/{it.path}",
    expected="the {it.what} of the operator, as Spark wrote it",
    found="{it.found}",
    next=lambda facts, _: check_command(facts.snapshot.stream),
    advice="restore {it.path} from a copy of the checkpoint, and change the query only together with its state",
    also=("MOVE-07",),
)
