"""The releases of Spark that ran a stream."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from slackwater.core.facts import Facts, HistoryFacts
from slackwater.core.finding import Severity
from slackwater.diagnose.checks.common.check import Check
from slackwater.diagnose.checks.common.settings import PROVIDER, settings_of
from slackwater.diagnose.defects import known


class Releases(NamedTuple):
    """The newest release of earlier runs, that of the last run, and whether the last one is newer."""

    before: str
    now: str
    is_upgrade: bool


def changed_release(facts: Facts) -> Releases | None:
    """The releases, where the last run of this checkpoint had another minor release than the newest one before."""
    last, *earlier = releases(facts) or [""]
    if not earlier:
        return None
    before = max(earlier, key=minor_release)
    if minor_release(before) == minor_release(last):
        return None
    return Releases(before, last, minor_release(last) > minor_release(before))


def releases(facts: Facts) -> list[str]:
    """The releases of the runs of this checkpoint, the last run's first; none where they were not read."""
    if not isinstance(facts.history, HistoryFacts):
        return []
    generation = facts.snapshot.generation.number
    return [run.spark_version for run in facts.history.runs if run.generation == generation]


def minor_release(version: str) -> tuple[int, ...]:
    """``(4, 0)`` of ``4.0.5``."""
    return tuple(int(part) for part in version.split(".")[:2] if part.isdigit())


@Check(
    "SW-VER-003",
    Severity.WARNING,
    text="Spark {it.now} continues a checkpoint of Spark {it.before}, which an older release may not be able to read",
    risk="stuck",
    goal="resume",
    where="{facts.checkpoint.location}",
    expected="Spark {it.before} or newer",
    found="Spark {it.now}",
    advice="run the query with Spark {it.before} again",
    needs=("history",),
)
def downgrade(facts: Facts) -> Iterator[Releases]:
    """An older Spark continues the checkpoint.

    What it finds: the last run had an older release of Spark than a run before it on this checkpoint.
    Why it matters: Spark does not promise that an older release reads what a newer one wrote. It refuses logs of a
    newer version; tables of a newer RocksDB and changelogs fail when state is loaded, and settings that the older one
    does not know are lost.
    How to confirm: `slackwater inspect STREAM` shows the oldest Spark that writes these files.
    What to do: run the query with the newer release again. If it must be the older one, restore the checkpoint and the
    output from copies that were made together before the upgrade.
    Is the remedy safe: yes. To restore only the checkpoint is not: the output is then ahead of it, and a sink skips or
    doubles batches.
    References: SPARK-36519; Structured Streaming migration guide
    """
    found = changed_release(facts)
    if found is not None and not found.is_upgrade:
        yield found


class Affected(NamedTuple):
    """The release of the last run, and a defect that it has: its issue, what it is, and what to do."""

    release: str
    issue: str
    what: str
    advice: str


@Check(
    "SW-VER-006",
    Severity.INFO,
    text="Spark {it.release} has the defect {it.issue}: {it.what}",
    risk="wrong",
    certainty="possible",
    where="{facts.checkpoint.location}",
    expected="a release without the defect",
    found="Spark {it.release}",
    advice="{it.advice}",
    needs=("history",),
)
def known_defect(facts: Facts) -> Iterator[Affected]:
    """The stream ran with a Spark that has a defect which changes rows unseen.

    What it finds: the release of the last run has a known defect of Spark that loses, doubles or changes rows without
    any error, and that this stream's operators and state store can meet.
    Why it matters: nothing fails, and no file shows that the defect has struck: the output may be wrong while every
    check of the checkpoint passes.
    How to confirm: read the issue in Spark's tracker. Compare the output of a time in question with that of a batch
    query over the same input.
    What to do: run the query with a release that has the correction. If only the state may be wrong, recompute it with
    `slackwater plan rebuild STREAM`, which leaves the output as it is. If the output is wrong from batch N on, write it
    again with `slackwater plan replay STREAM --from batch:N`, or all of it with `slackwater plan rebuild STREAM --at
    earliest`.
    Is the remedy safe: yes; a newer release of the same line reads the checkpoint.
    References: the issue that the finding names
    """
    release = next(iter(releases(facts)), "")
    operators = {operator.name for operator in facts.checkpoint.report.operators}
    provider = settings_of(facts.checkpoint.newest_offset).get(PROVIDER, "")
    for defect in known() if release else ():
        is_met = not operators.isdisjoint(defect.operators) and provider.endswith(defect.provider)
        if is_met and defect.is_in(release):
            yield Affected(release, defect.issue, defect.what, defect.advice)


