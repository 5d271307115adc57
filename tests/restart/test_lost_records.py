"""Deleted input, a torn log, a deleted ledger, copied homes: refused or exact, and nothing good is overwritten."""

import json
import shlex
import shutil
import subprocess
from pathlib import Path

import pytest

from tests.restart.scenario import CONF, STREAM
from tests.restart.small import PIPELINE, Saved, SmallWorkspace, error_code, follow, tree
from tests.support.outputs import Rows

pytestmark = [pytest.mark.spark, pytest.mark.timeout(1200)]
FILES = {f"f{number}": range(number * 25, number * 25 + 25) for number in range(6)}
LAST = [150, 100, 300]


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> tuple[SmallWorkspace, Saved]:
    """A workspace that has processed six files, a batch each."""
    workspace = SmallWorkspace(tmp_path_factory.mktemp("production") / "prod")
    for name, minutes in FILES.items():
        workspace.add(name, minutes)
    workspace.caught_up()
    return workspace, Saved(workspace, tmp_path_factory.mktemp("saved") / "copy")


@pytest.fixture(scope="module")
def unbroken(finished: tuple[SmallWorkspace, Saved]) -> Rows:
    workspace, saved = finished
    workspace.add("last", LAST)
    workspace.caught_up()
    rows = workspace.rows()
    saved.restore()
    return rows


@pytest.fixture
def workspace(finished: tuple[SmallWorkspace, Saved]) -> SmallWorkspace:
    finished[1].restore()
    return finished[0]


def test_a_cut_whose_input_is_deleted_is_refused(workspace: SmallWorkspace) -> None:
    deleted = workspace.folder / "landing" / "f4.json"
    deleted.unlink()
    before = tree(workspace.folder)

    refused = workspace.slackwater("plan", "rebuild", STREAM, "--at", "batch:2", "--out", "plan.json", code=5)

    assert error_code(refused) == "source-files-lost"
    assert "f4.json" in refused.stderr
    assert tree(workspace.folder) == before


def test_input_that_goes_between_plan_and_apply_is_refused(workspace: SmallWorkspace) -> None:
    workspace.slackwater("plan", "rebuild", STREAM, "--at", "batch:2", "--out", "plan.json")
    (workspace.folder / "landing" / "f5.json").unlink()
    before = tree(workspace.folder)

    refused = workspace.slackwater("apply", "plan.json", "--yes", *CONF, code=5)

    assert error_code(refused) == "source-files-lost"
    assert "f5.json" in refused.stderr
    assert tree(workspace.folder) == before


