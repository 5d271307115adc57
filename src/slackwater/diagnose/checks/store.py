"""The store of a checkpoint, and two queries with one checkpoint."""

import re
from collections import Counter
from collections.abc import Iterator
from itertools import pairwise

from slackwater.core.checkpoint import SourceOffset
from slackwater.core.errors import FormatError
from slackwater.core.facts import CheckpointSeen, Facts, HistoryFacts, Severity
from slackwater.core.units import utc_text
from slackwater.diagnose.checks.common.check import (
    Findings,
    Found,
    check,
    move_away,
    rebuild,
    resume,
    strays_in_logs,
    strays_in_sources,
)
from slackwater.sources import kind_of
from slackwater.sources.common.contract import SourceRange

_TEMPORARY = re.compile(r"\.(.+)\.[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}(?:\.TID[0-9]+)?\.tmp")
"""Names of ``RenameBasedFSDataOutputStream``: a dot, the file's name, a UUID, in a task also its id, ``.tmp``."""


def temporary_files(checkpoint: CheckpointSeen) -> Iterator[tuple[str, str, str]]:
    """The folder of each temporary file, its name, and the name that it should get."""
    for folder, names in sorted(checkpoint.folders.items()):
        for name in sorted(names):
            match = _TEMPORARY.fullmatch(name)
            if match is not None:
                yield folder, name, match[1]


_MANAGER = "spark.sql.streaming.checkpointFileManagerClass"


_DEFAULT = "the default, which renames"


_WITHOUT_RENAME = "AbortableStreamBased"


@check("SW-STORE-001", Severity.WARNING, risk="stuck", needs=("renames",))
def no_atomic_rename(facts: Facts) -> Findings:
    """The store of the checkpoint has no atomic rename.

    Condition: the checkpoint's store renames by copy and delete, and the last run's checkpoint file manager did not
    avoid renames.
    Effect: a driver that dies during the copy leaves a partial file under its final name, and two drivers can
    both win.
    How to confirm: when the query starts, the driver's log has a warning about FileContext and rename().
    Remedy: move the checkpoint to HDFS or a shared disk. Or, if it is on S3 and no output has a manifest on another
    store, add Spark's module `spark-hadoop-cloud` to `spark.jars.packages`, in Spark's own version, and set
    `spark.sql.streaming.checkpointFileManagerClass` to the module's
    `org.apache.spark.internal.io.cloud.AbortableStreamBasedCheckpointFileManager`. Without the module the query does
    not start (CANNOT_LOAD_CHECKPOINT_FILE_MANAGER).
    Safety: yes. Stop the query before you copy a checkpoint, and check the copy with `slackwater doctor
    LOCATION --verify`.
    References: SPARK-40039; SPARK-19407
    """
    history = facts.history
    if facts.checkpoint.atomic_rename or not isinstance(history, HistoryFacts) or not history.runs:
        return
    manager = (history.runs[0].settings or {}).get(_MANAGER, _DEFAULT)
    if _WITHOUT_RENAME not in manager:
        yield Found(
            "the store of the checkpoint renames a file by a copy, and Spark makes its files by renames: a crash "
            "can leave a part of a file",
            where=facts.checkpoint.location,
            expected=f"{_MANAGER} with a class that does not rename",
            found=manager,
            advice="move the checkpoint to HDFS or to a disk that all machines mount; or on S3 add Spark's module "
            f"spark-hadoop-cloud to spark.jars.packages, and set {_MANAGER} to "
            "org.apache.spark.internal.io.cloud.AbortableStreamBasedCheckpointFileManager before the next start",
            facts={"setting": _MANAGER, "manager": manager},
        )


_CHANGES = frozenset({"delta", "changelog"})
"""Spark writes whole state (``snapshot``, ``zip``) when it suits; no version needs it."""


def _is_lost(checkpoint: CheckpointSeen, folder: str, target: str) -> bool:
    names = checkpoint.folders.get(folder, ())
    number, _, kind = target.partition(".")
    if not (number.isascii() and number.isdigit()) or target in names:
        return False
    last = {
        "offsets": max(checkpoint.planned, checkpoint.committed),
        # The newest planned batch may have been interrupted while its commit was written.
        "commits": checkpoint.planned - 1,
    }.get(folder, checkpoint.committed + 1 if folder.startswith("state/") and kind in _CHANGES else -1)
    numbers = (name.partition(".")[0].partition("_")[0] for name in names)
    versions = {int(one) for one in numbers if one.isascii() and one.isdigit()}
    # Below the oldest one Spark has removed what it no longer needs.
    return int(number) not in versions and min(versions, default=int(number)) <= int(number) <= last


