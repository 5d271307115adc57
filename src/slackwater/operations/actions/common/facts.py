from __future__ import annotations

from slackwater.operations.action import ActionFacts

NOTHING: ActionFacts = {}
LAYOUT = "layout"
"""The query's profile when the generation was built: the pipeline may be edited before the switch."""

PLANNED, COMMITTED = "planned", "committed"
"""The newest batches of the new checkpoint after the query has run."""

BY_HAND = "by_hand"
"""How to finish or undo an interrupted exchange of directories without Slackwater."""

PROGRAMS = "programs"
"""The programs that built it, as in ``core.state_programs``."""

KEPT = "kept"
"""What the old checkpoint has at the switch, so that undo can recognise it."""

CODE = "code"
"""The SHA-256 of the pipeline file that built the generation."""

COUNTED = "counted"
"""Replayed batches whose recorded number of rows was too high, with both numbers."""
