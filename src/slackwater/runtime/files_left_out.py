"""Before the first start of a new checkpoint: refuses files that were read before and would now be left out silently.

Only the first batch after an operation keeps its recorded range. What later batches had read, the query plans again, by
a new listing of its sources: a file source leaves out files that are too old by its options, and says so nowhere.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from slackwater.core.checkpoint_logs import SourceFile
from slackwater.core.errors import Refused
from slackwater.core.records import GenerationRecord
from slackwater.core.units import counted
from slackwater.ledger.ledger import Ledger
from slackwater.ledger.lineage import SOURCES
from slackwater.ledger.recording.source_availability import StoreAvailability
from slackwater.runtime.logical_plan import analysed_plan, source_logs, streaming_sources
from slackwater.runtime.positions import spark_source
from slackwater.sources import kind_described
from slackwater.sources.common.contract import LeftOut
from slackwater.sources.common.source import Source, encoded

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


def check_left_out(ledger: Ledger, generation: GenerationRecord, planned: int, frame: DataFrame) -> None:
    """Raises Refused (``source-files-too-old``) where a source would leave out what an older generation has read.

    ``planned`` is the newest batch in the checkpoint, whose logs the ledger has. Once the generation has planned a
    batch of its own there is nothing to check.
    """
    based_at = -1 if generation.based_at is None else generation.based_at
    older = [one.number for one in ledger.generations(generation.stream) if one.number < generation.number]
    if not older or planned > based_at + 1:
        return
    plan = analysed_plan(frame)
    for number, (log, relation) in enumerate(zip(source_logs(plan), streaming_sources(plan), strict=True)):
        source = spark_source(frame, str(number), relation)
        kind = kind_described(source.description)
        if not kind.reads_files:
            continue
        read = _listed(ledger, generation.stream, kind, log, generation.number)
        # Generations inherit from each other, and each file is asked for once.
        again = {file.path: file for one in older for file in _listed(ledger, generation.stream, kind, log, one)}
        found = kind.live().left_out(source, read, list(again.values()), StoreAvailability())
        if found is not None:
            raise _refusal(generation.stream, source.where, found)


def _listed(ledger: Ledger, stream: str, kind: Source, log: str, generation: int) -> list[SourceFile]:
    """All files that the own log of a source lists in a generation and in what that inherited."""
    lines = ledger.lines(stream, SOURCES + log, generation=generation).values()
    return [file for line in lines for file in kind.listed(encoded(line))]


def _refusal(stream: str, source: str, found: LeftOut) -> Refused:
    return Refused(
        "source-files-too-old",
        f"Stream {stream} has to read {counted(found.files, 'file')} again, which {source} would leave out silently",
        where=found.path,
        expected=f"at most {found.limit} older than the newest file that counts as read, by the option {found.option}",
        found=f"{found.found} older",
        hint=f'read them: set .option("{found.option}", "{found.wanted}") on the source; or move them out of its '
        "directory, and their rows are left out; then run again",
    )
