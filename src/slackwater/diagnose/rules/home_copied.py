"""The home is a copy.

What it finds: the home is not in the folder that is recorded in it, and the recorded folder still has the original.
Why it matters: both would write to the same outputs, and each would skip or double batches of the other.
How to confirm: look for a home in the folder that the finding names.
What to do: if the copy is to be used, `slackwater plan resume STREAM --copied` says so, as `slackwater run
FILE --copied` does. The copy gets new ids, and its streams need outputs of their own.
Is the remedy safe: yes; the original keeps its outputs, and operations of the original cannot be undone in the copy.
References: docs/decisions/0054-homes-and-outputs-know-whose-they-are.md,
docs/decisions/0261-operations-of-a-copied-home.md
"""

from __future__ import annotations

from slackwater.diagnose.rules.common.home import home_rule

RULE = home_rule(
    "copied",
    "the home is a copy of {was}; what it does would change the original's outputs",
    order=111,
    doc=__doc__,
)
