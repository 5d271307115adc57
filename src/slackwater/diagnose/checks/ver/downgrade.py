"""An older Spark continues the checkpoint.

What it finds: the last run had an older release of Spark than a run before it on this checkpoint.
Why it matters: Spark does not promise that an older release reads what a newer one wrote. It refuses logs of a newer
version; tables of a newer RocksDB and changelogs fail when state is loaded, and settings that the older one does not
know are lost.
How to confirm: `slackwater inspect STREAM` shows the oldest Spark that writes these files.
What to do: run the query with the newer release again. If it must be the older one, restore the checkpoint and the
output from copies that were made together before the upgrade.
Is the remedy safe: yes. To restore only the checkpoint is not: the output is then ahead of it, and a sink skips or
doubles batches.
References: SPARK-36519; Structured Streaming migration guide
"""

from __future__ import annotations

from collections.abc import Iterator

from slackwater.core.facts import Facts
from slackwater.core.finding import Severity
from slackwater.diagnose.checks.common.check import Check
from slackwater.diagnose.checks.common.releases import Releases, changed_release


def find(facts: Facts) -> Iterator[Releases]:
    """A last run with an older release."""
    found = changed_release(facts)
    if found is not None and not found.is_upgrade:
        yield found


CHECK = Check(
    "SW-VER-003",
    Severity.WARNING,
    find=find,
    doc=__doc__,
    text="Spark {it.now} continues a checkpoint of Spark {it.before}, which an older release may not be able to read",
    risk="stuck",
    goal="resume",
    where="{facts.checkpoint.location}",
    expected="Spark {it.before} or newer",
    found="Spark {it.now}",
    advice="run the query with Spark {it.before} again",
    needs=("history",),
)
