"""Old generations and the backups of operations: only what was asked for is deleted, however often it is killed."""

import os
import random
import shutil
import sys
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from slackwater.cli.verbs.prune import Prunable, delete_prunable, prunable
from slackwater.core.errors import LeaseHeld, NotFound, Refused
from slackwater.core.records import OperationRecord
from slackwater.ledger.lease import RUN, Lease
from slackwater.operations.plan.plan import Plan
from slackwater.storage.open import Location
from tests.support.errors import raises_code
from tests.support.homes import STATELESS, STREAM, HomeSpec
from tests.support.kill_points import count_commits, kill_points
from tests.support.memory import folder_in_memory
from tests.support.rebuilds import Project, StubReplayer, make_project, old_files, reset_behind

EVERY = int(os.environ.get("SLACKWATER_TEST_EVERY", "5"))
POINTS = range(1 + random.randrange(EVERY), sys.maxsize, EVERY)
"""Of the changes each run of the tests takes a part, another one each time."""


@pytest.fixture
def scene(tmp_path: Path) -> Iterator[tuple[Project, list[Plan]]]:
    """A stream in generation 3: the first rebuild cut the sink back to batch 3, the second changed nothing in it."""
    memory = Path("/dev/shm")  # noqa: S108 - the folder gets a unique name
    with TemporaryDirectory(dir=memory if memory.is_dir() else tmp_path) as folder:
        project = make_project(Path(folder) / "project")
        plans = []
        for target in ("batch:3", "last-written"):
            plans.append(project.plan(target))
            project.apply(plans[-1])
        yield project, plans


def pruned(project: Project, keep: int, stream: str | None = None) -> tuple[Prunable, ...]:
    with project.open() as workspace:
        return delete_prunable(workspace, stream, keep, lambda _: None)


def statuses(project: Project) -> list[str]:
    with project.open() as workspace:
        return [one.status for one in workspace.ledger.operations(STREAM)]


def backup(project: Project, plan: Plan) -> Path:
    return project.home / "streams" / "clicks" / "per_page" / "operations" / plan.id / "backup"


def test_only_the_oldest_generation_is_deleted(scene: tuple[Project, list[Plan]]) -> None:
    project, plans = scene
    kept = project.files(project.checkpoint(2), project.checkpoint(3), project.folder / "out")
    assert backup(project, plans[0]).is_dir()
    (removed,) = pruned(project, keep=1)
    assert (removed.stream, removed.generations, removed.operations) == (STREAM, (1,), (plans[0].id,))
    assert removed.bytes > 0
    assert not project.checkpoint(1).exists()
    assert not backup(project, plans[0]).exists()
    assert project.files(project.checkpoint(2), project.checkpoint(3), project.folder / "out") == kept
    assert statuses(project) == ["pruned", "applied"]
    assert pruned(project, keep=1) == ()


def test_what_is_kept_can_still_be_undone(scene: tuple[Project, list[Plan]]) -> None:
    project, plans = scene
    before = project.files(project.checkpoint(2), project.folder / "out")
    pruned(project, keep=1)
    with raises_code(Refused, "undo-pruned"):
        project.undo(plans[0])
    assert not project.apply(plans[0])
    assert project.undo(plans[1])
    assert project.files(project.checkpoint(2), project.folder / "out") == before
    assert not project.checkpoint(3).exists()


def test_with_none_kept_the_generation_in_use_stays(scene: tuple[Project, list[Plan]]) -> None:
    project, plans = scene
    in_use = project.files(project.checkpoint(3))
    (removed,) = pruned(project, keep=0, stream=STREAM)
    assert (removed.generations, removed.operations) == ((1, 2), tuple(plan.id for plan in plans))
    assert project.files(project.checkpoint(3)) == in_use


def test_the_generation_before_a_backfill_is_one_to_go_back_to(tmp_path: Path) -> None:
    """That of the backfill's own batch is not: it was never in use."""
    project = reset_behind(make_project(tmp_path, HomeSpec(state=None, layout=STATELESS)), 2)
    before = project.in_use()
    plan = project.plan_backfill(old_files(project, 2))
    project.apply(plan, StubReplayer(project.folder / "clicks.py", STATELESS))

    (removed,) = pruned(project, keep=1)

    assert removed.generations == (1, 3)
    project.undo(plan)
    after = project.in_use()
    assert after == {name: content for name, content in before.items() if name in after}
    assert [path.name for path in project.checkpoint(2).parent.iterdir()] == ["0002"]


def test_after_it_the_next_rebuild_takes_a_new_number(scene: tuple[Project, list[Plan]]) -> None:
    project, _ = scene
    pruned(project, keep=0)
    plan = project.plan()
    project.apply(plan)
    assert project.checkpoint(4).is_dir()


