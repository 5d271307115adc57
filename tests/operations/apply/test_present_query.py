"""What ``apply`` finds of the present query when Spark is started: it may need older batches than the plan has.

The files of the pipeline may be those of the recorded runs, and the query not: it can read settings from other files.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

import pytest

from slackwater.core.errors import Refused
from slackwater.core.program import QueryProfile, digest_of
from slackwater.operations.plan.context import bounds_of
from slackwater.operations.plan.document import ALL_MS
from tests.support.errors import raises_code
from tests.support.homes import LAYOUT, STREAM
from tests.support.rebuilds import CLEAN, Project, StubReplayer, make_project

MINUTE_MS = 60_000
DIGESTED = LAYOUT | {"rows_digest": "quality >= 3", "retention_ms": MINUTE_MS}
"""A query that filters by a setting below its watermark."""
WIDER = DIGESTED | {"rows_digest": "quality >= 0"}


def applied(folder: Path, layout: Mapping[str, object]) -> bool:
    """Whether a plan is applied with a retention of a minute, where the present query has this profile."""
    project = make_project(folder, CLEAN)
    plan = project.plan(retention_ms=MINUTE_MS)
    assert plan.facts.contributing > 0
    return project.apply(plan, StubReplayer(project.folder / "clicks.py", layout))


def test_event_times_of_one_watermark_are_no_evidence_where_it_has_several(tmp_path: Path) -> None:
    delays = {"watermark_delays_ms": [600_000, 600_000]}

    with raises_code(Refused, "retention-longer", says="--retention all"):
        applied(tmp_path, LAYOUT | delays)


def test_a_query_as_it_was_recorded_needs_no_others(tmp_path: Path) -> None:
    assert applied(tmp_path, LAYOUT)


def test_equal_files_that_read_other_rows_are_replayed_from_the_first_batch(tmp_path: Path) -> None:
    project = make_project(tmp_path, replace(CLEAN, layout=DIGESTED))
    plan, replayer = project.plan(), StubReplayer(tmp_path / "clicks.py", WIDER)
    assert plan.facts.contributing > 0
    assert plan.request.query_read

    with raises_code(Refused, "retention-longer", expected="batches from 0", says="--retention all"):
        project.apply(plan, replayer)

    again = project.plan(retention_ms=ALL_MS)
    assert again.facts.contributing == 0
    # Rows that the narrower filter left out are counted now.
    assert project.apply(again, replace(replayer, rows=101))


def _program(least: int) -> dict[str, object]:
    rows = {"base": "source 0", "filters": [f"(quality >= {least})"]}
    return {
        "spark_version": "4.1.3",
        "sources": [{"kind": "json", "location": "clicks"}],
        "operators": [{"kind": "aggregate", "inputs": [rows]}],
    }


@dataclass
class OtherRelease(StubReplayer):
    """The present query in a release of Spark that optimises the same query to another plan."""

    spark_version: str = "4.3.0"
    layout: Mapping[str, object] = field(default_factory=lambda: WIDER)
    least: int = 3

    def program(self, settings: Mapping[str, str] | None = None) -> Mapping[str, object] | None:
        return {**_program(self.least), "spark_version": self.spark_version, **(settings or {})}


@pytest.fixture
def upgraded(tmp_path: Path) -> Project:
    """The batches ran on 4.1.3, with a program that is recorded."""
    project = make_project(tmp_path, replace(CLEAN, layout=DIGESTED))
    with project.open() as workspace:
        run = workspace.ledger.last_run(STREAM)
        assert run is not None
        workspace.ledger.record_rows_digest(run.id, run.rows_digest, digest_of(_program(3)))
        workspace.ledger.update_generation(STREAM, 1, programs=[{"after": -1, "program": _program(3)}])
    return project


def test_event_times_count_after_a_change_of_the_release(upgraded: Project) -> None:
    plan = upgraded.plan()
    assert plan.facts.contributing > 0

    assert upgraded.apply(plan, OtherRelease(upgraded.folder / "clicks.py"))


def test_they_do_not_count_where_a_setting_has_changed_with_the_release(upgraded: Project) -> None:
    plan, replayer = upgraded.plan(), OtherRelease(upgraded.folder / "clicks.py", least=0)

    with raises_code(Refused, "retention-longer", expected="batches from 0", says="--retention all"):
        upgraded.apply(plan, replayer)

    assert upgraded.apply(upgraded.plan(retention_ms=ALL_MS), replayer)


def test_they_do_not_count_where_a_program_of_the_old_release_is_not_recorded_any_more(upgraded: Project) -> None:
    """It may have read other rows: of equal files the present query reads all."""
    with upgraded.open() as workspace:
        later = {**_program(0), "spark_version": "4.3.0"}
        workspace.ledger.update_generation(STREAM, 1, programs=[{"after": -1, "program": later}])
    plan, replayer = upgraded.plan(), OtherRelease(upgraded.folder / "clicks.py", least=0)

    with raises_code(Refused, "retention-longer", expected="batches from 0"):
        upgraded.apply(plan, replayer)

    assert upgraded.apply(upgraded.plan(retention_ms=ALL_MS), replayer)


@pytest.mark.parametrize(
    ("code", "rows", "release", "is_read"),
    [
        ("present", "quality >= 3", "4.1.3", False),
        ("present", None, "4.1.3", False),
        ("other", None, "4.1.3", True),
        ("present", "quality >= 0", "4.1.3", True),
        ("present", "quality >= 3, as 4.3 optimises it", "4.3.0", False),
        ("other", "quality >= 3", "4.3.0", True),
    ],
)
def test_the_query_is_read_where_the_newest_run_was_another(
    tmp_path: Path, code: str, rows: str | None, release: str, is_read: bool
) -> None:
    """Its profile is the recorded one, though it has run no batch."""
    project = make_project(tmp_path, replace(CLEAN, layout=DIGESTED))
    with project.open() as workspace:
        ledger = workspace.ledger
        first = ledger.last_run(STREAM)
        assert first is not None
        run = ledger.begin_run(STREAM, 1, release, settings={}, code=first.code if code == "present" else code)
        ledger.record_rows_digest(run.id, rows)
        ledger.end_run(run.id, "finished", None)

    assert project.plan_unread("rebuild", "last-written", "").request.query_read is not is_read


@pytest.mark.parametrize(
    ("present", "recorded", "delay"),
    [((60,), (60,), 60), ((3600,), (60,), 3600), ((60,), (3600,), 3600), ((60,), (60, 60), None), ((), (60,), None)],
)
def test_the_longer_delay_counts(present: tuple[int, ...], recorded: tuple[int, ...], delay: int | None) -> None:
    """The recorded one can be that of code that was rolled back."""
    profile = replace(QueryProfile.from_json(LAYOUT), watermark_delays_ms=present)

    state = bounds_of(profile, replace(profile, watermark_delays_ms=recorded), "append")

    assert state.delay_ms == delay


BY_ORDER = LAYOUT | {"by_order": ["first", "collect_list"]}


@pytest.mark.parametrize("goal", ["rebuild", "replay"])
def test_aggregates_by_the_order_of_rows_are_recomputed_at_the_users_word(tmp_path: Path, goal: str) -> None:
    project = make_project(tmp_path, replace(CLEAN, state=None, layout=BY_ORDER | {"retention_ms": MINUTE_MS}))

    with raises_code(Refused, "state-not-reproducible", found="first, collect_list") as caught:
        project.plan("batch:4", goal=goal)

    option = "--at" if goal == "rebuild" else "--from"
    assert f"slackwater plan {goal} {STREAM} {option} batch:4 --row-order any" in (caught.value.hint or "")
    plan = project.plan("batch:4", goal=goal, row_order="any")
    assert plan.facts.contributing > 0, "how far back rows matter is known"
    assert any("first, collect_list" in risk for risk in plan.risks)
    assert project.apply(plan, StubReplayer(tmp_path / "clicks.py", BY_ORDER))


def test_a_recorded_profile_may_lack_them(tmp_path: Path) -> None:
    project = make_project(tmp_path, CLEAN)

    with raises_code(Refused, "state-not-reproducible"):
        project.apply(project.plan(), StubReplayer(tmp_path / "clicks.py", BY_ORDER))


def test_a_plan_that_replays_says_that_tables_are_read_as_they_are_now(tmp_path: Path) -> None:
    project = make_project(tmp_path, replace(CLEAN, layout=LAYOUT | {"reads_tables": True}))

    assert any("not a stream" in risk for risk in project.plan().risks)
    # Its state is copied.
    assert not any("not a stream" in risk for risk in project.plan("batch:5", goal="replay").risks)
