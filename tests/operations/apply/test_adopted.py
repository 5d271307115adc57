"""Checkpoints at a path that the user's own code names: the new one ends up there, also after a kill, and goes back.

No process of Slackwater's runs such a query, so that there is no lease: what its files show counts.
"""

import json
import os
import random
import re
import shlex
import shutil
import sqlite3
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import closing
from functools import partial
from itertools import product
from pathlib import Path

import pytest

from slackwater.checkpoint.logs import read_logs
from slackwater.cli.main import main
from slackwater.cli.verbs.prune import delete_prunable
from slackwater.core.errors import NotFound, Refused, SlackwaterError
from slackwater.core.records import BatchRecord
from slackwater.ledger.workspace import find_stream
from slackwater.operations.apply.adopted import AdoptedDirectory
from slackwater.operations.checkpoint_path import checkpoint_path
from slackwater.operations.plan.document import ALL_MS
from slackwater.operations.plan.plan import Plan
from slackwater.operations.stopped import quiet_time_ms
from slackwater.runtime.loader import load
from slackwater.runtime.run.before_start import check
from slackwater.sinks.common.staging import StagingDirectory
from slackwater.storage.local import LocalStore
from tests.support.adopted import ADOPTED, AdoptedProject, make_adopted
from tests.support.errors import raises_code
from tests.support.homes import edit_ledger
from tests.support.kill_points import count_commits, kill_points
from tests.support.memory import folder_in_memory
from tests.support.rebuilds import BEGINNING, Project, StopBefore, make_project

SEED = int(os.environ.get("SLACKWATER_TEST_SEED", random.randrange(2**32)))
EVERY, EVERY_OF_UNDO = (int(os.environ.get("SLACKWATER_TEST_EVERY", number)) for number in (24, 9))
"""Of the kills while the new checkpoint is built, which is as for any stream, one in so many is tried, and of those of
an undo. ``SLACKWATER_TEST_EVERY=1`` takes all, as everywhere."""


count_commits()


class Scene:
    """A project that can be put back to one of several saved states."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self.project: AdoptedProject = make_adopted(folder / "project")
        self.original = self.project.in_use()
        self.plan: Plan = self.project.plan("batch:4", goal="replay")
        self.save("planned")

    def save(self, name: str) -> None:
        shutil.copytree(self.project.folder, self._folder / name)

    def restore(self, name: str) -> None:
        shutil.rmtree(self.project.folder)
        shutil.copytree(self._folder / name, self.project.folder)


@pytest.fixture
def scene() -> Iterator[Scene]:
    with folder_in_memory() as folder:
        yield Scene(folder)


@pytest.fixture
def project(tmp_path: Path) -> AdoptedProject:
    return make_adopted(tmp_path)


def refused(code: str, call: Callable[[], object]) -> SlackwaterError:
    with raises_code(SlackwaterError, code) as caught:
        call()
    return caught.value


@pytest.fixture(autouse=True)
def _without_java(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    # A plan for code that was not recorded would start Spark.
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))


def code_of(project: AdoptedProject) -> str:
    return str(project.folder / "clicks.py")


def written_now(project: AdoptedProject) -> None:
    """The user's program runs batch 6, which was planned."""
    (project.path / "state" / "0" / "0" / "7.delta").write_bytes(b"")


def test_a_switch_that_is_killed_is_continued_or_undone(scene: Scene) -> None:
    choose, project, plan = random.Random(SEED), scene.project, scene.plan
    with pytest.raises(KeyboardInterrupt):
        project.apply(plan, display=StopBefore("switch-generation"))
    scene.save("built")
    project.apply(plan)
    applied = project.in_use()
    assert applied != scene.original
    count = 0
    for count in kill_points(lambda: project.apply(plan), project.folder, lambda: scene.restore("built")):
        then = choose.choice(["continue", "undo"])
        _finish(scene, then, applied, f"seed {SEED}, switch killed before change {count}, then {then}")
    assert count > 8, f"only {count} changes were counted"
    assert project.in_use() == applied


