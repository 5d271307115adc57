"""The releases of Spark that ran a stream."""

from slackwater.core.facts import Facts, HistoryFacts, Severity
from slackwater.core.units import minor_release
from slackwater.diagnose.catalogue import known
from slackwater.diagnose.checks.common.check import Findings, Found, check
from slackwater.diagnose.checks.common.settings import PROVIDER, settings_of


def changed_release(facts: Facts) -> tuple[str, str, bool] | None:
    """Newest earlier and last release of different minor releases, and whether the last one is newer."""
    last, *earlier = releases(facts) or [""]
    if not earlier:
        return None
    before = max(earlier, key=minor_release)
    if minor_release(before) == minor_release(last):
        return None
    return before, last, minor_release(last) > minor_release(before)


def releases(facts: Facts) -> list[str]:
    """The last run's first; none where they were not read."""
    if not isinstance(facts.history, HistoryFacts):
        return []
    generation = facts.snapshot.generation.number
    return [run.spark_version for run in facts.history.runs if run.generation == generation]


@check("SW-VER-003", Severity.WARNING, risk="stuck", goal="resume", needs=("history",))
def downgrade(facts: Facts) -> Findings:
    """An older Spark continues the checkpoint.

    Condition: the last run used an older Spark release than an earlier run on this checkpoint.
    Effect: Spark does not promise that this works. It refuses newer log versions; newer RocksDB tables and
    changelogs fail when state is loaded, and settings unknown to the older release are lost.
    How to confirm: `slackwater inspect STREAM` shows the oldest Spark that writes these files.
    Remedy: run the query with the newer release. If you need the older release, restore checkpoint and output from
    copies made together before the upgrade.
    Safety: yes. Do not restore only the checkpoint: the output is then ahead of it, and a sink skips or
    doubles batches.
    References: SPARK-36519; Structured Streaming migration guide
    """
    before, now, is_upgrade = changed_release(facts) or ("", "", True)
    if not is_upgrade:
        yield Found(
            f"Spark {now} continues a checkpoint of Spark {before}, which an older release may not be able to read",
            where=facts.checkpoint.location,
            expected=f"Spark {before} or newer",
            found=f"Spark {now}",
            advice=f"run the query with Spark {before} again",
            facts={"before": before, "now": now, "is_upgrade": False},
        )


@check("SW-VER-006", Severity.INFO, risk="wrong", certainty="possible", needs=("history",))
def known_defect(facts: Facts) -> Findings:
    """The stream ran with a Spark that has a defect which changes rows unseen.

    Condition: the last run's Spark release has a known defect that can affect this stream's operators and state
    store.
    Effect: rows are lost, doubled or changed although no error and no check shows it.
    How to confirm: read the issue in Spark's tracker. Compare the output of a time range with a batch query over the
    same input.
    Remedy: use a release with the fix. If only the state may be wrong, recompute it with `slackwater plan rebuild
    STREAM`, which leaves the output unchanged. If the output is wrong from batch N on, write it again with `slackwater
    plan replay STREAM --from batch:N`, or all of it with `slackwater plan rebuild STREAM --at earliest`.
    Safety: yes; a newer release of the same line reads the checkpoint.
    References: the issue that the finding names
    """
    release = next(iter(releases(facts)), "")
    operators = {operator.name for operator in facts.checkpoint.report.operators}
    provider = settings_of(facts.checkpoint.newest_offset).get(PROVIDER, "")
    for defect in known() if release else ():
        is_met = not operators.isdisjoint(defect.operators) and provider.endswith(defect.provider)
        if is_met and defect.is_in(release):
            yield Found(
                f"Spark {release} has the defect {defect.issue}: {defect.what}",
                where=facts.checkpoint.location,
                expected="a release without the defect",
                found=f"Spark {release}",
                advice=defect.advice,
                facts={"release": release, "issue": defect.issue, "what": defect.what, "advice": defect.advice},
            )


_FIRST_WITH = {("offsets", 2): (4, 2), ("commits", 2): (4, 0), ("commits", 3): (4, 2)}
"""The first Spark that reads each log version; all read version 1."""


@check("SW-VER-001", Severity.STOP, risk="stuck", goal="resume", also=("LOG-04",))
def log_too_new(facts: Facts) -> Findings:
    """A log has a version that the Spark of the query cannot read.

    Condition: a log entry has a newer format version than the last run's Spark can read, or than Slackwater knows.
    Effect: Spark refuses to start with UnsupportedLogVersion: a newer Spark has continued the query meanwhile.
    How to confirm: `slackwater inspect LOCATION` shows the versions of the logs and the oldest Spark that writes them.
    Remedy: run the query with the Spark that wrote the logs, or newer. If `slackwater doctor LOCATION` does not
    know the version, update Slackwater too.
    Safety: yes; nothing is changed. Do not edit the version line: Spark then parses the entry by another
    layout, and can read a file twice.
    References: SPARK-36519
    """
    unknown = [one for one in facts.checkpoint.damage if one.kind == "too-new" and not one.path.startswith("state/")]
    entries = [(one.path, one.expected, one.found, "a newer Spark than 4.3") for one in unknown]
    history, report = facts.history, facts.checkpoint.report
    if not entries and isinstance(history, HistoryFacts) and history.runs:
        spark = history.runs[0].spark_version
        versions = (("offsets", report.offsets_version), ("commits", report.commits_version))
        entries = [
            (
                folder,
                f"what Spark {spark} of the last run reads",
                f"v{version}",
                f"Spark {first[0]}.{first[1]} or newer",
            )
            for folder, version in versions
            if (first := _FIRST_WITH.get((folder, version or 1))) is not None and minor_release(spark) < first
        ]
    for path, expected, found, needed in entries:
        yield Found(
            f"{path} has format version {found}, which needs {needed}: an older Spark refuses to start",
            where=f"{facts.checkpoint.location}/{path}",
            expected=expected,
            found=found,
            advice=f"run the query with {needed}",
            damage=(path,),
            facts={"path": path, "expected": expected, "found": found, "needed": needed},
        )


@check("SW-VER-002", Severity.INFO, risk="none", needs=("history",))
def upgrade(facts: Facts) -> Findings:
    """A newer Spark continues the checkpoint.

    Condition: the last run used a newer Spark release than earlier runs on this checkpoint.
    Effect: newer releases read older logs and state. Pinned settings keep their values; other settings keep the
    old release's defaults.
    How to confirm: `slackwater inspect STREAM` lists the pinned settings; the driver's log names each default that is
    used.
    Remedy: nothing. Spark does not promise a downgrade: keep copies of checkpoint and output from the same time
    until the new release has proven itself.
    Safety: yes; nothing is changed.
    References: Structured Streaming migration guide
    """
    before, now, is_upgrade = changed_release(facts) or ("", "", False)
    if is_upgrade:
        yield Found(
            f"Spark {now} continues a checkpoint of Spark {before}: what the checkpoint does not pin keeps the default "
            "of the older release",
            where=facts.checkpoint.location,
            expected=f"Spark {before}",
            found=f"Spark {now}",
            facts={"before": before, "now": now, "is_upgrade": True},
        )
