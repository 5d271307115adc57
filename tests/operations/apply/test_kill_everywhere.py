"""Apply and undo, killed before every file operation and every commit of the ledger, and then continued or undone.

After continuing, everything is as an uninterrupted apply leaves it; after undo, every original byte is there again and
nothing that was built is left; and then the same plan can be applied.
"""

import os
import random
import shutil
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from slackwater.core.errors import Refused
from slackwater.core.sink import OutputTreatment
from slackwater.operations.plan.plan import Plan
from tests.operations.apply.test_adopted import checked, is_known
from tests.support.homes import LAYOUT, STATELESS, HomeSpec
from tests.support.kill_points import count_commits, kill_points
from tests.support.memory import folder_in_memory
from tests.support.rebuilds import Project, StubReplayer, make_project, old_files, reset_behind
from tests.support.stages import three_stages

SEED = int(os.environ.get("SLACKWATER_TEST_SEED", random.randrange(2**32)))


REBUILD: tuple[str, str, OutputTreatment] = ("rebuild", "batch:3", "cut")
REPLAY: tuple[str, str, OutputTreatment] = ("replay", "batch:4", "swap")
"""Its actions include all of a resume."""
BACKFILL: tuple[str, str, OutputTreatment] = ("backfill", "earliest", "keep")
ASIDE: tuple[str, str, OutputTreatment] = ("backfill", "earliest", "aside")
SIDE = "side"
"""Where its rows go."""
OLDER = 2
"""How many files the backfill reads."""
BACKFILLED = 2
LEFT = f"out/older-{BACKFILLED}.parquet"

STAGES: tuple[str, str, OutputTreatment] = ("replay", "batch:4", "cut")
"""With the two stages that have read what is cut: three times the changes."""

EVERY = {"rebuild": 9, "replay": 18, "backfill": 20}
"""Of the changes each run of the tests takes a part, another one each time; the first actions are those of all goals.
``SLACKWATER_TEST_EVERY=1`` takes all."""

EVERY_OF_STAGES = 45


count_commits()


class Scene:
    """A project that can be put back to one of several saved states."""

    def __init__(self, folder: Path, goal: str, target: str, output: OutputTreatment) -> None:
        self._folder, self._layout = folder, LAYOUT
        later = (goal, target, output) == STAGES
        every = int(os.environ.get("SLACKWATER_TEST_EVERY", EVERY_OF_STAGES if later else EVERY[goal]))
        self.points = range(1 + SEED % every, sys.maxsize, every)
        if goal == "backfill":
            self._layout = STATELESS
            made = make_project(
                folder / "project", HomeSpec(planned=1, committed=1, written=1, state=None, layout=STATELESS)
            )
            self.project: Project = reset_behind(made, OLDER)
            self.original = self.project.in_use()
            into = self.project.folder / SIDE if output == "aside" else None
            self.plan: Plan = self.project.plan_backfill(old_files(self.project, OLDER), into)
        else:
            self.project = (three_stages if later else make_project)(folder / "project")
            self.project.claim_output()
            self.original = self.project.in_use()
            self.plan = self.project.plan(target, goal=goal, output=output, downstream=later)
        self.save("planned")

    def in_use(self) -> dict[str, str]:
        """The same without a file that the batch of a backfill left when it was killed: the manifest names it not."""
        found = self.project.in_use() | self.project.files(self.project.folder / SIDE)
        newest = f"out/_spark_metadata/{BACKFILLED}"
        return found if newest in found else {name: one for name, one in found.items() if name != LEFT}

    def apply(self) -> None:
        self.project.apply(self.plan, StubReplayer(self.project.folder / "clicks.py", self._layout))

    def save(self, name: str) -> None:
        shutil.copytree(self.project.folder, self._folder / name)

    def restore(self, name: str) -> None:
        shutil.rmtree(self.project.folder)
        shutil.copytree(self._folder / name, self.project.folder)


@pytest.fixture
def scene(request: pytest.FixtureRequest) -> Iterator[Scene]:
    with folder_in_memory() as folder:
        yield Scene(folder, *getattr(request, "param", REBUILD))


@pytest.fixture
def applied(scene: Scene) -> dict[str, str]:
    """What is in use after an uninterrupted apply; the scene is restored to before it."""
    scene.apply()
    found = scene.in_use()
    scene.save("applied")
    scene.restore("planned")
    assert found != scene.original
    assert scene.in_use() == scene.original
    return found


@pytest.mark.parametrize("scene", [REBUILD, REPLAY, BACKFILL, ASIDE, STAGES], ids=" ".join, indirect=True)
def test_a_killed_apply_is_continued_or_undone(scene: Scene, applied: dict[str, str]) -> None:
    choose = random.Random(SEED)
    project, plan = scene.project, scene.plan
    points = kill_points(scene.apply, project.folder, lambda: scene.restore("planned"), every=scene.points)
    count = 0
    for count in points:
        then = choose.choice(["continue", "undo"])
        where = f"seed {SEED}, apply killed before change {count}, then {then}"
        if then == "continue":
            checked(scene.apply, where)
            assert scene.in_use() == applied, where
        elif is_known(project, plan):
            checked(lambda: project.undo(plan), where)
            assert scene.in_use() == scene.original, where
            if choose.random() < 1 / 3:
                checked(scene.apply, f"{where}, then apply")
                assert scene.in_use() == applied, f"{where}, then apply"
        _is_settled(project, where)
    assert count > 50, f"only {count} changes were counted"
    assert scene.in_use() == applied


@pytest.mark.parametrize("scene", [REBUILD, BACKFILL, ASIDE, STAGES], ids=" ".join, indirect=True)
def test_a_killed_undo_is_continued_or_applied_again(scene: Scene, applied: dict[str, str]) -> None:
    choose = random.Random(SEED)
    project, plan = scene.project, scene.plan
    points = kill_points(
        lambda: project.undo(plan), project.folder, lambda: scene.restore("applied"), every=scene.points
    )
    count = 0
    for count in points:
        then = choose.choice(["undo", "apply"])
        where = f"seed {SEED}, undo killed before change {count}, then {then}"
        if then == "undo":
            checked(lambda: project.undo(plan), where)
            assert scene.in_use() == scene.original, where
        else:
            checked(lambda: _apply_or_finish_undo(scene), where)
            assert scene.in_use() == applied, where
        _is_settled(project, where)
    assert count > 20, f"only {count} changes were counted"
    assert scene.in_use() == scene.original


def _apply_or_finish_undo(scene: Scene) -> None:
    """Apply again; an undo that has taken something back already must be finished before that."""
    project, plan = scene.project, scene.plan
    try:
        scene.apply()
    except Refused as refused:
        if refused.code != "undo-unfinished" or refused.hint != f"slackwater undo {plan.id} --yes":
            raise
        project.undo(plan)
        if scene.in_use() != scene.original:
            raise
        scene.apply()


def _is_settled(project: Project, where: str) -> None:
    with project.open() as workspace:
        for stream in workspace.ledger.streams():
            assert workspace.ledger.open_operation(stream.full_name) is None, where
