"""Edits of ``offsets/``, ``commits/`` and ``metadata``."""

from __future__ import annotations

from tests.doctor.cases import Case, nothing, remove

CASES = [
    Case("the entry before the newest", "SW-LOG-006", remove("checkpoint/offsets/6"), says=("batch 6", "offsets/6")),
    Case("an older entry", "SW-LOG-006", remove("checkpoint/offsets/4"), fires=False),
    Case("nothing removed", "SW-LOG-006", nothing, fires=False),
    Case("gaps of asynchronous progress tracking", "SW-LOG-006", nothing, corpus="async_progress_gaps", fires=False),
]
