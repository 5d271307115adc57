"""What an action records in the journal for those after it."""

from __future__ import annotations

from slackwater.operations.action import ActionFacts

NOTHING: ActionFacts = {}
LAYOUT = "layout"
"""The query's profile, recorded when the generation was built: the pipeline may be edited before it is switched in."""

PLANNED, COMMITTED = "planned", "committed"
"""The newest batches of the new checkpoint after the query has run with it."""

BY_HAND = "by_hand"
"""How an exchange of directories that was interrupted is finished or taken back without Slackwater."""

PROGRAMS = "programs"
"""The programs that made what the action has built, as in ``core.state_programs``."""

KEPT = "kept"
"""What the checkpoint that is switched from has then, so that undo knows whether it is still there."""

CODE = "code"
"""The SHA-256 of the pipeline file that the generation is built with."""

COUNTED = "counted"
"""Replayed batches whose recorded number of rows was too high, with both numbers."""