@check("SW-STORE-002", Severity.WARNING, risk="stuck", goal="resume", certainty="likely")
def rename_lost(facts: Facts) -> Findings:
    """A file is missing, and its temporary file is there: a rename was lost.

    Condition: an entry of `offsets/` or `commits/`, or a delta or changelog of state, is missing below newer files,
    and its temporary file remains.
    Effect: the store reported a rename that it did not make; a start, or a rollback to that batch, fails later.
    How to confirm: list the folder with its hidden files; `slackwater doctor LOCATION --verify` reads all files of
    state.
    Remedy: restore the file from a copy of the checkpoint; `slackwater plan rebuild STREAM` recomputes state. The
    temporary file is complete only if its write finished.
    Safety: yes. Do not rename a truncated temporary file: Spark then reads partial state, or refuses it.
    References: SPARK-40826
    """
    checkpoint = facts.checkpoint
    lost = {
        f"{folder}/{target}": f"{folder}/{name}"
        for folder, name, target in temporary_files(checkpoint)
        if _is_lost(checkpoint, folder, target)
    }
    for path, temporary in lost.items():
        yield Found(
            f"{path} is missing, and its temporary file is there: the store has lost a rename",
            where=f"{checkpoint.location}/{path}",
            expected="the file that Spark wrote",
            found=temporary,
            next=resume(facts),
            advice=f"restore {path} from a copy of the checkpoint; look for other renames that the store has lost",
            facts={"path": path, "temporary": temporary},
        )


_METADATA = re.compile(r"state/(\d+)/_metadata(/v2)?")


@check("SW-STORE-006", Severity.STOP, risk="stuck", goal="rebuild", certainty="likely")
def state_on_other_disks(facts: Facts) -> Findings:
    """The state of an operator is not where its metadata is.

    Condition: a checkpoint on a local disk has committed batches and an operator's metadata, but none of the
    operator's state. Deleted state, and a batch function that reads no row, look alike.
    Effect: on a cluster a path without a scheme is each machine's local disk: the state is on the executors'
    disks, and a start on other machines fails.
    How to confirm: look for the path on the executors' machines; `slackwater inspect LOCATION --operators` shows the
    operators.
    Remedy: copy the state from the executors' disks into the checkpoint, move it to a store that all machines
    reach, and use its URI; or `slackwater plan rebuild STREAM`.
    Safety: yes, while the query is stopped. A start without it loses the state, or fails.
    References: Structured Streaming Programming Guide, "Recovering from Failures with Checkpointing"
    """
    # Of format 2 the commit names state: SW-STATE-003.
    checkpoint = facts.checkpoint
    commit = checkpoint.newest_commit
    if "://" in checkpoint.location or checkpoint.committed < 0 or (commit is not None and commit.state_unique_ids):
        return
    kept = {operator for operator, _, _, held in checkpoint.inventory.each() if held.newest}
    folders = ((_METADATA.fullmatch(path), names) for path, names in checkpoint.folders.items())
    with_metadata = {int(match[1]) for match, names in folders if match is not None and names}
    for operator in sorted(with_metadata - kept):
        yield Found(
            f"operator {operator} has metadata on this disk and no state, although batch {checkpoint.committed} is "
            "committed: executors may have written the state to their own disks",
            where=f"{facts.checkpoint.location}/state/{operator}",
            expected=f"state of batch {checkpoint.committed}",
            found="nothing",
            advice=f"look for state/{operator} under the same path on the machines of the executors, and use a "
            "checkpoint location that all machines reach",
            next=rebuild(facts),
            facts={"operator": operator, "committed": checkpoint.committed},
        )


@check("SW-STORE-007", Severity.STOP, risk="stuck", goal="resume", certainty="likely")
def stray_entry(facts: Facts) -> Findings:
    """A log has an entry with a number that no batch of the query has.

    Condition: the newest number in `offsets/`, `commits/` or a file source's log is far above all others, after a
    gap. Spark ignores names that are not numbers.
    Effect: Spark takes it for the newest entry, and refuses to start: "batch N doesn't exist", or "Multiple
    streaming jobs detected".
    How to confirm: `slackwater inspect LOCATION` lists the entries; read the file.
    Remedy: move the file out of the checkpoint with the command of the finding; then `slackwater doctor LOCATION`
    again.
    Safety: yes; nothing is deleted. Spark's advice to delete the newest entries until two are consecutive
    is safe only for the stray entry: stop after it.
    References: SPARK-38033
    """
    for folder, number in (*strays_in_logs(facts.checkpoint), *strays_in_sources(facts)):
        names = (f"{number}.compact", str(number))
        name = next(one for one in names if facts.checkpoint.has(f"{folder}/{one}"))
        path = f"{folder}/{name}"
        how = move_away(facts.checkpoint, path)
        yield Found(
            f"{path} is far behind all other entries and not this query's, but Spark takes it for the newest: a "
            "start is refused",
            where=f"{facts.checkpoint.location}/{path}",
            expected="no entry of this number",
            found=f"a file named {number}",
            advice=how,
            damage=(path, f"offsets/{number}", f"offsets/{number - 1}"),
            facts={"path": path, "folder": folder, "number": number, "how": how},
        )


def _back(facts: Facts, batch: int, source: str, what: str, values: tuple[str, str]) -> Found:
    expected, now = values
    return Found(
        f"the range of source {source} in batch {batch} {what}: two queries may use this checkpoint, each skipping "
        "what the other has read",
        where=f"{facts.checkpoint.location}/offsets/{batch}",
        expected=expected,
        found=now,
        advice="look for another program with this checkpoint location, stop it, and give each query its own "
        "checkpoint",
        facts={"batch": batch, "source": source, "what": what, "expected": expected, "now": now},
    )


