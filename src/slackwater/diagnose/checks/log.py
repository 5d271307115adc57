"""Missing, damaged or copied entries of ``offsets/`` and ``commits/``."""

from itertools import pairwise

from slackwater.core.checkpoint import Damage
from slackwater.core.facts import Facts, Severity, Unknown
from slackwater.core.sink import newest_batch
from slackwater.core.units import batch_range, utc_text
from slackwater.diagnose.checks.common.check import (
    UNPARSED,
    Findings,
    Found,
    check,
    has_gaps_by_design,
    move_away,
    rebuild,
    resume,
    strays_in_logs,
    unplanned_commits,
)


def _unparsed(facts: Facts, log: str, damage: Damage, batch: int, how: str) -> Found:
    return Found(
        f"the entry of batch {batch} in {log}/ is {damage.kind}: a start reads it, and is refused",
        where=f"{facts.checkpoint.location}/{log}/{batch}",
        expected=damage.expected,
        found=damage.found,
        next=resume(facts),
        advice=how,
        damage=(f"{log}/{batch}",),
        facts={"batch": batch, "kind": damage.kind, "expected": damage.expected, "found": damage.found, "how": how},
    )


@check("SW-LOG-007", Severity.STOP, risk="duplicate", goal="resume", also=("MOVE-02",))
def commits_ahead(facts: Facts) -> Findings:
    """Batches are committed that are not planned: commits/ is ahead of offsets/.

    Condition: the newest entry of `commits/` is newer than the newest entry of `offsets/`.
    Effect: Spark writes the newest planned batch again, then fails with "Multiple streaming jobs detected",
    without a second job. A sink that does not skip batches gets the rows at each restart.
    How to confirm: `slackwater inspect STREAM` lists the entries of both logs.
    Remedy: stop automatic restarts. `slackwater plan resume STREAM` writes the entries again from the ledger's
    copies. Without a ledger, restore them from a copy of the checkpoint.
    Safety: yes; Spark wrote these entries. Do not delete the newest commits: batches then get other ranges,
    which an at-least-once sink doubles and a file sink skips. Without the checkpoint everything is read again.
    References: SPARK-43542
    """
    batches, planned = unplanned_commits(facts.checkpoint), facts.checkpoint.planned
    if not batches:
        return
    # `populateStartOffsets`: without an entry in offsets/ Spark starts with batch 0.
    runs = max(planned, 0)
    named = batch_range(batches[0], batches[-1])
    unless = ", unless the sink skips batches that it has" if isinstance(facts.sink, Unknown) else ""
    is_skipped = not unless and all(
        one.batches_skipped and one.written is not None and one.written >= runs for one in facts.snapshot.outputs
    )
    at_stake = "" if is_skipped else f"the rows of batch {runs}, once more at each start{unless}"
    yield Found(
        f"commits/ has {named}, offsets/ does not: each start runs batch {runs} again and then fails, as if a second "
        "job used the checkpoint",
        where=f"{facts.checkpoint.location}/offsets",
        expected=f"entries of {named}",
        found=newest_batch(planned),
        at_stake=at_stake,
        # Without any plan there is nothing to resume from.
        next=resume(facts) if planned >= 0 else rebuild(facts),
        advice=f"stop all restarts of the query; restore the entries of {named} in offsets/ from a copy of the "
        "checkpoint, or write them from the end offsets in the query's progress events",
        damage=("offsets", *(f"offsets/{batch}" for batch in batches)),
        facts={"batches": batches, "planned": planned, "runs": runs, "at_stake": at_stake},
    )


@check("SW-LOG-005", Severity.STOP, risk="stuck", goal="resume", also=("LOG-03",))
def commits_entry_damaged(facts: Facts) -> Findings:
    """The newest entry of commits/ cannot be parsed.

    Condition: the entry is empty, cut or malformed.
    Effect: Spark refuses to start. The entry has the next batch's watermark and, in checkpoint format 2, the
    state ids.
    How to confirm: `slackwater inspect STREAM` lists the damage; read the file.
    Remedy: `slackwater plan resume STREAM` writes the entry again from the ledger's copy. Without a ledger, restore
    it from a copy of the checkpoint.
    Safety: yes; the copy is Spark's own entry. Without the entry its batch runs again: safe only if the
    sink skips written batches.
    References: Structured Streaming Programming Guide, Recovering from Failures with Checkpointing
    """
    checkpoint = facts.checkpoint
    batch = checkpoint.committed
    damage = checkpoint.damaged(f"commits/{batch}")
    if damage is None or damage.kind not in UNPARSED or ("commits", batch) in strays_in_logs(checkpoint):
        return
    how = f"restore commits/{batch} from a copy of the checkpoint"
    snapshot = facts.snapshot
    has_it = snapshot.marks.written == batch == checkpoint.planned and snapshot.output.batches_skipped
    if has_it and not snapshot.stateful:
        # The batch runs again with its range, and the output drops its rows.
        away = move_away(checkpoint, f"commits/{batch}")
        how = f"{how}; or, as the output skips batch {batch}, which it has: {away}"
    yield _unparsed(facts, "commits", damage, batch, how)


