from collections.abc import Iterator
from itertools import pairwise

from slackwater.core.checkpoint import holes
from slackwater.core.commands import check_command
from slackwater.core.facts import CheckpointSeen, Facts, Severity
from slackwater.core.units import counted
from slackwater.diagnose.checks.common.check import Findings, Found, check, rebuild, replay_from
from slackwater.diagnose.checks.common.settings import ENCODING, newest_committed, settings_of


@check("SW-STATE-003", Severity.STOP, risk="stuck", goal="rebuild")
def all_deleted(facts: Facts) -> Findings:
    """All state was deleted.

    Condition: `state/` is empty, but the newest commit names state versions, or a batch was planned without data,
    which Spark does only for stateful operators.
    Effect: the next batch needs this state; Spark fails at every start.
    How to confirm: `slackwater inspect STREAM --operators` shows no operator. If no batch without data ran, the logs
    look like a stateless query's.
    Remedy: restore `state/` from a copy of the checkpoint; or `slackwater plan rebuild STREAM`, which recomputes
    it.
    Safety: yes; the output is not touched. State is not a cache: without it the query cannot continue.
    References: SPARK-54307; Structured Streaming Programming Guide, "State Store"
    """
    checkpoint = facts.checkpoint
    if any(held.newest for _, _, _, held in checkpoint.inventory.each()):
        return
    named = checkpoint.newest_commit.state_unique_ids if checkpoint.newest_commit is not None else None
    without_data: int | None = None
    for before, line in pairwise(checkpoint.report.batches):
        if line.sources and line.sources == before.sources:
            # Planned for its watermark alone (``StateStoreWriter.shouldRunAnotherBatch``). In real-time mode a query
            # without state has such batches, too, and the watermark rises in few of them.
            without_data = line.id
            if line.watermark_ms == before.watermark_ms:
                without_data = None
                break
    if named:
        shown = f"the commit of batch {checkpoint.committed} lists state of {counted(len(named), 'operator')}"
    elif without_data is not None and checkpoint.committed >= without_data:
        shown = f"batch {without_data} was planned without new data, for operators with state"
    else:
        return
    yield Found(
        f"{shown}, and state/ has none",
        where=f"{checkpoint.location}/state",
        expected=f"state of batch {checkpoint.committed}",
        found="nothing",
        next=rebuild(facts),
        advice=f"restore {checkpoint.location}/state from a copy of the checkpoint",
        facts={"batch": checkpoint.committed, "shown": shown},
    )


_DOUBLED = "; later batches that did read their rows are written a second time, as their output cannot be cut"


@check("SW-STATE-010", Severity.WARNING, risk="loss", goal="replay", certainty="likely", needs=("history",))
def batch_without_rows(facts: Facts) -> Findings:
    """A batch has read none of its rows.

    Condition: a recorded, committed batch read no row, although its sources had new data.
    Effect: the batch counts as done. The cause is a batch function that catches its errors or returns early.
    Outputs that rightly skip batches after a crash are exempt.
    How to confirm: `slackwater ledger STREAM --batches N..N` shows the range and the rows of the batch.
    Remedy: let the function raise its errors, then process the batches again: `slackwater plan replay STREAM --from
    batch:N`.
    Safety: the plan shows the rows that it cuts, and keeps them for the undo. If the output cannot be cut,
    it gets later batches twice. A restart skips the missed rows.
    References: Structured Streaming Programming Guide, "Using Foreach and ForeachBatch"
    """
    output = facts.snapshot.output
    if output.batches_skipped and not output.skipped_are_read:
        return
    unread = [
        one.batch_id
        for one in facts.batches
        if any(source.start is not None and source.start != source.end for source in one.sources)
        and not one.input_rows
        and not any(source.input_rows for source in one.sources)
    ]
    if unread:
        later = facts.marks.committed - unread[0] + 1 > len(unread) and not output.can_cut
        batch = unread[0]
        batches = len(unread)
        doubled = _DOUBLED if later else ""
        in_words = counted(batches, "batch", "batches")
        yield Found(
            f"batch {batch} had new data and read no row of it ({in_words} in all): unread rows count as processed",
            where=f"batch {batch}",
            expected="rows of its range",
            found="0 rows",
            at_stake=f"the rows of {in_words}",
            advice=f"let the batch function raise its errors first; otherwise the batches are lost again{doubled}",
            next=replay_from(facts, batch),
            facts={"batch": batch, "batches": batches, "doubled": doubled},
        )


_STORE_WITHOUT_FOLDER = "default"


