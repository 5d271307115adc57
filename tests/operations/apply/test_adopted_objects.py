"""Checkpoints on object stores that the user's own code names: files are replaced, also after a kill, and go back.

At each step the checkpoint is the old one, the new one, or one that no query can start on.
"""

import os
import random
import shutil
import sys
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from slackwater.checkpoint.logs import read_logs
from slackwater.checkpoint.writer import is_halted
from slackwater.cli.verbs.prune import delete_prunable
from slackwater.core.errors import OutcomeUnknown
from slackwater.operations.plan.document import ALL_MS
from slackwater.operations.plan.plan import Plan
from slackwater.storage.open import open_read_store, open_write_store
from tests.operations.apply.test_adopted import refused
from tests.support.adopted import ADOPTED, ObjectsProject, make_adopted, moved_to
from tests.support.kill_points import count_commits, kill_points
from tests.support.memory import folder_in_memory
from tests.support.object_stores import before_requests, is_listing
from tests.support.rebuilds import StopBefore

SEED = int(os.environ.get("SLACKWATER_TEST_SEED", random.randrange(2**32)))
EVERY = int(os.environ.get("SLACKWATER_TEST_EVERY", "11"))
POINTS = range(1 + SEED % EVERY, sys.maxsize, EVERY)
"""A kill takes seconds here, because all objects are put back: each run takes a part, another one each time."""

CHANGING = {"PUT", "POST", "DELETE"}


count_commits()


class Scene:
    """A project whose folder and objects can be put back to one of several saved states."""

    def __init__(self, folder: Path, location: str) -> None:
        self._folder = folder
        self.project: ObjectsProject = moved_to(make_adopted(folder / "project"), location)
        self._objects: dict[str, dict[str, bytes]] = {}
        self.original = self.project.in_use()
        self.plan: Plan = self.project.plan("batch:4", goal="replay")
        self.save("planned")

    def save(self, name: str) -> None:
        shutil.copytree(self.project.folder, self._folder / name)
        self._objects[name] = self.project.objects()

    def restore(self, name: str) -> None:
        shutil.rmtree(self.project.folder)
        shutil.copytree(self._folder / name, self.project.folder)
        self.project.set_objects(self._objects[name])
        for file in self.project.home.glob("**/operations/*/plan.json"):
            # Objects that were put back are not newer than the operation; a touch is up to 4 ms behind the clock.
            now_s = time.time() + 0.002
            os.utime(file, (now_s, now_s))

    def apply(self) -> None:
        """Apply; each request that changes an object counts as a change to a file."""
        with before_requests(self.project.location, self._count):
            self.project.apply(self.plan, stopped=True)

    def undo(self) -> None:
        """Undo; each request that changes an object counts as a change to a file."""
        with before_requests(self.project.location, self._count):
            self.project.undo(self.plan, stopped=True)

    def _count(self, method: str, _: str) -> None:
        if method in CHANGING:
            sys.audit("os.mkdir", str(self.project.folder / "object"), 0o700, -1)


@pytest.fixture
def scene(object_location: str) -> Iterator[Scene]:
    with folder_in_memory() as folder:
        yield Scene(folder, object_location)


@pytest.fixture
def project(tmp_path: Path, object_location: str) -> ObjectsProject:
    return moved_to(make_adopted(tmp_path), object_location)


@pytest.fixture(autouse=True)
def _without_java(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    # A plan for code that was not recorded would start Spark.
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))


def _usable(project: ObjectsProject, *states: dict[str, str]) -> bool:
    """Whether the checkpoint is one of these states, or no query can start on it."""
    store = open_read_store(project.location)
    return is_halted(store) or project.in_use_at_location() in [_at_location(one) for one in states]


def _at_location(state: dict[str, str]) -> dict[str, str]:
    return {name: digest for name, digest in state.items() if name.startswith("s3:")}


def test_a_switch_that_is_killed_is_continued_or_undone(scene: Scene) -> None:
    choose, project = random.Random(SEED), scene.project
    with pytest.raises(KeyboardInterrupt):
        project.apply(scene.plan, display=StopBefore("switch-generation"), stopped=True)
    scene.save("built")
    project.apply(scene.plan, stopped=True)
    applied = project.in_use()
    assert applied != scene.original
    count = halted = 0
    for count in kill_points(scene.apply, project.folder, lambda: scene.restore("built"), every=POINTS):
        then = choose.choice(["continue", "undo"])
        where = f"seed {SEED}, switch killed before change {count}, then {then}"
        assert _usable(project, scene.original, applied), where
        halted += is_halted(open_read_store(project.location))
        _finish(scene, then, applied, where)
    assert count > 15, f"only {count} changes were counted"
    assert halted > 0, "never killed while files were replaced"
    assert project.in_use() == applied


