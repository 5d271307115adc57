"""Changes of query, settings and checkpoint that the files show."""

from collections.abc import Mapping
from itertools import combinations

from slackwater.core.commands import check_command
from slackwater.core.facts import Facts, HistoryFacts, Severity, SourceFacts, Unknown
from slackwater.core.state import JOIN
from slackwater.diagnose.checks.common.check import Findings, Found, check, rebuild
from slackwater.diagnose.checks.common.settings import (
    ABSENT,
    JOIN_FORMAT,
    PINNED,
    PROVIDER,
    newest_committed,
    pinned_partitions,
    settings_of,
)
from slackwater.sources.common.contract import without_partitions

_OLD = "1"


@check("SW-CHG-011", Severity.INFO, risk="stuck", goal="reset")
def join_format_1(facts: Facts) -> Findings:
    """The state of a join has the old format.

    Condition: the newest batch pins version 1 of the join state format, and an operator has join stores.
    Effect: this version lost or doubled rows of outer joins, so Spark refuses to continue them; inner joins are
    not affected.
    How to confirm: `slackwater inspect STREAM` lists the pinned settings; the code shows the join type.
    Remedy: for an outer join `slackwater plan reset STREAM`: the new checkpoint pins the newer version.
    Safety: the reset keeps the old output for the undo. Do not edit the version in `offsets/`: the state
    values differ.
    References: SPARK-26154
    """
    if settings_of(facts.checkpoint.newest_offset).get(JOIN_FORMAT) != _OLD:
        return
    for operator in facts.checkpoint.report.operators:
        if operator.name == JOIN:
            yield Found(
                f"the state of join {operator.id} has version 1, with which Spark refuses to continue an outer join",
                where=f"{facts.checkpoint.location}/offsets/{facts.checkpoint.planned}",
                expected="spark.sql.streaming.join.stateFormatVersion of 2 or later, if the join is an outer one",
                found="1",
                facts={"operator": operator.id, "batch": facts.checkpoint.planned},
            )


_LOST_FILE = 1
"""One missing version may also be one lost file."""


@check("SW-CHG-007", Severity.STOP, risk="wrong", goal="rebuild", certainty="likely")
def operator_without_state(facts: Facts) -> Findings:
    """A stateful operator has stopped keeping state.

    Condition: an operator's state ends everywhere at the same older version, but later batches were committed.
    Effect: the later batches ran without the operator, which Spark before 4.0 accepts silently. If it comes
    back, its state lacks their rows: Spark fails or gives wrong results.
    How to confirm: `slackwater inspect STREAM --operators` shows the versions of each operator.
    Remedy: compare the code with `slackwater check FILE`. To keep the operator, `slackwater plan rebuild STREAM`
    recomputes its state. To remove it, plan a reset.
    Safety: yes; the plans keep the old checkpoint. Copying other state or an empty file into the folder
    gives wrong results.
    References: Structured Streaming Programming Guide, "Recovery Semantics after Changes in a Streaming Query"
    """
    checkpoint = facts.checkpoint
    for operator, partitions in sorted(checkpoint.inventory.stores.items()):
        stores = [held for stores in partitions.values() for held in stores.values()]
        newest = {held.newest for held in stores}
        if len(newest) != 1 or any(held.newest != held.newest_loadable for held in stores):
            continue
        (version,) = newest
        if 0 < version < checkpoint.committed + 1 - _LOST_FILE:
            last = version - 1
            yield Found(
                f"the state of operator {operator} ends at batch {last}, and batches up to {checkpoint.committed} "
                "were committed without it",
                where=f"{facts.checkpoint.location}/state/{operator}",
                expected=f"state of batch {checkpoint.committed}",
                found=f"state up to batch {last}",
                advice=f"compare the code with the one that ran before batch {last}: was a stateful operator removed, "
                "or state/ restored from an older copy?",
                next=rebuild(facts),
                facts={"operator": operator, "last": last, "committed": checkpoint.committed},
            )


_SINGLE = (0,)


@check("SW-CHG-008", Severity.STOP, risk="wrong", goal="rebuild")
def partitions_edited(facts: Facts) -> Findings:
    """The number of state partitions is not the pinned one.

    Condition: the newest committed batch pins a different number of shuffle partitions than its state has.
    Effect: with too low a number Spark silently ignores state partitions and looks for keys in the wrong
    partitions; with too high a number it fails with "1.delta does not exist".
    How to confirm: compare the setting with the partitions in `slackwater inspect STREAM --operators`.
    Remedy: `slackwater plan rebuild STREAM`, or restore the entry from a copy of the checkpoint.
    Safety: yes; the output is not touched. Never edit the number in `offsets/`; Spark 4.2 and later can
    repartition state offline.
    References: SPARK-19873; Structured Streaming Programming Guide, "Additional Information", Miscellaneous Notes
    """
    checkpoint = facts.checkpoint
    pinned = pinned_partitions(newest_committed(checkpoint))
    if pinned is None:
        return
    version = checkpoint.committed + 1
    for operator, partitions in sorted(checkpoint.inventory.stores.items()):
        # An offline repartition leaves the old partitions, without the versions after it.
        current = {
            number for number, stores in partitions.items() if any(version in one.loadable for one in stores.values())
        }
        if tuple(current) == _SINGLE or current != set(range(len(current))) or len(current) == pinned:
            continue
        if len(current) > pinned or set(partitions) == current:
            present = len(current)
            yield Found(
                f"batch {checkpoint.committed} pins {pinned} shuffle partitions, and operator {operator} has its "
                f"state in {present}: keys would be looked for in the wrong partitions",
                where=f"{facts.checkpoint.location}/offsets/{checkpoint.committed}",
                expected=f"spark.sql.shuffle.partitions of {present}",
                found=f"{pinned}",
                advice=f"restore offsets/{checkpoint.committed} from a copy of the checkpoint",
                next=rebuild(facts),
                facts={"operator": operator, "pinned": pinned, "present": present, "batch": checkpoint.committed},
            )


