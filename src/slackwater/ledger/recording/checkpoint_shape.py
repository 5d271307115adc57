"""Reads the shape of a query from its checkpoint."""

from __future__ import annotations

from slackwater.checkpoint.inventory import read_inventory
from slackwater.checkpoint.layout import STATE
from slackwater.checkpoint.listing import limited, read_listing
from slackwater.checkpoint.logs import logs_of_listing
from slackwater.checkpoint.operators import OperatorReader
from slackwater.checkpoint.sources import SourceReader
from slackwater.core.checkpoint import CheckpointShape, SourceEvidence, SourceLine
from slackwater.core.records import GenerationRecord
from slackwater.core.state import Operator
from slackwater.ledger.recording.snapshot import profile_of
from slackwater.sources import kind_of
from slackwater.storage.protocols import ReadStore


def shape_of(store: ReadStore, generation: GenerationRecord) -> CheckpointShape:
    store = limited(store)
    listing = read_listing(store)
    entry = logs_of_listing(store, listing).newest_offset
    found = SourceReader(store, listing, with_files=True).sources(entry)
    # A source that the entry does not have, but that has a folder, is the past of another generation.
    ends = {one.source: one.text for one in entry.offsets} if entry is not None else {}
    sources = [_source(line, ends.get(line.name)) for line in found[: len(ends)]]
    operators: tuple[Operator, ...] = ()
    if STATE in listing.folders:
        operators = OperatorReader(store, listing, read_inventory(listing)).operators()
    return CheckpointShape(tuple(sources), tuple(map(_operator, operators)), profile_of(generation))


def _source(line: SourceLine, end: str | None) -> SourceEvidence:
    files = line.log.entries if line.log is not None else ()
    folders = tuple(sorted({file.path.rpartition("/")[0] for file in files}))
    return SourceEvidence(line.kind, folders, kind_of(end, {}).location(end))


def _operator(operator: Operator) -> tuple[str, tuple[str, ...]]:
    families = operator.stores[0].families if operator.stores else ()
    return operator.name, families[0].key.names if families else ()