def _finish(scene: Scene, then: str, applied: dict[str, str], where: str) -> None:
    project = scene.project
    try:
        project.apply(scene.plan, stopped=True) if then == "continue" else project.undo(scene.plan, stopped=True)
    except BaseException as error:
        error.add_note(where)
        raise
    assert project.in_use() == (applied if then == "continue" else scene.original), where
    with project.open() as workspace:
        assert workspace.ledger.open_operation(ADOPTED) is None, where


@pytest.mark.thorough
def test_an_undo_that_is_killed_is_continued(scene: Scene) -> None:
    project = scene.project
    project.apply(scene.plan, stopped=True)
    applied = project.in_use()
    scene.save("applied")
    count = 0
    for count in kill_points(scene.undo, project.folder, lambda: scene.restore("applied"), every=POINTS):
        where = f"undo killed before change {count}"
        assert _usable(project, scene.original, applied), where
        _finish(scene, "undo", applied, where)
    assert count > 15, f"only {count} changes were counted"
    assert project.in_use() == scene.original


def test_the_plan_is_that_of_a_local_checkpoint(tmp_path: Path, object_location: str) -> None:
    local = make_adopted(tmp_path / "local")
    remote = moved_to(make_adopted(tmp_path / "remote"), object_location)
    for target in ("batch:4", "last-written"):
        one, other = local.plan(target, goal="replay"), remote.plan(target, goal="replay")
        assert other.facts.adopted == object_location
        facts = [replace(plan.facts, adopted=None, notes=()) for plan in (one, other)]
        assert facts[0] == facts[1]
        assert [action.kind for action in one.actions] == [action.kind for action in other.actions]
        # The paths in its logs are of different lengths.
        costs = [replace(plan.cost, checkpoint_bytes=(plan.cost.checkpoint_bytes or 0) > 0) for plan in (one, other)]
        assert costs[0] == costs[1] == replace(one.cost, checkpoint_bytes=True)
        # Each project has its output in a folder of its own.
        here, there = str(local.folder), str(remote.folder)
        assert one.risks == tuple(risk.replace(there, here) for risk in other.risks)


def test_requests_are_few(tmp_path: Path, s3_location: str) -> None:
    """An apply copies each object, writes what differs, and nothing else; a plan writes nothing."""
    project = moved_to(make_adopted(tmp_path), s3_location)
    asked: Counter[str] = Counter()

    def count(method: str, url: str) -> None:
        asked["LIST" if is_listing(method, url) else method] += 1

    objects = len(project.objects())
    with before_requests(project.location, count):
        plan = project.plan("batch:4", goal="replay")
    planning = asked.copy()
    asked.clear()
    before = project.objects()
    with before_requests(project.location, count):
        project.apply(plan, stopped=True)
    after = project.objects()
    changed = sum(before.get(name) != content for name, content in after.items())
    removed = len(before.keys() - after.keys())
    assert planning["PUT"] == planning["DELETE"] == planning["POST"] == 0
    assert planning.total() <= 3 * objects, planning
    assert asked["PUT"] == changed + 2, "each file that differs, and metadata twice"
    assert asked["DELETE"] + asked["POST"] == removed
    assert asked["GET"] <= 6 * objects, asked


def test_a_torn_commit_is_resumed_without_code(project: ObjectsProject) -> None:
    open_write_store(project.location).write("commits/5", b'v1\n{"nextBatch')
    original, plan = project.in_use(), project.plan(goal="resume")
    project.apply(plan, stopped=True)
    assert read_logs(open_read_store(project.location)).committed == 5
    assert not project.plan(goal="resume").actions
    assert not project.apply(plan, stopped=True)
    project.undo(plan, stopped=True)
    assert project.in_use() == original


@pytest.mark.parametrize("lost", ["checkpoint", "metadata"])
def test_what_was_deleted_is_rebuilt_in_its_place(project: ObjectsProject, lost: str) -> None:
    left = (
        {} if lost == "checkpoint" else {name: data for name, data in project.objects().items() if name != "metadata"}
    )
    project.set_objects(left)
    plan = project.plan(retention_ms=ALL_MS, pipeline=str(project.folder / "clicks.py"))
    project.apply(plan, stopped=True)
    assert read_logs(open_read_store(project.location)).committed == 5
    assert not [name for name in project.objects() if name.endswith(".crc")]
    project.undo(plan, stopped=True)
    assert project.objects() == left


