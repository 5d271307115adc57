from __future__ import annotations

from slackwater.operations.action import ActionFacts

NOTHING: ActionFacts = {}
LAYOUT = "layout"
"""The pipeline may be edited between build and switch."""

PLANNED, COMMITTED = "planned", "committed"
"""The newest batches of the new checkpoint after the query has run."""

BY_HAND = "by_hand"
"""How to finish or undo an interrupted exchange of directories without Slackwater."""

PROGRAMS = "programs"
"""The programs that built it, as in ``core.state_programs``."""

KEPT = "kept"
"""Identifies the old checkpoint, for undo."""

CODE = "code"
"""The SHA-256 of the pipeline file that built the generation."""

COUNTED = "counted"
"""Replayed batches with a recorded number of rows that was too high, and both numbers."""