_FORMS = {"HDFSBackedStateStoreProvider": "hdfs", "RocksDBStateStoreProvider": "rocksdb"}


@check("SW-CHG-009", Severity.STOP, risk="stuck", goal="rebuild")
def provider_edited(facts: Facts) -> Findings:
    """The state store provider is not the pinned one.

    Condition: the newest batch pins a state store provider that did not write the files in `state/`.
    Effect: Spark fails at every start with a missing-file error.
    How to confirm: compare the setting with the provider in `slackwater inspect STREAM --operators`.
    Remedy: restore the entry in `offsets/` from a copy of the checkpoint; or `slackwater plan rebuild STREAM`.
    Safety: yes; the output is not touched. Editing `offsets/` does not convert state.
    References: SPARK-34198; Structured Streaming Programming Guide, "State Store"
    """
    checkpoint = facts.checkpoint
    pinned = settings_of(checkpoint.newest_offset).get(PROVIDER, "").rpartition(".")[2]
    found = {held.provider for _, _, _, held in checkpoint.inventory.each()} - {None}
    if pinned in _FORMS and found and _FORMS[pinned] not in found:
        files = " and ".join(sorted(str(one) for one in found))
        yield Found(
            f"batch {checkpoint.planned} pins {pinned}, but the state was written by the {files} provider",
            where=f"{facts.checkpoint.location}/offsets/{checkpoint.planned}",
            expected=f"the provider of the files in state/: {files}",
            found=pinned,
            advice=f"restore offsets/{checkpoint.planned} from a copy of the checkpoint",
            next=rebuild(facts),
            facts={"batch": checkpoint.planned, "pinned": pinned, "files": files},
        )


@check("SW-CHG-010", Severity.INFO, risk="none", needs=("settings",), also=("CHG-08", "CHG-09"))
def session_setting_ignored(facts: Facts) -> Findings:
    """A setting of the session has no effect on this checkpoint.

    Condition: the session of `--pipeline`, or else the last run, has a different value than the newest batch pins or,
    without a pinned value, than Spark's default for old checkpoints.
    Effect: Spark uses the value of the checkpoint, and only logs a warning.
    How to confirm: `slackwater inspect STREAM` lists the pinned settings.
    Remedy: set the session to the pinned value; or start a new checkpoint, `slackwater plan reset STREAM`, which
    pins the new value.
    Safety: the first changes nothing. Do not edit the value in `offsets/`: the state depends on it.
    References: SPARK-19873; Structured Streaming Programming Guide, "Additional Information", Miscellaneous Notes
    """
    batch, entry = facts.checkpoint.planned, facts.checkpoint.newest_offset
    if entry is None or entry.metadata is None:
        return
    asked: Mapping[str, str] = {}
    if facts.code is not None and not isinstance(facts.code, Unknown):
        asked = facts.code.session
    elif isinstance(facts.history, HistoryFacts) and facts.history.runs:
        asked = facts.history.runs[0].settings or {}
    pinned = settings_of(entry)
    for setting in PINNED:
        used = pinned.get(setting, ABSENT.get(setting))
        if used is not None and asked.get(setting, used) != used:
            why = f"which batch {batch} pins" if setting in pinned else f"as batch {batch} does not pin it"
            given = asked[setting]
            yield Found(
                f"{setting} is {given} in the session, and Spark uses {used}, {why}",
                where=f"{facts.checkpoint.location}/offsets/{batch}",
                expected=given,
                found=used,
                facts={"setting": setting, "asked": given, "used": used, "batch": batch, "why": why},
            )


def _places(source: SourceFacts) -> tuple[frozenset[str], frozenset[str]]:
    files = source.log.entries if source.log is not None else ()
    if not files:
        return frozenset(), frozenset()
    entries = [file.log_offset for file in files]
    first, last = min(entries), max(entries)
    return (
        frozenset(without_partitions(file.path.rpartition("/")[0]) for file in files if file.log_offset == first),
        frozenset(without_partitions(file.path.rpartition("/")[0]) for file in files if file.log_offset == last),
    )


@check("SW-CHG-002", Severity.WARNING, risk="duplicate", certainty="likely")
def sources_swapped(facts: Facts) -> Findings:
    """Two sources have changed places.

    Condition: two sources of the checkpoint now read each other's data.
    Effect: Spark stores positions by source number. After a swap in the code, such as a reversed union, each
    source continues at the other's position: files are read twice or skipped.
    How to confirm: `slackwater inspect STREAM` shows the sources; compare the first and the last entry of both logs.
    Remedy: swap the sources back in the code, and check it with `slackwater check FILE`.
    Safety: it stops further damage. To remove doubled rows, process the batches since the swap again, with
    `slackwater plan replay STREAM --from batch:N`.
    References: Structured Streaming Programming Guide, "Recovery Semantics after Changes in a Streaming Query"
    """
    for one, other in combinations(facts.sources, 2):
        (first, last), (other_first, other_last) = _places(one), _places(other)
        if first and other_first and first.isdisjoint(other_first) and (first, other_first) == (other_last, last):
            one_read = min(first)
            other_read = min(other_first)
            yield Found(
                f"sources {one.name} and {other.name} have changed places: each continues at the position of the other",
                where=f"{facts.checkpoint.location}/sources/{one.name}",
                expected=f"files in {one_read}",
                found=f"files in {other_read}",
                advice="swap the sources back in the code before the query is started again",
                next=check_command(facts.snapshot.stream),
                facts={"one": one.name, "other": other.name, "one_read": one_read, "other_read": other_read},
            )
