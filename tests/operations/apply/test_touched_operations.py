"""Operations whose files, home or output were touched: undo, a continued apply and prune check first what they need.

Whatever was touched, the command refuses before anything is changed, or does its work completely; never "undone"
without having done so. Commands are typed as a user does.
"""

import json
import os
import shlex
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from slackwater.cli.main import main
from slackwater.operations.plan.document import DIGEST, digest_of, render
from tests.refusals.of_operations import planned, undo_of
from tests.refusals.scene import APPLY, Scene
from tests.support.memory import folder_in_memory
from tests.support.rebuilds import CLEAN

REFUSED = 5
NOBODY = 65534


@pytest.fixture
def scene(monkeypatch: pytest.MonkeyPatch) -> Iterator[Scene]:
    with folder_in_memory() as parent:
        folder = parent / "prod"
        folder.mkdir()
        monkeypatch.chdir(folder)
        made = Scene(folder, CLEAN)
        made.must("run clicks.py")
        yield made
        monkeypatch.undo()


def applied(scene: Scene) -> None:
    """Cut back to batch 3, and continue from there."""
    planned(scene)
    scene.must(APPLY)


def swapped(scene: Scene) -> None:
    """A staged output was swapped in."""
    (scene.folder / "plan.json").write_text(render(scene.project.plan("batch:4", goal="replay", output="swap")))
    scene.must(APPLY)


def folder_of(scene: Scene) -> Path:
    return scene.stream / "operations" / scene.operation


def unchanged(scene: Scene) -> dict[str, str]:
    """Everything that a command may not change when it refuses."""
    found = scene.project.in_use()
    found |= scene.project.files(*scene.stream.glob("operations/*/backup"), *scene.folder.glob(".out*"))
    return found


def journal_deleted(scene: Scene) -> None:
    (folder_of(scene) / "journal.jsonl").unlink()


def journal_emptied(scene: Scene) -> None:
    (folder_of(scene) / "journal.jsonl").write_bytes(b"")


def journal_cut_short(scene: Scene) -> None:
    file = folder_of(scene) / "journal.jsonl"
    file.write_text("".join(file.read_text().splitlines(keepends=True)[:2]))


def journal_without_its_end(scene: Scene) -> None:
    file = folder_of(scene) / "journal.jsonl"
    file.write_text("".join(file.read_text().splitlines(keepends=True)[:-1]))


def plan_deleted(scene: Scene) -> None:
    (folder_of(scene) / "plan.json").unlink()


@pytest.mark.parametrize(
    "touch", [journal_deleted, journal_emptied, journal_cut_short, journal_without_its_end, plan_deleted]
)
def test_what_the_ledger_recorded_replaces_a_lost_file(scene: Scene, touch: Callable[[Scene], None]) -> None:
    original = scene.project.in_use()
    applied(scene)
    touch(scene)
    scene.must(undo_of(scene))
    assert scene.project.in_use() == original
    scene.must("prune --keep 0 --yes")
    assert scene.type("run clicks.py").started


def plan_and_journal_deleted(scene: Scene) -> None:
    plan_deleted(scene)
    journal_deleted(scene)


@pytest.mark.parametrize("touch", [plan_deleted, plan_and_journal_deleted])
@pytest.mark.parametrize("verb", ["apply", "undo"])
def test_an_interrupted_operation_without_its_plan_is_ended_by_what_is_printed(
    scene: Scene, touch: Callable[[Scene], object], verb: str
) -> None:
    original = scene.project.in_use()
    planned(scene)
    scene.interrupt("switch-generation")
    touch(scene)
    status = scene.type("status")
    assert status.exit_code == REFUSED
    (command,) = [one for one in status.named if one.startswith(verb)]

    # What the command line itself reads, and not the scene.
    assert main(shlex.split(command)) == 0

    assert (scene.project.in_use() == original) == (verb == "undo")
    assert scene.type("run clicks.py").started


def journal_edited(scene: Scene) -> Path:
    file = folder_of(scene) / "journal.jsonl"
    file.write_text("".join(line for line in file.read_text().splitlines(keepends=True) if '"build-' not in line))
    return file


def journal_longer(scene: Scene) -> Path:
    file = folder_of(scene) / "journal.jsonl"
    file.write_text(file.read_text() + '{"at_ms": 1, "end": "undone"}\n')
    return file


def journal_of_nothing(scene: Scene) -> Path:
    file = folder_of(scene) / "journal.jsonl"
    file.write_text('{"at_ms": 1, "end": "undone"}\n')
    return file