def test_a_torn_entry_does_not_replace_the_recorded_one(workspace: SmallWorkspace, unbroken: Rows) -> None:
    newest = workspace.checkpoint / "offsets" / str(workspace.ids("offsets")[-1])
    whole = newest.read_bytes()
    newest.write_bytes(whole[: len(whole) // 2])
    (newest.parent / f".{newest.name}.crc").unlink()
    status = workspace.status(code=3)
    assert status["verdict"]["code"] == "checkpoint-damaged"

    # Only a log is damaged: the state that is there is copied, and nothing is read again.
    printed = shlex.split(status["next"])
    assert printed[1:3] == ["plan", "resume"]
    workspace.slackwater(*printed[1:], "--out", "plan.json")
    workspace.slackwater("apply", "plan.json", "--yes")

    assert workspace.checkpoint.name == "0002"
    assert (workspace.checkpoint / "offsets" / newest.name).read_bytes() == whole
    workspace.add("last", LAST)
    workspace.caught_up()
    assert workspace.rows() == unbroken


def test_a_deleted_ledger_never_costs_the_checkpoint_in_use(workspace: SmallWorkspace, unbroken: Rows) -> None:
    workspace.rebuild()
    live = workspace.checkpoint
    assert live.name == "0002"
    before, rows = tree(live), workspace.rows()
    for file in (workspace.folder / ".slackwater").glob("ledger.db*"):
        file.unlink()

    plan = workspace.rebuild()

    assert next(action["number"] for action in plan["actions"] if action["kind"] == "build-generation") == 3
    assert tree(live) == before
    assert workspace.rows() == rows
    workspace.add("last", LAST)
    workspace.caught_up()
    assert workspace.rows() == unbroken


def test_the_hints_for_a_damaged_ledger_and_stream_file_lead_out(workspace: SmallWorkspace, unbroken: Rows) -> None:
    workspace.add("last", LAST)
    home = workspace.folder / ".slackwater"
    for damaged in (home / "ledger.db", workspace.checkpoint.parent.parent / "stream.json"):
        written = damaged.read_bytes()
        # As after a loss of power.
        damaged.write_bytes(b"\0" * len(written))

        printed = workspace.slackwater("run", "clicks.py", *CONF, code=3).stderr
        hint = next(line for line in printed.splitlines() if line.startswith("hint: "))
        typed = hint.removeprefix("hint: ").rpartition("without one: ")[2].partition(", and ")[0]
        assert typed.startswith(("mkdir ", "mv "))
        subprocess.run(["bash", "-c", typed], cwd=workspace.folder, check=True)
        assert not damaged.exists()

        workspace.caught_up()
        assert workspace.rows() == unbroken
        kept = damaged.with_name(f"{damaged.name}.damaged")
        assert (kept / damaged.name if kept.is_dir() else kept).read_bytes() == b"\0" * len(written)
        assert workspace.status()["verdict"]["code"] == "clean"


@pytest.mark.parametrize(
    "entry", [*(pytest.param(one, marks=pytest.mark.thorough) for one in ("newest", "newest, not committed")), "older"]
)
def test_a_manifest_entry_without_bytes_is_found_and_what_is_printed_leads_out(
    workspace: SmallWorkspace, unbroken: Rows, entry: str
) -> None:
    before, newest = workspace.rows(), workspace.ids("commits")[-1]
    damaged = workspace.output / "_spark_metadata" / str(1 if entry == "older" else newest)
    # As after a loss of power. The checksum stays.
    damaged.write_bytes(b"")
    if entry.endswith("not committed"):
        for name in (str(newest), f".{newest}.crc"):
            (workspace.checkpoint / "commits" / name).unlink()

    found = workspace.status(code=3)
    advice = found["next"] or found["advice"]
    if entry != "older":
        aside, _, _ = advice.partition(", then: ")
        assert aside.startswith(f"mv -T {damaged} ")
        subprocess.run(["bash", "-c", aside], cwd=workspace.folder, check=True)
        assert damaged.with_name(f"{damaged.name}.damaged").read_bytes() == b""
    typed = follow(workspace, advice, lambda: workspace.status_code() == 0 and workspace.rows() == before)

    assert typed[0].startswith("run" if entry.endswith("not committed") else "plan rebuild")
    workspace.add("last", LAST)
    workspace.caught_up()
    assert workspace.rows() == unbroken
    assert workspace.slackwater("status", "--verify", "--format", "json").returncode == 0


def test_a_copied_project_leaves_the_original_alone(workspace: SmallWorkspace, tmp_path: Path) -> None:
    production = tree(workspace.folder)
    # A copy as ``cp -a`` makes it, in which commands can be typed.
    folder = tmp_path / "staging"
    staging = SmallWorkspace(folder)
    shutil.rmtree(folder)
    shutil.copytree(workspace.folder, folder, symlinks=True)
    for command in (("plan", "rebuild", STREAM), ("run", "clicks.py", *CONF)):
        refused = staging.slackwater(*command, code=5)
        assert error_code(refused) == "home-copied"
        assert "--copied" in refused.stderr
    assert staging.status(code=5)["verdict"]["code"] == "home-copied"

    # The copy of the output belongs to the original still, by the path in the copied pipeline.
    staging.slackwater("home", "accept", "--copied")
    plan = staging.slackwater("plan", "rebuild", STREAM, "--out", "plan.json", code=5)
    assert error_code(plan) == "sink-owned"
    run = staging.slackwater("run", "clicks.py", "--until-caught-up", *CONF, code=5)
    assert error_code(run) == "sink-changed"

    assert tree(workspace.folder) == production
    staging.write(PIPELINE.replace('Pipeline("web")', 'Pipeline("staging")').replace('"out"', '"out-of-staging"'))
    staging.caught_up()
    staging.output = staging.folder / "out-of-staging"
    assert staging.rows() == workspace.rows()
    assert tree(workspace.folder) == production


def test_a_moved_project_continues_where_it_was(workspace: SmallWorkspace, unbroken: Rows, tmp_path: Path) -> None:
    home = workspace.folder / ".slackwater"
    elsewhere = tmp_path / "home"
    shutil.move(home, elsewhere)
    workspace.add("last", LAST)

    refused = workspace.slackwater("run", "clicks.py", "--home", str(elsewhere), *CONF, code=5)
    assert error_code(refused) == "home-moved"
    assert "--moved" in refused.stderr
    workspace.slackwater("home", "accept", "--moved", "--home", str(elsewhere))
    workspace.caught_up("--home", str(elsewhere))

    assert workspace.rows() == unbroken
    assert not home.exists()
    status = json.loads(workspace.slackwater("status", "--home", str(elsewhere), "--format", "json").stdout)
    assert status["streams"][0]["verdict"]["code"] == "clean"


def test_a_damaged_byte_in_an_older_state_file_is_found_before_spark_meets_it(
    workspace: SmallWorkspace, unbroken: Rows
) -> None:
    older = max(workspace.checkpoint.glob("state/0/*/3.delta"), key=lambda path: path.stat().st_size)
    assert max(int(path.name.partition(".")[0]) for path in older.parent.glob("*.delta")) > 4, "not the newest one"
    content = bytearray(older.read_bytes())
    content[len(content) // 2] ^= 1
    older.write_bytes(content)

    verdict = workspace.status(code=3)["verdict"]
    assert (verdict["code"], "3.delta does not have its checksum" in verdict["text"]) == ("checkpoint-damaged", True), (
        verdict
    )
    refused = workspace.slackwater("run", "clicks.py", "--until-caught-up", *CONF, code=3)
    assert error_code(refused) == "checkpoint-damaged"
    assert f"slackwater plan rebuild web/{STREAM}" in refused.stderr
    assert "starting Spark" not in refused.stderr
    not_kept = workspace.slackwater("plan", "resume", STREAM, code=5)
    assert f"slackwater plan rebuild web/{STREAM}" in not_kept.stderr

    workspace.rebuild()
    workspace.add("last", LAST)
    workspace.caught_up()
    assert workspace.rows() == unbroken
