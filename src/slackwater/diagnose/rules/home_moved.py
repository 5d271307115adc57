"""The home was moved.

What it finds: the home is not in the folder that is recorded in it, and the recorded folder does not have it any
more.
Why it matters: locations of checkpoints in the ledger are those of the old folder; a start could not find them.
How to confirm: compare `--home` with the folder that the finding names.
What to do: if the home was moved on purpose, `slackwater plan resume STREAM --moved` says so,
as `slackwater run FILE --moved` does.
Is the remedy safe: yes; the recorded locations below the old folder are replaced by those below the new one.
References: docs/decisions/0054-homes-and-outputs-know-whose-they-are.md
"""

from __future__ import annotations

from slackwater.diagnose.rules.common.home import home_rule

RULE = home_rule("moved", "the home was moved here from {was}", order=110, doc=__doc__)