def test_an_apply_that_is_killed_is_continued_or_undone(scene: Scene) -> None:
    choose, project, plan = random.Random(SEED), scene.project, scene.plan
    project.apply(plan)
    applied = project.in_use()
    some = range(1 + choose.randrange(EVERY), sys.maxsize, EVERY)
    restore = partial(scene.restore, "planned")
    for number in kill_points(lambda: project.apply(plan), project.folder, restore, every=some):
        then = choose.choice(["continue", "undo"])
        _finish(scene, then, applied, f"seed {SEED}, apply killed before change {number}, then {then}")
    assert project.in_use() == applied


def test_an_undo_that_is_killed_is_continued(scene: Scene) -> None:
    project, plan = scene.project, scene.plan
    project.apply(plan)
    scene.save("applied")
    some = range(1 + random.Random(SEED).randrange(EVERY_OF_UNDO), sys.maxsize, EVERY_OF_UNDO)
    restore = partial(scene.restore, "applied")
    for number in kill_points(lambda: project.undo(plan), project.folder, restore, every=some):
        checked(lambda: project.undo(plan), f"seed {SEED}, undo killed before change {number}")
        assert project.in_use() == scene.original, number
    assert project.in_use() == scene.original


def _finish(scene: Scene, then: str, applied: dict[str, str], where: str) -> None:
    project, plan = scene.project, scene.plan
    if then == "continue":
        checked(lambda: project.apply(plan), where)
        assert project.in_use() == applied, where
    elif is_known(project, plan):
        checked(lambda: project.undo(plan), where)
        assert project.in_use() == scene.original, where
    with project.open() as workspace:
        assert workspace.ledger.open_operation(ADOPTED) is None, where


def is_known(project: Project, plan: Plan) -> bool:
    with project.open() as workspace:
        return any(one.id == plan.id for one in workspace.ledger.operations(plan.stream))


def checked(step: Callable[[], object], where: str) -> None:
    try:
        step()
    except BaseException as error:
        error.add_note(where)
        raise


@pytest.fixture
def only_renames(monkeypatch: pytest.MonkeyPatch) -> None:
    """The file system cannot exchange two directories in one step."""
    monkeypatch.setattr("slackwater.sinks.common.staging._exchanged", lambda *_: False)


def _interrupted(project: AdoptedProject, renames: int, step: Callable[[], object]) -> None:
    """Interrupt a step after so many directories next to the checkpoint were renamed."""
    rename, left = Path.rename, renames

    def counted(path: Path, target: Path) -> Path:
        nonlocal left
        renamed = rename(path, target)
        left -= path.parent == project.path.parent
        if left == 0:
            raise KeyboardInterrupt
        return renamed

    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(Path, "rename", counted)
        with pytest.raises(KeyboardInterrupt):
            step()


@pytest.mark.parametrize(
    ("renames", "then"),
    [
        *product([1, 2], ["continue", "undo", "by hand, on", "by hand, back"]),
        (3, "undo"),
        pytest.param(3, "continue", marks=pytest.mark.thorough),
    ],
)
@pytest.mark.usefixtures("only_renames")
def test_an_exchange_by_renames_that_was_interrupted(project: AdoptedProject, renames: int, then: str) -> None:
    original, plan = project.in_use(), project.plan("batch:4", goal="replay")
    _interrupted(project, renames, lambda: project.apply(plan))
    if then.startswith("by hand"):
        back, on, rest = plan.facts.notes[-3:]
        note = rest if renames == 2 else on if then == "by hand, on" else back
        subprocess.run(["/bin/sh", "-c", note[note.index("mv -T") :]], check=True)
    if then != "undo":
        _continued(project, plan)
    project.undo(plan)
    assert project.in_use() == original