_FIRST_WITH = {("offsets", 2): (4, 2), ("commits", 2): (4, 0), ("commits", 3): (4, 2)}
"""The first Spark that reads each version of a log; version 1 is read by all."""


class TooNew(NamedTuple):
    """The entry, its version, what would be read, and which Spark is needed."""

    path: str
    expected: str
    found: str
    needed: str


def _not_for_last_run(facts: Facts) -> Iterator[TooNew]:
    history, report = facts.history, facts.checkpoint.report
    if not isinstance(history, HistoryFacts) or not history.runs:
        return
    spark = history.runs[0].spark_version
    for folder, version in (("offsets", report.offsets_version), ("commits", report.commits_version)):
        needed = _FIRST_WITH.get((folder, version or 1))
        if needed is not None and minor_release(spark) < needed:
            needs = f"Spark {needed[0]}.{needed[1]} or newer"
            yield TooNew(folder, f"what Spark {spark} of the last run reads", f"v{version}", needs)


@Check(
    "SW-VER-001",
    Severity.STOP,
    text="{it.path} has format version {it.found}, which needs {it.needed}: an older Spark refuses to start",
    risk="stuck",
    goal="resume",
    where="{facts.checkpoint.location}/{it.path}",
    expected="{it.expected}",
    found="{it.found}",
    advice="run the query with {it.needed}",
    also=("LOG-04",),
    damage=lambda it: (it.path,),
)
def log_too_new(facts: Facts) -> Iterator[TooNew]:
    """A log has a version that the Spark of the query cannot read.

    What it finds: an entry of a log names a format version that is newer than the last run's Spark reads, or newer than
    all that Slackwater knows.
    Why it matters: Spark refuses to start with UnsupportedLogVersion. A newer Spark has continued the query meanwhile,
    and writes what the older one cannot read.
    How to confirm: `slackwater inspect LOCATION` shows the versions of the logs and the oldest Spark that writes them.
    What to do: run the query with the Spark that wrote the logs, or a newer one. If `slackwater doctor LOCATION` does
    not know the version, update Slackwater too.
    Is the remedy safe: yes; nothing is changed. To edit the version line is not: Spark then parses the entry by another
    layout, and has been seen to read a file twice.
    References: SPARK-36519
    """
    unknown = [one for one in facts.checkpoint.damage if one.kind == "too-new" and not one.path.startswith("state/")]
    for damage in unknown:
        yield TooNew(damage.path, damage.expected, damage.found, "a newer Spark than 4.3")
    if not unknown:
        yield from _not_for_last_run(facts)


@Check(
    "SW-VER-002",
    Severity.INFO,
    text="Spark {it.now} continues a checkpoint of Spark {it.before}: what the checkpoint does not pin keeps the "
    "default of the older release",
    risk="none",
    where="{facts.checkpoint.location}",
    expected="Spark {it.before}",
    found="Spark {it.now}",
    needs=("history",),
)
def upgrade(facts: Facts) -> Iterator[Releases]:
    """A newer Spark continues the checkpoint.

    What it finds: the last run had a newer release of Spark than the runs before it on this checkpoint.
    Why it matters: logs and state of older releases are read. Settings that the checkpoint pins keep their values, and
    those that it does not pin keep the defaults of the old release, not those of the new one.
    How to confirm: `slackwater inspect STREAM` lists the pinned settings; the driver's log names each default that is
    used.
    What to do: nothing. Keep a copy of the checkpoint and of the output of the same time until the new release has
    proven itself: a downgrade is not promised by Spark.
    Is the remedy safe: yes; nothing is changed.
    References: Structured Streaming migration guide
    """
    found = changed_release(facts)
    if found is not None and found.is_upgrade:
        yield found
