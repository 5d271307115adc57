"""What ``apply`` finds of the present query when Spark is started: it may need older batches than the plan has."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pytest

from slackwater.core.errors import Refused
from tests.support.homes import LAYOUT
from tests.support.rebuilds import CLEAN, StubReplayer, make_project

MINUTE_MS = 60_000


def applied(folder: Path, layout: Mapping[str, object]) -> str:
    """The outcome of a plan with a retention of a minute, where the present query has this profile."""
    project = make_project(folder, CLEAN)
    plan = project.plan(retention_ms=MINUTE_MS)
    assert plan.facts.contributing > 0
    return project.apply(plan, StubReplayer(project.folder / "clicks.py", layout)).outcome


def test_event_times_of_one_watermark_are_no_evidence_where_it_has_several(tmp_path: Path) -> None:
    delays = {"watermark_delays_ms": [600_000, 600_000]}

    with pytest.raises(Refused) as caught:
        applied(tmp_path, LAYOUT | delays)

    assert caught.value.code == "retention-longer"
    assert "--retention all" in (caught.value.hint or "")


def test_a_query_as_it_was_recorded_needs_no_others(tmp_path: Path) -> None:
    assert applied(tmp_path, LAYOUT) == "applied"