def _lost(checkpoint: CheckpointSeen, operator: int, *, with_metadata: bool) -> Iterator[tuple[str, str, str]]:
    # Version 3 of the schema has a folder for each store; older ones have a file in partition 0.
    if not any(path.startswith(f"state/{operator}/_stateSchema/") for path in checkpoint.folders):
        for name in checkpoint.inventory.names(operator):
            store = "" if name == _STORE_WITHOUT_FOLDER else f"/{name}"
            path = f"state/{operator}/0{store}/_metadata/schema"
            if not checkpoint.has(path):
                yield path, "schema", "nothing"
    folder = f"state/{operator}/_metadata"
    damage = next(checkpoint.damage_below(folder), None)
    if with_metadata and damage is not None:
        yield damage.path, "metadata", damage.found
    elif with_metadata and not checkpoint.has(f"{folder}/metadata") and not checkpoint.folders.get(f"{folder}/v2"):
        yield f"{folder}/metadata", "metadata", "nothing"


@check("SW-STATE-006", Severity.WARNING, risk="wrong", also=("MOVE-07",))
def checks_disabled(facts: Facts) -> Findings:
    """The schema or the metadata of a stateful operator is missing.

    Condition: an operator with state has no schema file, no operator metadata though Spark 4.0 or later wrote it,
    or malformed metadata. Copy tools that skip names with an underscore lose both.
    Effect: Spark then does not compare the query with its state at a start: it writes the started query's
    schema, and reads the state by it.
    How to confirm: `slackwater inspect STREAM --operators` shows the operators, and which of them are inferred.
    Remedy: restore the file from a copy of the checkpoint; or compare the code with `slackwater check FILE`.
    Safety: yes; only the missing file changes. `spark.sql.streaming.stateStore.stateSchemaCheck` set to
    false also disables the comparison.
    References: SPARK-27237
    """
    checkpoint = facts.checkpoint
    entry = newest_committed(checkpoint)
    if entry is None:
        return
    # Spark 3.5 writes no metadata of operators; from 4.0 on it does, and pins the encoding.
    with_metadata = ENCODING in settings_of(entry)
    for operator in sorted(checkpoint.inventory.stores):
        if not any(held.loadable for number, _, _, held in checkpoint.inventory.each() if number == operator):
            continue
        for path, what, found in _lost(checkpoint, operator, with_metadata=with_metadata):
            yield Found(
                f"the {what} of operator {operator} is missing or malformed: Spark would accept any query for its "
                "state",
                where=f"{checkpoint.location}/{path}",
                expected=f"the {what} of the operator, as Spark wrote it",
                found=found,
                next=check_command(facts.snapshot.stream),
                advice=f"restore {path} from a copy of the checkpoint, and change the query only together with its "
                "state",
                facts={"operator": operator, "path": path, "what": what, "found": found},
            )


@check("SW-STATE-011", Severity.STOP, risk="stuck", goal="rebuild", explains=("state-lost",))
def ids_lost(facts: Facts) -> Findings:
    """The ids of state versions are lost.

    Condition: state files have ids in their names (checkpoint format 2), and no commit names them.
    Effect: without `commits/` Spark looks for files without ids and fails with "1.changelog does not exist".
    How to confirm: `slackwater inspect STREAM` shows the entries of both logs.
    Remedy: restore `commits/` from a copy of the checkpoint; or `slackwater plan rebuild STREAM`, which recomputes
    the state.
    Safety: yes; the output is not touched. Ids chosen by hand can mix the state of two attempts. In this
    format, do not delete an entry of `commits/` to run a batch again.
    References: Structured Streaming Programming Guide, "State Store"
    """
    checkpoint = facts.checkpoint
    if checkpoint.planned < 1 and checkpoint.committed < 0:
        # The first attempt of batch 0 has written state, and nothing is committed yet.
        return
    commit = checkpoint.newest_commit
    if (commit is not None and commit.state_unique_ids) or (commit is None and checkpoint.commit_ids):
        return
    versions = [version for _, _, _, held in checkpoint.inventory.each() for version, _ in held.ids]
    if versions:
        newest = max(versions)
        unnamed = max(checkpoint.committed, checkpoint.planned - 1)
        yield Found(
            f"the files of the state have ids, up to version {newest}, but no commit lists them: the files "
            "that belong to a batch are unknown",
            where=f"{facts.checkpoint.location}/commits/{unnamed}",
            expected="a commit that lists the ids of its state",
            found="none",
            advice=f"restore {facts.checkpoint.location}/commits from a copy of the checkpoint",
            next=rebuild(facts),
            facts={"version": newest, "commit": unnamed},
        )