def test_a_query_that_ran_since_the_interruption_keeps_its_checkpoint(
    project: AdoptedProject, monkeypatch: pytest.MonkeyPatch
) -> None:
    original, plan = project.in_use(), project.plan("batch:4", goal="replay")
    with monkeypatch.context() as patched:
        patched.setattr(AdoptedDirectory, "swap_in", _interrupt)
        with pytest.raises(KeyboardInterrupt):
            project.apply(plan)
    commits = project.path / "commits"
    newest = max(int(one.name) for one in commits.iterdir() if one.name.isdigit())
    shutil.copyfile(commits / f"{newest}", commits / f"{newest + 1}")
    refused("checkpoint-changed", lambda: project.apply(plan))
    (commits / f"{newest + 1}").unlink()
    project.undo(plan)
    assert project.in_use() == original


def _interrupt(_checkpoint: AdoptedDirectory) -> None:
    raise KeyboardInterrupt


def _continued(project: AdoptedProject, plan: Plan) -> None:
    project.apply(plan)
    assert read_logs(LocalStore(project.path)).committed == 3
    assert project.beside() == [StagingDirectory(str(project.path), plan.id).folder.name]


@pytest.mark.parametrize("made", ["applied", pytest.param("killed", marks=pytest.mark.thorough)])
@pytest.mark.parametrize("renames", [1, 2, 3])
@pytest.mark.usefixtures("only_renames")
def test_an_undo_by_renames_that_was_interrupted(project: AdoptedProject, made: str, renames: int) -> None:
    """After an apply, and after one that was killed before the ledger had the new checkpoint."""
    original, plan = project.in_use(), project.plan("batch:4", goal="replay")
    if made == "applied":
        project.apply(plan)
    else:
        _interrupted(project, 3, lambda: project.apply(plan))
    _interrupted(project, renames, lambda: project.undo(plan))
    project.undo(plan)
    assert project.in_use() == original


@pytest.mark.parametrize("renames", [2, 3])
@pytest.mark.usefixtures("only_renames")
def test_an_old_checkpoint_that_was_lost_between_renames(project: AdoptedProject, renames: int) -> None:
    """The undo is refused before its first step, and the apply can still be continued."""
    plan = project.plan("batch:4", goal="replay")
    _interrupted(project, renames, lambda: project.apply(plan))
    staging = StagingDirectory(str(project.path), plan.id)
    (staging.folder if renames == 3 else staging.exchange_path).joinpath("commits", "5").unlink()
    refused("checkpoint-changed", lambda: project.undo(plan))
    _continued(project, plan)


def test_the_journal_has_what_to_do_by_hand(project: AdoptedProject) -> None:
    plan = project.plan("batch:4", goal="replay")
    project.apply(plan)
    journal = (project.home / "streams" / ADOPTED / "operations" / plan.id / "journal.jsonl").read_text()
    facts = [json.loads(line).get("facts") or {} for line in journal.splitlines()]
    (by_hand,) = [one["by_hand"] for one in facts if "by_hand" in one]
    assert tuple(by_hand) == plan.facts.notes[-3:]


def test_the_generation_at_the_path_is_the_one_in_use(project: AdoptedProject) -> None:
    """``watch`` finds a generation by location and query id: the new one, and after an undo the old one."""
    with project.open() as workspace:
        before = workspace.ledger.generation(ADOPTED, 1)
    plan = project.plan("batch:4", goal="replay")
    project.apply(plan)
    with project.open() as workspace:
        old, new = workspace.ledger.generations(ADOPTED)
        assert workspace.ledger.find_stream(ADOPTED).current_generation == 2
        assert (new.location, new.query_id, new.based_at) == (before.location, before.query_id, 3)
        assert Path(old.location).name == project.beside()[0]
    assert not project.apply(plan)
    project.undo(plan)
    with project.open() as workspace:
        assert workspace.ledger.generations(ADOPTED) == [before]
        assert workspace.ledger.find_stream(ADOPTED).current_generation == 1