def test_ranges_that_only_the_deleted_folder_had_stay_recorded(tmp_path: Path) -> None:
    project = make_project(tmp_path)
    project.apply(project.plan("batch:3"))
    with project.open() as workspace:
        before = workspace.ledger.lines(STREAM, "offsets", generation=1)
    pruned(project, keep=0)
    with project.open() as workspace:
        assert workspace.ledger.lines(STREAM, "offsets", generation=1) == before
    assert set(before) == set(range(7))


def test_a_killed_prune_is_finished_by_the_next(scene: tuple[Project, list[Plan]]) -> None:
    project, plans = scene
    saved = project.folder.with_name("saved")
    shutil.copytree(project.folder, saved)

    def restore() -> None:
        shutil.rmtree(project.folder)
        shutil.copytree(saved, project.folder)

    kept = project.files(project.checkpoint(2), project.checkpoint(3), project.folder / "out")
    points = 0
    for points in kill_points(lambda: pruned(project, keep=1), project.folder, restore, every=POINTS):
        assert project.files(project.checkpoint(2), project.checkpoint(3), project.folder / "out") == kept
        pruned(project, keep=1)
        assert [path.name for path in sorted(project.checkpoint(1).parent.iterdir())] == ["0002", "0003"]
        assert list(backup(project, plans[0]).parent.glob("*backup*")) == []
        assert statuses(project) == ["pruned", "applied"], f"killed at change {points}"
    assert points > len(list(saved.rglob("0001/**/*"))) - EVERY


def test_a_prune_that_was_killed_leaves_no_output_that_was_replaced(tmp_path: Path) -> None:
    count_commits()
    with folder_in_memory() as folder:
        project = make_project(folder / "project")
        project.claim_output()
        project.apply(project.plan("batch:4", goal="replay", output="swap"))
        shutil.copytree(project.folder, tmp_path / "saved")

        def restore() -> None:
            shutil.rmtree(project.folder)
            shutil.copytree(tmp_path / "saved", project.folder)

        replaced = project.folder.glob(".out.slackwater-*")
        assert list(replaced)
        points = 0
        for points in kill_points(lambda: pruned(project, keep=0), project.folder, restore, every=POINTS):
            pruned(project, keep=0)
            assert list(project.folder.glob(".out.slackwater-*")) == [], f"killed at change {points}"
            assert pruned(project, keep=0) == ()
        assert points > 10


def test_a_running_stream_is_not_disturbed(scene: tuple[Project, list[Plan]]) -> None:
    project, _ = scene
    with project.open() as workspace:
        folder = workspace.home.stream_folder("clicks", "per_page")
        with Lease.acquire(workspace.ledger, STREAM, folder, RUN) as lease:
            assert len(delete_prunable(workspace, None, 1, lambda _: None)) == 1
            lease.heartbeat()


def test_another_command_at_work_is_waited_for_by_the_user(scene: tuple[Project, list[Plan]]) -> None:
    project, _ = scene
    before = project.in_use()
    with project.open() as workspace:
        folder = workspace.home.stream_folder("clicks", "per_page")
        with Lease.acquire(workspace.ledger, STREAM, folder, "apply rebuild"), pytest.raises(LeaseHeld):
            delete_prunable(workspace, None, 1, lambda _: None)
    assert project.in_use() == before


def test_an_operation_that_has_not_ended_comes_first(scene: tuple[Project, list[Plan]]) -> None:
    project, _ = scene
    before = project.in_use()
    with project.open() as workspace:
        left = OperationRecord("20260105T093000-1a2b3c", STREAM, "rebuild", "applying", 1, summary="plan.json")
        workspace.ledger.begin_operation(left)
        with pytest.raises(Refused) as refused:
            delete_prunable(workspace, None, 1, lambda _: None)
    assert refused.value.code == "operation-unfinished"
    assert project.in_use() == before


@pytest.mark.parametrize("name", ["0099", "99", "old", ".pruned-old", "0000000001"])
def test_what_nothing_has_made_stays_and_is_named(scene: tuple[Project, list[Plan]], name: str) -> None:
    project, _ = scene
    other = project.checkpoint(1).with_name(name)
    (other / "commits").mkdir(parents=True)
    (other / "commits" / "0").write_text("of another program")
    kept = project.files(other)

    (removed,) = pruned(project, keep=0)

    assert (removed.generations, removed.left) == ((1, 2), (Location(other),))
    assert project.files(other) == kept
    (again,) = pruned(project, keep=0)
    assert (again.has_something, again.left) == (False, (Location(other),))


def test_an_unknown_stream(scene: tuple[Project, list[Plan]]) -> None:
    project, _ = scene
    with project.open() as workspace, raises_code(NotFound, "stream-unknown"):
        prunable(workspace, "nothing", 1)