def plan_edited(scene: Scene) -> Path:
    """Another generation is to be removed and other batches restored; the digest is that of what it says now."""
    file = folder_of(scene) / "plan.json"
    content = json.loads(file.read_text())
    for one in content["undo"]:
        if one["inverse"]["kind"] == "remove-generation":
            one["inverse"]["number"] = 1
    content.pop(DIGEST)
    file.write_text(json.dumps(content | {DIGEST: digest_of(content)}))
    return file


def plan_without_undo(scene: Scene) -> Path:
    file = folder_of(scene) / "plan.json"
    content = json.loads(file.read_text()) | {"undo": []}
    content.pop(DIGEST)
    file.write_text(json.dumps(content | {DIGEST: digest_of(content)}))
    return file


@pytest.mark.parametrize("touch", [journal_edited, journal_longer, journal_of_nothing, plan_edited, plan_without_undo])
@pytest.mark.parametrize("make", [applied, lambda scene: (planned(scene), scene.interrupt("switch-generation"))])
def test_an_edited_file_is_refused_and_the_way_on_works(
    scene: Scene, make: Callable[[Scene], object], touch: Callable[[Scene], Path]
) -> None:
    original = scene.project.in_use()
    make(scene)
    file = touch(scene)
    before = unchanged(scene)

    for command in (undo_of(scene), "prune --keep 0 --yes"):
        refused = scene.type(command)
        assert refused.exit_code in {3, REFUSED}, refused.text
        assert unchanged(scene) == before

    if file.name == "journal.jsonl" or scene.type("status").exit_code:
        scene.type(f"apply {folder_of(scene) / 'plan.json'} --yes")
        assert unchanged(scene) == before
    refused = scene.type(undo_of(scene))
    moved = f"mv {file} {file}.damaged" if " " not in str(file) else f"mv '{file}' '{file}.damaged'"
    assert moved in refused.text
    file.rename(file.with_name(file.name + ".damaged"))
    scene.must(undo_of(scene))
    assert scene.project.in_use() == original


def backup_deleted(scene: Scene) -> None:
    shutil.rmtree(folder_of(scene) / "backup")


def backup_emptied(scene: Scene) -> None:
    backup_deleted(scene)
    (folder_of(scene) / "backup").mkdir()


def backup_record_deleted(scene: Scene) -> None:
    (folder_of(scene) / "backup" / "manifest.json").unlink()


def backup_record_edited(scene: Scene) -> None:
    file = folder_of(scene) / "backup" / "manifest.json"
    content = json.loads(file.read_text())
    file.write_text(json.dumps(content | {"entries": content["entries"][:1], "files": []}))


def backup_file_deleted(scene: Scene) -> None:
    (folder_of(scene) / "backup" / "part-5.parquet").unlink()


def backup_file_changed(scene: Scene) -> None:
    (folder_of(scene) / "backup" / "part-5.parquet").write_text("other rows")


def old_checkpoint_deleted(scene: Scene) -> None:
    shutil.rmtree(scene.checkpoint)


def old_checkpoint_of_another(scene: Scene) -> None:
    (scene.checkpoint / "metadata").write_text('{"id":"another"}')


def old_checkpoint_cut(scene: Scene) -> None:
    (scene.checkpoint / "commits" / "5").unlink()


def output_elsewhere(scene: Scene) -> None:
    (scene.folder / "out").rename(scene.folder / "moved")


def output_of_another(scene: Scene) -> None:
    file = scene.folder / "out" / "_slackwater.json"
    file.write_text(json.dumps(json.loads(file.read_text()) | {"stream_id": "another"}))


TOUCHED = (
    backup_deleted,
    backup_emptied,
    backup_record_deleted,
    backup_record_edited,
    backup_file_deleted,
    backup_file_changed,
    old_checkpoint_deleted,
    old_checkpoint_of_another,
    old_checkpoint_cut,
    output_elsewhere,
    output_of_another,
)


@pytest.mark.parametrize("touch", TOUCHED)
def test_what_an_undo_needs_is_checked_before_its_first_step(scene: Scene, touch: Callable[[Scene], None]) -> None:
    original = scene.project.in_use()
    applied(scene)
    saved = scene.folder.with_name("saved")
    shutil.copytree(scene.folder, saved, symlinks=True)
    touch(scene)
    before = unchanged(scene)

    refused = scene.type(undo_of(scene))

    assert refused.exit_code == REFUSED, refused.text
    assert unchanged(scene) == before
    assert "hint" in refused.text
    # The stream itself is as it was applied, and with the file restored the undo is possible.
    assert scene.project.files(scene.stream / "checkpoints" / "0002")
    for part in (
        "out",
        ".slackwater/streams/clicks/per_page/operations",
        ".slackwater/streams/clicks/per_page/checkpoints",
    ):
        shutil.rmtree(scene.folder / part, ignore_errors=True)
        shutil.copytree(saved / part, scene.folder / part)
    scene.must(undo_of(scene))
    assert scene.project.in_use() == original


