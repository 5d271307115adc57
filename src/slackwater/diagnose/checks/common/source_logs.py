"""The logs of file sources, by the numbers of their entries."""

from __future__ import annotations

from collections.abc import Sequence

from slackwater.core.facts import Facts, SourceFacts
from slackwater.sources import kind_of


def last_entry(offset: str | None) -> int | None:
    """The newest entry of the source's log that an offset covers; ``None`` for a source that lists no files."""
    kind = kind_of(offset, {})
    return kind.cut_entry(offset) if kind.reads_files and offset is not None else None


def range_of_newest(facts: Facts, source: SourceFacts) -> range:
    """The entries that the newest batch in ``offsets/`` reads: Spark plans that batch again at each start."""
    before = facts.checkpoint.offset_before
    starts = {one.source: one.text for one in before.offsets} if before is not None else {}
    first, last = last_entry(starts.get(source.name)), last_entry(source.end)
    if last is None:
        return range(0)
    return range((-1 if first is None else first) + 1, last + 1)


def entries_text(runs: Sequence[range]) -> str:
    """Runs of entries for people: "entry 5", "entries 5 to 7", "entries 5, 9 to 11"."""
    shown = ", ".join(str(run[0]) if run[0] == run[-1] else f"{run[0]} to {run[-1]}" for run in runs)
    return f"entry {shown}" if shown.isdigit() else f"entries {shown}"
