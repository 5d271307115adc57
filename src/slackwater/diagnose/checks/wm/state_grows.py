"""State is never removed: no watermark, or its column is not part of the key.

What it finds: of the newest 50 or more recorded batches with rows none left fewer rows of state than the one before,
and the last quarter of them still added some.
Why it matters: every key is kept, so that batches become slower and need more memory, until one fails.
How to confirm: `slackwater ledger STREAM --batches 0..` shows the rows of state after each batch, in column `state`. A
young stream, whose watermark has not yet passed the first of its keys, grows as well, and stops.
What to do: have `withWatermark` before the stateful operator, and its column or a window of it in the key; or use
`dropDuplicatesWithinWatermark`; of a function with state set a timeout. Then `slackwater check FILE` shows what the
change means for the kept state.
Is the remedy safe: `check` compares the changed code with the kept state before anything is started.
References: Structured Streaming Programming Guide, "Handling Late Data and Watermarking"; `StateOperatorProgress`
(`numRowsTotal`)
"""

from __future__ import annotations

from collections.abc import Iterator

from slackwater.core.commands import check_command
from slackwater.core.facts import Facts
from slackwater.core.finding import Severity
from slackwater.diagnose.checks.common.check import Check
from slackwater.diagnose.checks.common.progress import Growing, never_falls

_BATCHES = 50


def find(facts: Facts) -> Iterator[Growing]:
    """The recorded batches with rows, if state only grew in them, and has not stopped."""
    batches = [one for one in facts.batches if one.input_rows]
    if len(batches) < _BATCHES:
        return
    rows = [one.state_rows for one in batches]
    if never_falls(rows) and rows[-1] > rows[-len(rows) // 4] and rows[-1] > 2 * rows[0]:
        yield Growing(rows[0], rows[-1], batches[0].batch_id, batches[-1].batch_id)


CHECK = Check(
    "SW-WM-009",
    Severity.WARNING,
    find=find,
    doc=__doc__,
    text="the state grew from {it.before} to {it.after} rows in the batches {it.first} to {it.last}, and none of them "
    "left fewer",
    risk="stuck",
    certainty="possible",
    where="batches {it.first} to {it.last}",
    expected="state that the watermark removes again",
    found="{it.after} rows",
    next=lambda facts, _: check_command(facts.snapshot.stream),
    advice="have withWatermark before the operator and its column in the key; a young stream grows for a while, too",
    needs=("history",),
)