def test_a_torn_commit_is_resumed_without_code(project: AdoptedProject) -> None:
    torn = project.path / "commits" / "5"
    torn.write_text('v1\n{"nextBatch')
    os.utime(torn, (1_767_300_000, 1_767_300_000))
    original, plan = project.in_use(), project.plan(goal="resume")
    project.apply(plan)
    assert read_logs(LocalStore(project.path)).committed == 5
    assert not project.plan(goal="resume").actions
    project.undo(plan)
    assert project.in_use() == original


@pytest.mark.parametrize("lost", ["checkpoint", "parent"])
def test_a_deleted_checkpoint_is_rebuilt_in_its_place(project: AdoptedProject, lost: str) -> None:
    shutil.rmtree(project.path if lost == "checkpoint" else project.path.parent)
    plan = project.plan(retention_ms=ALL_MS, pipeline=code_of(project))
    project.apply(plan)
    assert read_logs(LocalStore(project.path)).committed == 5
    assert project.beside() == []
    project.undo(plan)
    assert not project.path.exists()
    assert project.beside() == []


def test_the_printed_command_for_a_deleted_checkpoint_works_as_typed(
    project: AdoptedProject, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(project.folder)
    shutil.rmtree(project.path)

    def printed() -> tuple[str, str]:
        capsys.readouterr()
        main(["status", ADOPTED, "--format", "json"])
        finding = json.loads(capsys.readouterr().out)["streams"][0]["findings"][0]
        assert finding["code"] == "checkpoint-lost"
        return finding["next"], finding.get("advice", "")

    then, advice = printed()
    write = advice.partition("for a notebook: ")[2].rpartition("; ")[0]
    subprocess.run(["bash", "-c", write], check=True, timeout=60)
    file = Path(f"{ADOPTED.rpartition('/')[2]}.py")
    text = file.read_text()
    definition = next(iter(load(str(file)).pipeline.streams.values()))
    assert (definition.name, definition.output_mode) == (file.stem, "append")
    with pytest.raises(NotImplementedError, match=f"return the DataFrame of query {file.stem} here"):
        definition.function(None)
    file.write_text("kept")
    subprocess.run(["bash", "-c", write], check=True, timeout=60)
    assert file.read_text() == "kept", "a file of the user's is never replaced"
    file.write_text(re.sub("raise .*", "return None", text))
    command = then.replace("APPLICATION", str(file))
    assert main([*shlex.split(command)[1:], "--out", "plan.json"]) == 0
    file.unlink()
    plan = project.plan(retention_ms=ALL_MS, pipeline=code_of(project))
    project.apply(plan)
    shutil.rmtree(project.path)

    command, advice = printed()

    assert (shlex.split(command)[-2:], advice) == (["--pipeline", code_of(project)], "")
    assert main([*shlex.split(command)[1:], "--out", "plan.json", "--force"]) == 0


def test_a_reset_needs_the_code_and_clears_the_output(project: AdoptedProject) -> None:
    original = project.in_use()
    plan = project.plan_reset("clear", BEGINNING, code_of(project))
    project.apply(plan)
    assert read_logs(LocalStore(project.path)).planned == -1
    assert not list((project.folder / "out").glob("part-*"))
    project.undo(plan)
    assert project.in_use() == original


def test_a_start_with_other_arguments_is_refused_with_a_command_that_names_them_once(project: AdoptedProject) -> None:
    shutil.rmtree(project.path)
    with project.open() as workspace:
        stream = find_stream(workspace.ledger, ADOPTED)._replace(pipeline_file="app.py -- --once")
        with pytest.raises(Refused) as refused:
            check(workspace.home, workspace.ledger, stream)
    assert refused.value.code == "checkpoint-lost"
    assert (refused.value.hint or "").endswith(f"slackwater plan rebuild {ADOPTED} --pipeline 'app.py -- --once'")


def test_a_location_names_the_stream(project: AdoptedProject, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(project.folder)
    relative = str(project.path.relative_to(project.folder))
    with project.open() as workspace:
        for name in (str(project.path), f"{project.path}/", project.path.as_uri(), relative, "per_page", ADOPTED):
            assert find_stream(workspace.ledger, name).full_name == ADOPTED
        with pytest.raises(NotFound) as unknown:
            find_stream(workspace.ledger, str(project.folder / "out"))
    assert unknown.value.code == "location-unknown"
    assert "slackwater adopt" in (unknown.value.hint or "")


def test_prune_removes_what_operations_have_left_beside_it(project: AdoptedProject) -> None:
    (project.path.parent / ".per_page checkpoint.mine").mkdir()
    plan = project.plan("batch:4", goal="replay")
    project.apply(plan)
    in_place = project.files(project.path)
    with project.open() as workspace:
        (removed,) = delete_prunable(workspace, None, 0, lambda _: None)
    assert removed.generations == (1,)
    assert project.beside() == [".per_page checkpoint.mine"]
    assert project.files(project.path) == in_place
    refused("undo-pruned", lambda: project.undo(plan))


def test_an_adopted_checkpoint_of_a_pipeline_is_copied_from_where_it_is(tmp_path: Path) -> None:
    """``pipeline.stream(checkpoint=...)``: Slackwater runs the stream, and its next generation is in the home."""
    project = make_project(tmp_path)
    elsewhere = tmp_path / "elsewhere"
    project.checkpoint(1).rename(elsewhere)
    edit_ledger(project.home, "UPDATE generations SET location = ?", values=(elsewhere.as_uri(),))
    project.apply(project.plan("batch:4", goal="replay"))
    assert read_logs(LocalStore(project.checkpoint(2))).committed == 3
    assert (project.checkpoint(2) / "state" / "0" / "0" / "4.delta").exists()


class TestRefusals:
    """Nothing is changed."""

    @pytest.fixture(autouse=True)
    def _nothing_is_changed(self, project: AdoptedProject) -> Iterator[None]:
        before = {name: digest for name, digest in project.in_use().items() if "7.delta" not in name}
        yield
        after = {name: digest for name, digest in project.in_use().items() if "7.delta" not in name}
        assert after == before
        with project.open() as workspace:
            assert workspace.ledger.open_operation(ADOPTED) is None

    def test_a_query_that_is_alive(self, project: AdoptedProject) -> None:
        plan = project.plan("batch:4", goal="replay")
        written_now(project)
        error = refused("checkpoint-in-use", lambda: project.apply(plan))
        assert error.where == str(project.path / "state/0/0/7.delta")
        assert error.expected == "nothing written in the last 60 s"

    def test_a_query_that_has_stopped_a_moment_ago(self, project: AdoptedProject) -> None:
        written_now(project)
        plan = project.plan("batch:4", goal="replay")
        project.apply(plan, stopped=True)
        project.undo(plan)

    def test_a_query_that_is_started_while_the_plan_is_applied(self, project: AdoptedProject) -> None:
        plan = project.plan("batch:4", goal="replay")
        started = StopBefore("cut-sink", lambda: written_now(project))
        refused("moved-writer", lambda: project.apply(plan, display=started, stopped=True))

    def test_an_undo_while_the_query_runs(self, project: AdoptedProject) -> None:
        plan = project.plan("batch:4", goal="replay")
        project.apply(plan)
        time.sleep(0.02)
        (project.path / "offsets" / ".5.tmp").write_text("being written")
        refused("checkpoint-in-use", lambda: project.undo(plan))
        (project.path / "offsets" / ".5.tmp").unlink()
        project.undo(plan)

    def test_an_undo_after_the_query_has_run(self, project: AdoptedProject) -> None:
        plan = project.plan("batch:4", goal="replay")
        project.apply(plan)
        file = project.path / "commits" / "4"
        file.write_bytes((project.path / "commits" / "3").read_bytes())
        refused("undo-late", lambda: project.undo(plan, stopped=True))
        file.unlink()
        project.undo(plan)

    @pytest.mark.parametrize("goal", ["rebuild", "reset"])
    def test_code_that_is_not_known(self, project: AdoptedProject, goal: str) -> None:
        error = refused("code-needed", lambda: project.plan(goal=goal))
        name = ADOPTED.rpartition("/")[2]
        planned, then = (error.hint or "").splitlines()
        write, _, after = then.partition("for a notebook: ")[2].rpartition("; ")
        subprocess.run(["bash", "-n", "-c", write], check=True, timeout=60)
        assert write.endswith(f"> {name}.py")
        assert planned == f"slackwater plan {goal} {ADOPTED} --pipeline APPLICATION"
        assert after == f"put the query into {name}.py, and name that"

    @pytest.mark.parametrize("table", ["iceberg", "delta"])
    def test_a_swap_of_a_table_whose_writer_cannot_fill_another(self, project: AdoptedProject, table: str) -> None:
        """It is not there."""
        with closing(sqlite3.connect(project.home / "ledger.db")) as ledger, ledger:
            sink = {"kind": "table", "name": f"{table}.{project.folder}/table", "format": table}
            ledger.execute("UPDATE streams SET sink = ?", (json.dumps(sink),))
        error = refused("swap-unsupported", lambda: project.plan_reset("swap", BEGINNING, code_of(project)))
        assert f"slackwater plan reset {ADOPTED}" in (error.hint or "")

    def test_a_swap_of_an_output_that_cannot_be_emptied_either(self, project: AdoptedProject) -> None:
        edit_ledger(project.home, "UPDATE streams SET sink = ?", values=(json.dumps({"kind": "foreach_batch"}),))
        error = refused("swap-unsupported", lambda: project.plan_reset("swap", BEGINNING, code_of(project)))
        assert f"slackwater plan reset {ADOPTED} --from earliest --output keep --pipeline" in (error.hint or "")

    def test_a_directory_that_cannot_be_renamed(self, project: AdoptedProject) -> None:
        edit_ledger(project.home, "UPDATE generations SET location = '/proc'")
        refused("checkpoint-fixed", lambda: project.plan(goal="rebuild", pipeline=code_of(project)))

    def test_a_directory_of_another_user(self, project: AdoptedProject, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("SLACKWATER_SAFE_DIRECTORY", str(project.home))
        monkeypatch.setattr(os, "geteuid", lambda: project.path.stat().st_uid + 1)
        error = refused("checkpoint-fixed", lambda: project.plan("batch:4", goal="replay"))
        assert "a directory of user" in (error.found or "")

    def test_a_name_that_is_no_folder(self, project: AdoptedProject) -> None:
        with closing(sqlite3.connect(project.home / "ledger.db")) as ledger, ledger:
            for table, column in (("generations", "stream"), ("log_lines", "stream"), ("streams", "full_name")):
                ledger.execute(f"UPDATE {table} SET {column} = 'watched/../../x'")
            ledger.execute("UPDATE streams SET name = '../../x'")
        with project.open() as workspace:
            stream = workspace.ledger.find_stream("../../x")
            refused("query-name", lambda: checkpoint_path(workspace.ledger, stream))


def test_the_interval_of_a_query() -> None:
    def batches(*times_s: int) -> list[BatchRecord]:
        return [BatchRecord(ADOPTED, 1, number, at * 1000, 1) for number, at in enumerate(times_s)]

    assert quiet_time_ms([]) == 60_000
    assert quiet_time_ms(batches(0, 1, 2, 3)) == 60_000
    assert quiet_time_ms(batches(0, 3600, 7200)) == 7_200_000
    # It was stopped for a day, once.
    assert quiet_time_ms(batches(0, 60, 120, 86_520, 86_580)) == 120_000


@pytest.mark.parametrize(("goal", "cuts"), [("replay", True), ("resume", False)])
def test_a_plan_that_cuts_says_that_the_program_must_wait(project: AdoptedProject, goal: str, *, cuts: bool) -> None:
    plan = project.plan("batch:4", goal=goal) if cuts else project.plan(goal=goal)
    assert any("must not be started" in risk for risk in plan.risks) == cuts