@check("SW-LOG-009", Severity.STOP, risk="loss", goal="rebuild", explains=("sink-behind",), at_start=True)
def commits_missing(facts: Facts) -> Findings:
    """More than one planned batch is not committed: a start runs only the newest of them.

    Condition: at least two of the newest entries of `offsets/` have no entry in `commits/`, and the output may lack
    their rows.
    Effect: earlier batches that the sink lacks are lost; Spark only logs a warning. `slackwater run FILE`
    refuses to start.
    How to confirm: `slackwater inspect STREAM` lists both logs; compare the output with the batches' ranges.
    Remedy: `slackwater plan rebuild STREAM` continues after the output's newest batch. Without a ledger, name the
    output with `slackwater doctor LOCATION --sink URI`; if it lacks only the newest batch, start the query.
    Safety: yes; the batches keep their ids and ranges.
    References: Structured Streaming Programming Guide, Recovering from Failures with Checkpointing
    """
    checkpoint, snapshot = facts.checkpoint, facts.snapshot
    entry = checkpoint.newest_offset
    if checkpoint.committed > checkpoint.planned or (entry is not None and entry.metadata is None):
        # A continuous query restarts after its newest commit, and runs all later epochs.
        return
    # The output has a batch that it shows. One that lacks committed batches has a finding of its own: sink-behind.
    done = max(min(snapshot.shown, default=-1), snapshot.recorded.committed, checkpoint.committed)
    batches = tuple(batch for batch in checkpoint.offset_ids[:-1] if batch > done)
    if batches and min(snapshot.shown, default=checkpoint.committed) >= checkpoint.committed:
        named = batch_range(batches[0], batches[-1])
        found = newest_batch(checkpoint.committed)
        yield Found(
            f"{named} are planned and not committed, but a start runs only batch {checkpoint.planned}: rows of the "
            "others that are not in the output are lost",
            where=f"{facts.checkpoint.location}/commits",
            expected=f"batch {checkpoint.planned} or the one before as the newest entry",
            found=found,
            at_stake=named,
            advice=f"do not start the query before the output was compared with {named}: if it has their rows, a start "
            "is safe; if not, process their ranges, which the entries of offsets/ bound, in a batch job first",
            next=rebuild(facts),
            facts={"batches": batches, "newest": checkpoint.planned, "committed": checkpoint.committed},
        )


@check("SW-LOG-018", Severity.WARNING, risk="wrong", goal="rebuild", certainty="likely")
def entry_copied(facts: Facts) -> Findings:
    """An entry of a log is a copy of an older one.

    Condition: two batches of `offsets/` have the same planning time and settings, or two entries of `commits/` the
    same state, which are unique to a batch. Spark's offline repartition keeps the time, but changes a setting.
    Effect: rows between the two positions are read twice or never, and wrong state is loaded.
    How to confirm: `slackwater inspect LOCATION` shows time, watermark and offsets of each batch; compare the two
    files.
    Remedy: restore the entry from a copy of the checkpoint. Without a copy, an entry below the newest two prevents
    only a rollback to its batch.
    Safety: yes. Without the entry its batch is read again, or the log becomes unreadable.
    References: docs/format.md
    """
    # A plan of Slackwater's may copy entries: of a recorded stream the ledger has all.
    if facts.recorded:
        return
    lines = facts.checkpoint.report.batches
    # An offline repartition keeps the time, too, but changes a setting.
    plans = [
        (later.id, earlier.id, "time of planning", utc_text(later.timestamp_ms or 0))
        for earlier, later in pairwise(line for line in lines if line.planned and line.timestamp_ms)
        if earlier.timestamp_ms == later.timestamp_ms and earlier.settings == later.settings
    ]
    commits: list[tuple[int, int, str, str]] = []
    seen: dict[str, int] = {}
    for line in lines:
        shared = [identity for identity in sorted(line.state_ids) if identity in seen]
        if shared:
            commits.append((line.id, seen[shared[0]], "state", f"state id {shared[0]}"))
        seen.update(dict.fromkeys(line.state_ids, line.id))
    for log, copies in (("offsets", plans), ("commits", commits)):
        for batch, older, what, value in copies[-1:]:
            yield Found(
                f"{log}/{batch} has the {what} of batch {older}: one of the two entries is a copy",
                where=f"{facts.checkpoint.location}/{log}/{batch}",
                expected=f"a {what} of its own",
                found=f"{value}, as in {log}/{older}",
                at_stake=f"the rows between the positions of batches {older} and {batch}",
                advice=f"restore {log}/{batch} or {log}/{older} from a copy of the checkpoint",
                facts={"log": log, "batch": batch, "older": older, "what": what, "value": value},
            )