@pytest.mark.parametrize("touch", [backup_deleted, backup_file_changed, old_checkpoint_deleted])
def test_a_stream_runs_on_after_a_refused_undo(scene: Scene, touch: Callable[[Scene], None]) -> None:
    applied(scene)
    touch(scene)
    assert scene.type(undo_of(scene)).exit_code == REFUSED
    assert scene.type("run clicks.py").started
    scene.plan()
    scene.must(APPLY)


def test_an_output_that_was_moved_behind_a_link_is_restored(scene: Scene) -> None:
    original = scene.project.in_use()
    applied(scene)
    (scene.folder / "out").rename(scene.folder / "large")
    (scene.folder / "out").symlink_to(scene.folder / "large")
    scene.must(undo_of(scene))
    assert scene.project.in_use() == original


@contextmanager
def as_another_user(own: Path, *but: Path) -> Iterator[None]:
    """Act as a user who owns what is below a folder, but for some folders in it."""
    paths = [own, *own.rglob("*")]
    modes = {path: path.lstat().st_mode for path in paths}
    for path in paths:
        os.chown(path, 0 if path in but else NOBODY, -1, follow_symlinks=False)
    for path in but:
        path.chmod(0o755)
    os.seteuid(NOBODY)
    try:
        yield
    finally:
        os.seteuid(0)
        for path in own.rglob("*"):
            os.chown(path, 0, -1, follow_symlinks=False)
            if path in modes and not path.is_symlink():
                path.chmod(modes[path] & 0o7777)


@pytest.mark.skipif(os.geteuid() != 0, reason="acts as another user")
@pytest.mark.parametrize("folder", ["out", "out/_spark_metadata"])
def test_an_output_that_cannot_be_written_to(scene: Scene, folder: str) -> None:
    original = scene.project.in_use()
    applied(scene)
    before = unchanged(scene)
    with as_another_user(scene.folder.parent, scene.folder / folder):
        refused = scene.type(undo_of(scene))
    assert refused.code == "folder-read-only", refused.text
    assert unchanged(scene) == before
    scene.must(undo_of(scene))
    assert scene.project.in_use() == original


def copy_of(scene: Scene, monkeypatch: pytest.MonkeyPatch) -> Path:
    staging = scene.folder.with_name("staging")
    shutil.copytree(scene.folder, staging, symlinks=True)
    monkeypatch.chdir(staging)
    return staging


@pytest.mark.parametrize("lost", ["nothing", "home.json", "home.json and ledger.db"])
@pytest.mark.parametrize("make", ["applied", "interrupted", "swapped", "undone halfway"])
def test_a_copied_project_leaves_the_original_alone(
    scene: Scene, monkeypatch: pytest.MonkeyPatch, make: str, lost: str
) -> None:
    original = scene.project.in_use()
    if make == "swapped":
        swapped(scene)
    else:
        planned(scene)
        if make == "interrupted":
            scene.interrupt("switch-generation")
        else:
            scene.must(APPLY)
        if make == "undone halfway":
            scene.interrupt("remove-generation", undo_of(scene))
    before = scene.project.files(scene.folder)
    staging = copy_of(scene, monkeypatch)
    for name in lost.split(" and ") if lost != "nothing" else ():
        (staging / ".slackwater" / name).unlink()
    undo = undo_of(scene)
    file = staging / ".slackwater" / folder_of(scene).relative_to(scene.project.home) / "plan.json"
    commands = [undo, f"apply {file} --yes", "prune --keep 0 --yes"]

    for command in (*commands, "home accept --copied", *commands):
        scene.type(command)
        assert scene.project.files(scene.folder) == before, command

    # The copy is not stuck: its stream needs a name and an output of its own, and with these it runs.
    pipeline = staging / "clicks.py"
    assert scene.type("run clicks.py").code == "sink-changed"
    assert "operation-unfinished" not in scene.type("status --format json").text
    pipeline.write_text(pipeline.read_text().replace('"out"', '"own"').replace("per_page", "staged"))
    assert scene.type("run clicks.py").started
    monkeypatch.chdir(staging)
    assert scene.type(undo).code == "operation-foreign"
    # The original is as free as it was.
    monkeypatch.chdir(scene.folder)
    scene.must(undo)
    assert scene.project.in_use() == original
