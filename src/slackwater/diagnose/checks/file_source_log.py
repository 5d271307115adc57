"""A file source's log of the files that it has read."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from slackwater.core.checkpoint import holes
from slackwater.core.facts import Facts, Severity, SourceFacts
from slackwater.core.units import counted
from slackwater.diagnose.checks.common.check import Check, Found, rebuild, strays_in_sources
from slackwater.sources import kind_of


def last_entry(offset: str | None) -> int | None:
    kind = kind_of(offset, {})
    return kind.cut_entry(offset) if kind.reads_files and offset is not None else None


def range_of_newest(facts: Facts, source: SourceFacts) -> range:
    """Entries of the newest batch in ``offsets/``: Spark plans it again at each start."""
    before = facts.checkpoint.offset_before
    starts = {one.source: one.text for one in before.offsets} if before is not None else {}
    first, last = last_entry(starts.get(source.name)), last_entry(source.end)
    if last is None:
        return range(0)
    return range((-1 if first is None else first) + 1, last + 1)


def entries_text(runs: Sequence[range]) -> str:
    """ "entry 5", "entries 5 to 7", "entries 5, 9 to 11"."""
    shown = ", ".join(str(run[0]) if run[0] == run[-1] else f"{run[0]} to {run[-1]}" for run in runs)
    return f"entry {shown}" if shown.isdigit() else f"entries {shown}"


@Check[Facts]("SW-FSRC-013", Severity.WARNING, risk="wrong", goal="rebuild", certainty="likely")
def entries_differ(facts: Facts) -> Iterator[Found]:
    """Two entries of a file source's log list different files for the same number.

    Condition: an older entry of `sources/N` and the newest compacted entry list different files or times.
    Compaction copies every line, so an entry was edited or copied.
    Effect: Spark uses the compacted entry: a file missing there is read twice, a file wrongly listed never.
    Only a rollback reads the older entry.
    How to confirm: compare the lines of the two files that have the same `batchId`.
    Remedy: restore the wrong entry from a copy of the checkpoint; the older entry shows the files as read.
    Safety: yes; the comparison changes nothing. Keep a copy of the replaced entry.
    References: docs/format.md
    """
    for source in facts.sources:
        if source.log is not None and source.log.differing:
            path = source.log.differing[0]
            newest = f"{path.rpartition('/')[0]}/{max(source.compacted)}.compact"
            count = len(source.log.differing)
            entries = counted(count, "older entry", "older entries")
            yield Found(
                f"{path} lists other files than {newest} has for it ({entries} in all): one of them was edited or "
                "copied, and files may be read twice or never",
                where=f"{facts.checkpoint.location}/{path}",
                expected=f"the lines of {newest}",
                found="other files, times or numbers",
                advice="compare both with a copy of the checkpoint, and restore the one that is wrong",
                facts={"path": path, "compacted": newest, "entries": entries},
            )


# The source writes its entry before the plan in offsets/, so that a crash in between leaves one entry without a batch.
_LEFT_BY_A_CRASH = 1


@Check[Facts]("SW-FSRC-011", Severity.WARNING, risk="duplicate", goal="rebuild", certainty="likely")
def log_ahead(facts: Facts) -> Iterator[Found]:
    """The log of a file source is ahead of the batches.

    Condition: `sources/N` has two or more entries after the end of the newest batch. A crash leaves at most one.
    Effect: the batch logs were cut back or restored without the source's log. The next batch reads all these
    entries under a used id: an output with batch ids skips them silently, any other gets them twice.
    How to confirm: compare the last entry of the source with the newest batch in `slackwater inspect STREAM`.
    Remedy: `slackwater plan rebuild STREAM`. It continues after the newest written batch.
    Safety: yes; the output is not touched. By hand, cut offsets, commits, source log and output back
    together.
    References: Structured Streaming Programming Guide, "Recovery Semantics after Changes in a Streaming Query"
    """
    if not facts.checkpoint.offset_ids:
        return
    for source in facts.sources:
        last = last_entry(source.end)
        if last is not None and source.entries and source.entries[-1] - last > _LEFT_BY_A_CRASH:
            newest = source.entries[-1]
            batch = facts.checkpoint.planned + 1
            unread = newest - last
            yield Found(
                f"sources/{source.name} has {unread} entries after entry {last}, at which the newest batch ends: "
                f"batch {batch} would read them all, though older batches may have read them",
                where=f"{facts.checkpoint.location}/sources/{source.name}",
                expected=f"at most entry {last} and one more",
                found=f"entry {newest}",
                at_stake=f"the files of {unread} entries",
                advice=(
                    "if offsets/ and commits/ were restored from an older copy, restore sources/ and the output from "
                    "it too"
                ),
                next=rebuild(facts),
                facts={"source": source.name, "planned": last, "newest": newest, "batch": batch},
            )


@Check[Facts]("SW-FSRC-001", Severity.STOP, risk="stuck", goal="rebuild")
def log_entry_missing(facts: Facts) -> Iterator[Found]:
    """The log of a file source lacks entries of the newest batch.

    Condition: the newest batch in `offsets/` reads entries that `sources/N` does not have.
    Effect: Spark fails at each start with "batch M doesn't exist"; M is the entry's number, not a batch id.
    How to confirm: `slackwater inspect STREAM` shows the first and the last entry of the log.
    Remedy: `slackwater plan rebuild STREAM` writes a checkpoint with the log from the ledger's copy.
    Safety: yes; Spark wrote these entries. Without `sources/N` Spark fails as well; a new checkpoint reads
    every file twice.
    References: Structured Streaming Programming Guide, "Input Sources"
    """
    for source in facts.sources:
        newest = range_of_newest(facts, source)
        # A compacted entry has the files of all entries before it.
        first = max((newest.start, *(compacted + 1 for compacted in source.compacted)))
        missing = tuple(holes(first, newest.stop - 1, source.entries))
        if missing:
            ends = tuple(number for run in missing for number in (run[0], run[-1]))
            entries = entries_text(missing)
            yield Found(
                f"batch {facts.checkpoint.planned} reads {entries} of sources/{source.name}, which the log does not "
                f'have: a start fails with "batch {ends[0]} doesn\'t exist"',
                where=f"{facts.checkpoint.location}/sources/{source.name}",
                expected=entries,
                found="nothing",
                advice=f"restore {facts.checkpoint.location}/sources/{source.name} from a copy of the checkpoint",
                next=rebuild(facts),
                damage=(f"sources/{source.name}/{number}" for number in ends),
                facts={
                    "source": source.name,
                    "entries": entries,
                    "first": ends[0],
                    "batch": facts.checkpoint.planned,
                    "ends": ends,
                },
            )


@Check[Facts]("SW-FSRC-002", Severity.STOP, risk="stuck", goal="rebuild")
def log_gap(facts: Facts) -> Iterator[Found]:
    """The log of a file source has a gap after its newest compacted entry.

    Condition: entries of `sources/N` are missing between the newest compacted entry, or the beginning, and the
    newest batch.
    Effect: Spark fails at each start with "M.compact doesn't exist".
    How to confirm: `slackwater inspect STREAM` shows the first and the last entry of the log.
    Remedy: `slackwater plan rebuild STREAM` writes a checkpoint with the log from the ledger's copy.
    Safety: yes; Spark wrote these entries. With an empty replacement file Spark starts, and reads its files
    twice.
    References: Structured Streaming Programming Guide, "Input Sources"
    """
    strays = dict(strays_in_sources(facts))
    for source in facts.sources:
        if last_entry(source.end) is None or not source.entries or f"sources/{source.name}" in strays:
            continue
        newest, last = range_of_newest(facts, source), source.entries[-1] - 1
        first = max(source.compacted, default=-1) + 1
        gap = (
            *holes(first, min(newest.start - 1, last), source.entries),
            *holes(max(first, newest.stop), last, source.entries),
        )
        if gap:
            entries = entries_text(gap)
            yield Found(
                f"the log sources/{source.name} lacks {entries}, after which no compacted entry follows: a start "
                "fails, as Spark reads the whole log",
                where=f"{facts.checkpoint.location}/sources/{source.name}",
                expected=f"{entries}, or a later compacted entry",
                found="nothing",
                advice=f"restore {facts.checkpoint.location}/sources/{source.name} from a copy of the checkpoint",
                next=rebuild(facts),
                facts={"source": source.name, "entries": entries, "after": gap[0][0] - 1},
            )


@Check[Facts]("SW-FSRC-012", Severity.WARNING, risk="none", goal="resume")
def old_entry_missing(facts: Facts) -> Iterator[Found]:
    """An older entry of the log of a file source is missing.

    Condition: in a checkpoint that is not recorded, `sources/N` has a gap before its newest compacted entry.
    Effect: Spark starts, as the compacted entry lists the files. A rebuild or replay of this batch fails.
    How to confirm: list `sources/N` below the checkpoint: Spark removes the oldest entries first.
    Remedy: nothing for a start. Find the program that removes files from the checkpoint.
    Safety: yes; nothing is changed.
    References: Structured Streaming Programming Guide, "Input Sources"
    """
    for source in facts.sources:
        if facts.recorded or last_entry(source.end) is None or not source.compacted:
            continue
        gap = tuple(holes(source.entries[0], max(source.compacted) - 1, source.entries))
        if gap:
            entries = entries_text(gap)
            yield Found(
                f"the log sources/{source.name} lacks {entries} between others: a start does not read it, but a "
                "rebuild or replay of its batch is not possible",
                where=f"{facts.checkpoint.location}/sources/{source.name}",
                expected=entries,
                found="nothing",
                advice="find out what removes files from the checkpoint",
                facts={"source": source.name, "entries": entries},
            )
