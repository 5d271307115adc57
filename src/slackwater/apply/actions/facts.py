"""What an action records in the journal for those after it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeAlias

ActionFacts: TypeAlias = Mapping[str, Any]
NOTHING: ActionFacts = {}
LAYOUT = "layout"
"""The query's profile, recorded when the generation was built: the pipeline may be edited before it is switched in."""

PLANNED, COMMITTED = "planned", "committed"
"""The newest batches of the new checkpoint after the query has run with it."""

BY_HAND = "by_hand"
"""How an exchange of directories that was interrupted is finished or taken back without Slackwater."""

CODE = "code"
"""The SHA-256 of the pipeline file that the generation is built with."""