@check("SW-STATE-014", Severity.STOP, risk="wrong", goal="reset")
def left_behind(facts: Facts) -> Findings:
    """State is left under a new query.

    Condition: the checkpoint has neither planned nor committed batches, and `state/` has files.
    Effect: batch 0 expects empty state. Spark 4.1 and later refuse to start; older releases overwrite the files
    one by one, and RocksDB may mix both queries' tables.
    How to confirm: `slackwater inspect STREAM` shows no batch; list `state/` below the checkpoint.
    Remedy: restore `offsets/`, `commits/` and `sources/` if they were deleted by mistake; for a new query, use a
    new checkpoint directory.
    Safety: yes; nothing is deleted. A common cause is Spark's advice for some sinks to delete only
    `offsets/` and `commits/`.
    References: SPARK-54307; Structured Streaming Programming Guide, "Recovering from Failures with Checkpointing"
    """
    checkpoint = facts.checkpoint
    versions = [held.newest for _, _, _, held in checkpoint.inventory.each() if held.newest]
    if versions and not checkpoint.offset_ids and not checkpoint.commit_ids:
        version = max(versions)
        operators = len(checkpoint.inventory.stores)
        yield Found(
            f"the checkpoint has no batch, but state up to version {version}: the first batch of a new query expects "
            "empty state",
            where=f"{facts.checkpoint.location}/state",
            expected="no state",
            found=f"state of {operators} operators, up to version {version}",
            advice="restore offsets/, commits/ and sources/ from a copy of the checkpoint; for a new query use a new "
            "directory",
            facts={"version": version, "operators": operators},
        )


@check("SW-STATE-009", Severity.STOP, risk="stuck", goal="rebuild", certainty="likely")
def partly_committed(facts: Facts) -> Findings:
    """Only some partitions have committed their state.

    Condition: the newest batch is committed, but some partitions' state ends at the previous batch.
    Effect: Spark fails at every start. The cause is a batch function that evaluates only a part of its DataFrame,
    such as `limit(1)` or a skipping branch, or a lost file in each partition.
    How to confirm: `slackwater inspect STREAM --operators` shows the versions of each store.
    Remedy: correct the batch function, if the query has one; then `slackwater plan rebuild STREAM`.
    Safety: yes; the output is not touched. With an unchanged function the batch fails again; an empty
    replacement file loses a partition's keys.
    References: SPARK-52008
    """
    version = facts.checkpoint.committed + 1
    if version < 1:
        return
    for operator, partitions in sorted(facts.checkpoint.inventory.stores.items()):
        missing = [
            number
            for number, stores in sorted(partitions.items())
            if stores and all(held.newest == version - 1 for held in stores.values())
        ]
        complete = [
            number
            for number, stores in partitions.items()
            if stores and all(version in held.loadable for held in stores.values())
        ]
        if missing and complete and len(missing) + len(complete) == len(partitions):
            batch = version - 1
            first = missing[0]
            yield Found(
                f"batch {batch} is committed, and {len(missing)} of the {len(partitions)} partitions of operator "
                f"{operator} have no state for it",
                where=f"{facts.checkpoint.location}/state/{operator}/{first}",
                expected=f"state of batch {batch} in every partition",
                found="state of the batch before as the newest",
                advice="if the sink is a batch function, let it read its whole DataFrame first; otherwise the batch "
                "fails again",
                next=rebuild(facts),
                facts={
                    "operator": operator,
                    "batch": batch,
                    "first": first,
                    "missing": len(missing),
                    "partitions": len(partitions),
                },
            )


@check("SW-STATE-015", Severity.WARNING, risk="none", goal="resume")
def versions_missing(facts: Facts) -> Findings:
    """Intermediate state versions cannot be loaded.

    Condition: in a checkpoint that is not recorded, a file between an older and a newer loadable version is
    missing, and Spark did not remove it.
    Effect: Spark starts, as it loads only the newest version. A rollback, rebuild or state reader that needs
    these versions fails.
    How to confirm: `slackwater inspect LOCATION` shows the versions that each operator can load.
    Remedy: nothing for a start. Find the program that removes files from the checkpoint.
    Safety: yes; nothing is changed.
    References: Structured Streaming Programming Guide, "State Store"
    """
    if facts.recorded:
        return
    lacking = []
    for operator, partition, _, held in facts.checkpoint.inventory.each():
        if held.ids:
            # What format 2 keeps of older versions is known from the commits only.
            continue
        oldest = min(held.loadable, default=held.newest_loadable)
        missing = next(holes(oldest, held.newest_loadable - 1, held.loadable), None)
        if missing:
            lacking.append((f"state/{operator}/{partition}", missing[0]))
    if lacking:
        (path, version), stores = lacking[0], len(lacking)
        yield Found(
            f"{path} cannot load version {version}, although it can load older and newer versions: a start does not "
            "read it, but a rollback or rebuild to its batch is not possible",
            where=f"{facts.checkpoint.location}/{path}",
            expected=f"the files of version {version}",
            found=f"none, in {stores} stores",
            advice="find out what removes files from the checkpoint",
            facts={"path": path, "version": version, "stores": stores},
        )