def test_operators_name_their_schema_files_where_they_are(project: ObjectsProject) -> None:
    project.apply(project.plan("batch:4", goal="replay"), stopped=True)
    named = project.objects()["state/0/_metadata/metadata"].decode()
    assert str(project.folder) not in named


def test_prune_removes_the_copy(project: ObjectsProject) -> None:
    plan = project.plan("batch:4", goal="replay")
    project.apply(plan, stopped=True)
    in_place = project.objects()
    kept = project.home / "streams" / ADOPTED / "operations" / plan.id / "kept"
    assert kept.is_dir()
    with project.open() as workspace:
        (removed,) = delete_prunable(workspace, None, 0, lambda _: None)
    assert removed.generations == (1,)
    assert not kept.exists()
    assert project.objects() == in_place
    refused("undo-pruned", lambda: project.undo(plan, stopped=True))


def test_a_query_that_is_alive(project: ObjectsProject) -> None:
    plan, before = project.plan("batch:4", goal="replay"), project.in_use()
    store = open_write_store(project.location)
    # In the second in which ``metadata`` was put there, or in a later one: S3 has times in seconds.
    store.write("commits/3", store.read("commits/3"))
    error = refused("checkpoint-in-use", lambda: project.apply(plan))
    assert (error.where or "").startswith(project.location)
    assert project.in_use() == before


def test_an_undo_after_the_query_has_run(project: ObjectsProject) -> None:
    plan = project.plan("batch:4", goal="replay")
    project.apply(plan, stopped=True)
    store = open_write_store(project.location)
    store.write("commits/4", store.read("commits/3"))
    refused("undo-late", lambda: project.undo(plan, stopped=True))
    store.delete("commits/4")
    project.undo(plan, stopped=True)


def test_a_store_that_fails_in_between(project: ObjectsProject) -> None:
    """Nothing is lost: what is printed continues, or goes back."""
    original, plan = project.in_use(), project.plan("batch:4", goal="replay")
    error = _fail_in_between(project, plan)
    assert f"slackwater undo {plan.id}" in (error.hint or "")
    project.undo(plan, stopped=True)
    assert project.in_use() == original


def _fail_in_between(project: ObjectsProject, plan: Plan) -> OutcomeUnknown:
    left = 4

    def fail(method: str, _: str) -> None:
        nonlocal left
        left -= method in CHANGING
        if left < 0:
            raise OSError("the network is gone")

    with before_requests(project.location, fail), pytest.raises(OutcomeUnknown) as error:
        project.apply(plan, stopped=True)
    assert is_halted(open_read_store(project.location))
    return error.value


@pytest.mark.parametrize(
    "lost",
    [
        "copies.json",
        pytest.param("kept/commits/5", marks=pytest.mark.thorough),
        pytest.param("checkpoint/metadata", marks=pytest.mark.thorough),
        "checkpoint/state/0/0/4.delta",
    ],
)
def test_a_copy_that_was_damaged_meanwhile(project: ObjectsProject, lost: str) -> None:
    """Nothing more is replaced, and when it is there again the same command continues."""
    original, plan = project.in_use(), project.plan("batch:4", goal="replay")
    _fail_in_between(project, plan)
    between = project.objects()
    file = project.home / "streams" / ADOPTED / "operations" / plan.id / lost
    moved = file.rename(project.folder / "moved")
    if lost.startswith("checkpoint"):
        with pytest.raises(OutcomeUnknown, match="backup is missing or damaged"):
            project.apply(plan, stopped=True)
    else:
        refused("backup-damaged", lambda: project.undo(plan, stopped=True))
    assert project.objects() == between
    moved.rename(file)
    if lost.startswith("checkpoint"):
        project.apply(plan, stopped=True)
    project.undo(plan, stopped=True)
    assert project.in_use() == original


def test_the_journal_has_what_to_do_by_hand(project: ObjectsProject) -> None:
    plan = project.plan("batch:4", goal="replay")
    project.apply(plan, stopped=True)
    folder = project.home / "streams" / ADOPTED / "operations" / plan.id
    journal: Any = (folder / "journal.jsonl").read_text()
    assert f"copy the files of {folder}/kept to " in journal