def _goes_back(start: SourceOffset, end: SourceOffset) -> bool:
    if start.text is None or end.text is None or start.text == end.text:
        return False
    kind = kind_of(end.text, {})
    if kind_of(start.text, {}) != kind:
        return False
    try:
        counted = kind.counted(SourceRange(end.source, start.text, end.text))
    except FormatError:
        return False
    return any(count is not None and count < 0 for count in (counted or {}).values())


@check("SW-SHARE-003", Severity.WARNING, risk="skip", goal="backfill", certainty="possible")
def ranges_go_back(facts: Facts) -> Findings:
    """The range of a batch goes back: two queries may use the checkpoint.

    Condition: a batch of `offsets/` ends before the previous batch, or a source changes its kind and changes back.
    Manual edits and recreated sources look alike.
    Effect: two queries overwrite each other's progress, and each silently skips the rows that the other has
    read.
    How to confirm: `slackwater inspect LOCATION` shows the batches' offsets; look for a second program with this
    checkpoint location.
    Remedy: keep one query running, and give the others their own checkpoints. Then process the skipped ranges in a
    batch job.
    Safety: yes, if the checkpoint stays with the query whose sources it has. If both run, both lose rows.
    References: Structured Streaming Programming Guide, Recovering from Failures with Checkpointing
    """
    # The newest batch of each source.
    planned = [line for line in facts.checkpoint.report.batches if line.planned and line.sources]
    found: dict[str, Found] = {}
    seen: dict[str, list[str]] = {}
    for line in planned:
        for end in line.sources:
            if end.text is None:
                continue
            kinds, kind = seen.setdefault(end.source, []), kind_of(end.text, {}).kind
            if kinds and kind != kinds[-1] and kind in kinds:
                what = f"is of {kind} again, after {kinds[-1]}"
                found[end.source] = _back(facts, line.id, end.source, what, (f"offsets of {kinds[-1]}", kind))
            if not kinds or kinds[-1] != kind:
                kinds.append(kind)
    for earlier, later in pairwise(planned):
        starts = {end.source: end for end in earlier.sources}
        for end in later.sources:
            start = starts.get(end.source)
            if start is not None and _goes_back(start, end):
                what = f"ends before batch {earlier.id} does"
                expected = f"a position after {start.text}"
                found[end.source] = _back(facts, later.id, end.source, what, (expected, f"{end.text}"))
    yield from found.values()


_LOGS = frozenset({"offsets", "commits"})


def _twice(facts: Facts, batch: int, path: str, what: str, values: tuple[str, str]) -> Found:
    expected, now = values
    return Found(
        f"batch {batch} {what}: two drivers may have used this checkpoint at the same time",
        where=f"{facts.checkpoint.location}/{path}",
        expected=expected,
        found=now,
        at_stake=f"the rows of batch {batch}, where the sink does not know batches",
        advice=f"look for a second driver of the query, and stop it; then compare the rows of batch {batch} with the "
        "output",
        facts={"batch": batch, "path": path, "what": what, "expected": expected, "now": now},
    )


@check("SW-SHARE-001", Severity.WARNING, risk="duplicate", goal="resume", certainty="possible")
def two_writers(facts: Facts) -> Findings:
    """Two drivers may have written to the checkpoint.

    Condition: a batch of `offsets/` was planned earlier than the batch before it; or two temporary files in
    `offsets/` or `commits/` are for the same entry. Different host clocks, and two crashes in a batch, look alike.
    Effect: Spark keeps no lock: the slower driver fails with "Multiple streaming jobs detected", perhaps after
    writing its rows, which a sink without batch ids then has twice.
    How to confirm: `slackwater inspect LOCATION` shows the batch's time: ask the scheduler for drivers at that time,
    and look for an older driver that still runs.
    Remedy: stop all drivers but one. Compare the rows of the batch with the output; then start the query.
    Safety: yes; nothing is changed. Deleting the checkpoint reads everything again.
    References: SPARK-43542; SPARK-26425
    """
    planned = (line for line in facts.checkpoint.report.batches if line.planned and line.timestamp_ms is not None)
    times = ((one.timestamp_ms or 0, other.timestamp_ms or 0, one.id, other.id) for one, other in pairwise(planned))
    for before, after, earlier, later in [pair for pair in times if pair[1] < pair[0]][-1:]:
        values = (f"a time after {utc_text(before)}", utc_text(after))
        yield _twice(facts, later, f"offsets/{later}", f"was planned before batch {earlier}", values)
    attempts = Counter(
        (folder, int(target))
        for folder, _, target in temporary_files(facts.checkpoint)
        if folder in _LOGS and target.isascii() and target.isdigit()
    )
    for (folder, batch), files in sorted(attempts.items()):
        if files > 1:
            values = ("one temporary file at most", f"{files} of them")
            yield _twice(facts, batch, f"{folder}/{batch}", f"has {files} temporary files", values)