@check("SW-LOG-001", Severity.STOP, risk="stuck", goal="resume", also=("LOG-02", "LOG-03"))
def offsets_entry_damaged(facts: Facts) -> Findings:
    """One of the two newest entries of offsets/ cannot be parsed.

    Condition: the entry is empty, cut or malformed.
    Effect: Spark refuses to start. No other file has the range of the batch.
    How to confirm: `slackwater inspect STREAM` lists the damage; read the file.
    Remedy: `slackwater plan resume STREAM` writes the entry again from the ledger's copy. Without a ledger, restore
    it from a copy of the checkpoint.
    Safety: yes; the copy is Spark's own entry. Delete the entry only if its batch has neither a commit nor
    output rows: otherwise commits/ is ahead (SW-LOG-007), or a newly planned range may differ from written rows.
    References: Structured Streaming Programming Guide, Recovering from Failures with Checkpointing
    """
    checkpoint = facts.checkpoint
    strays = {number for folder, number in strays_in_logs(checkpoint) if folder == "offsets"}
    for batch in checkpoint.offset_ids[-2:]:
        damage = checkpoint.damaged(f"offsets/{batch}")
        if damage is not None and damage.kind in UNPARSED and batch not in strays:
            how, written = f"restore offsets/{batch} from a copy of the checkpoint", facts.marks.written
            if batch == checkpoint.planned == checkpoint.committed + 1 and written is not None and written < batch:
                # Neither a commit nor an output of it: nothing depends on the range, and Spark plans another.
                away = move_away(checkpoint, f"offsets/{batch}")
                how = f"{how}; or, as the output has no rows of batch {batch}: {away}"
            yield _unparsed(facts, "offsets", damage, batch, how)


@check("SW-LOG-006", Severity.STOP, risk="stuck", goal="resume")
def offsets_entry_missing(facts: Facts) -> Findings:
    """The entry before the newest one in ``offsets/`` is missing.

    Condition: the newest batch starts at the end of this entry's batch.
    Effect: Spark refuses to start with "batch N doesn't exist".
    How to confirm: `slackwater inspect STREAM` lists the entries of both logs.
    Remedy: `slackwater plan resume STREAM` writes the entry again from the ledger's copy.
    Safety: yes; the copy is Spark's own entry. Spark's advice to delete the newest entries goes back to an
    older batch: at-least-once sinks get rows twice, a file sink skips new rows.
    References: SPARK-38033
    """
    ids = facts.checkpoint.offset_ids
    if not ids or ids[-1] == 0 or ids[-1] - 1 in ids or has_gaps_by_design(facts.checkpoint):
        return
    if ids[-1] - 1 > facts.checkpoint.committed + 1 > 0:
        # A number far behind all others is no batch of this query: SW-STORE-007.
        return
    missing = ids[-1] - 1
    newest = ids[-1]
    yield Found(
        f"batch {missing} has no entry in offsets/, and batch {newest} starts where it ended: a start is refused "
        f'with "batch {missing} doesn\'t exist"',
        where=f"{facts.checkpoint.location}/offsets/{missing}",
        expected=f"the plan of batch {missing}",
        found="nothing",
        advice=f"restore offsets/{missing} from a copy of the checkpoint; without one, start a new checkpoint at the "
        "positions after the newest written batch",
        next=resume(facts),
        damage=(f"offsets/{missing}",),
        facts={"missing": missing, "newest": newest, "before": ids[-2] if len(ids) > 1 else -1},
    )


@check("SW-LOG-010", Severity.WARNING, risk="none", goal="resume")
def old_entries_missing(facts: Facts) -> Findings:
    """Entries of older batches are missing in a log.

    Condition: in a checkpoint that is not recorded, `offsets/` below the newest two entries, or `commits/` below
    the newest, has gaps.
    Effect: Spark starts, as it reads only the newest entries. A rollback, rebuild or state reader that needs
    these batches fails.
    How to confirm: `slackwater inspect LOCATION` lists the entries of both logs.
    Remedy: nothing for a start. Find the program that removes files from the checkpoint.
    Safety: yes; nothing is changed. Deleting more entries only loses more history.
    References: SPARK-38033
    """
    # Of a recorded stream the number line reports them, and can restore them.
    checkpoint = facts.checkpoint
    # A start reads two entries of ``offsets/`` and one of ``commits/``.
    read = {"offsets": checkpoint.planned - 1, "commits": min(checkpoint.committed, checkpoint.planned)}
    missing = (one.path.partition("/") for one in checkpoint.start_damage if one.kind == "missing")
    paths = tuple(
        f"{folder}/{name}" for folder, _, name in missing if name.isdigit() and int(name) < read.get(folder, 0)
    )
    if paths and not facts.recorded:
        yield Found(
            f"{paths[0]} is missing between other entries: a start ignores this, but a rollback or rebuild to "
            "its batch is not possible",
            where=f"{facts.checkpoint.location}/{paths[0]}",
            expected="the entry that Spark wrote",
            found="nothing",
            advice="find out what removes files from the checkpoint",
            damage=paths,
            facts={"paths": paths},
        )
