"""Deleted checkpoints, unreadable sinks, batches that are not recorded, killed applies: exact, or refused."""

import json
import shutil
import sqlite3

import pytest

from slackwater.core.records import GenerationRecord, LogLine, StreamRecord
from slackwater.ledger.ledger import Ledger
from tests.restart.scenario import CONF, STREAM, UPGRADED, FileClicks, Workspace
from tests.restart.small import error_code, tree
from tests.restart.test_files import KILLED, kill_at
from tests.support.killing import kill_when

pytestmark = [pytest.mark.spark, pytest.mark.timeout(1200)]


@pytest.fixture(scope="module")
def upgraded_baseline(tmp_path_factory: pytest.TempPathFactory) -> Workspace:
    workspace = Workspace(tmp_path_factory.mktemp("upgraded"), FileClicks())
    workspace.write_pipeline(UPGRADED)
    workspace.run()
    return workspace


def _other_windows_are_not_rebuilt(workspace: Workspace) -> None:
    """A rebuild with windows of six hours would leave out or write again what windows of one hour have written."""
    upgraded = (workspace.folder / "clicks.py").read_text()
    (workspace.folder / "clicks.py").write_text(upgraded.replace('"1 hour"', '"6 hours"'))
    refused = workspace.slackwater("plan", "rebuild", STREAM, *CONF, code=5)
    assert error_code(refused) == "rebuild-insufficient"
    (workspace.folder / "clicks.py").write_text(upgraded)


def test_deleted_checkpoint_and_upgraded_aggregation(
    file_workspace: Workspace, file_baseline: Workspace, upgraded_baseline: Workspace
) -> None:
    workspace = file_workspace
    kill_at(workspace, "between offset and sink write")
    written = workspace.written()
    shutil.rmtree(workspace.checkpoint)
    workspace.write_pipeline(UPGRADED)

    refused = workspace.slackwater("run", "clicks.py", "--until-caught-up", *CONF, code=5)
    assert error_code(refused) == "checkpoint-lost"
    _other_windows_are_not_rebuilt(workspace)
    plan = workspace.rebuild()
    repeated = workspace.slackwater("apply", "plan.json", "--yes", *CONF)
    workspace.run()

    assert plan["facts"]["ranges_from"] == "ledger"
    assert plan["facts"]["target"] == written
    assert plan["facts"]["contributing"] > 0, "an upgrade above the watermark keeps the small replay"
    assert "changed nothing" in repeated.stdout
    expected = file_baseline.rows(last=written) + upgraded_baseline.rows(first=written + 1)
    assert workspace.rows() == expected
    assert workspace.rows() != file_baseline.rows()


def _reader_of(workspace: Workspace, batch: int) -> StreamRecord:
    """Another stream of the home that has taken the files of a batch, as its source log would record."""
    manifest = workspace.output / "_spark_metadata" / str(batch)
    paths = [json.loads(line)["path"] for line in manifest.read_text().split("\n")[1:]]
    assert paths, "the batch to be cut must have written files"
    lines = [json.dumps({"path": path, "timestamp": 0, "batchId": 0}) for path in paths]
    reader = StreamRecord("web", "reader", {"kind": "files", "format": "parquet", "path": "/nowhere"}, "append", "x.py")
    with Ledger.open(workspace.folder / ".slackwater" / "ledger.db", create=False) as ledger:
        ledger.register_stream(reader)
        ledger.add_generation(GenerationRecord(reader.full_name, 1, str(workspace.folder / "reader")))
        ledger.record_lines([LogLine(reader.full_name, 1, "sources/0", 0, "\n".join(["v1", *lines]))])
    return reader


def _forget_reader(workspace: Workspace, reader: StreamRecord) -> None:
    with sqlite3.connect(workspace.folder / ".slackwater" / "ledger.db") as ledger:
        ledger.execute("DELETE FROM log_lines WHERE stream = ?", (reader.full_name,))


def test_batch_that_nobody_recorded_is_cut_from_the_sink(file_workspace: Workspace, file_baseline: Workspace) -> None:
    workspace = file_workspace
    killed_at = KILLED - 1  # the window that closes at 01:00 is written by an earlier batch; this one closes the next
    kill_at(workspace, "before the offset write")
    written = workspace.written()
    shutil.rmtree(workspace.checkpoint)
    # Make the ledger as it is when the listener and the watcher had not seen a batch before the kill.
    with sqlite3.connect(workspace.folder / ".slackwater" / "ledger.db") as ledger:
        for log in ("offsets", "commits", "sink"):
            ledger.execute("DELETE FROM log_lines WHERE log = ? AND entry >= ?", (log, killed_at))
        ledger.execute("DELETE FROM log_lines WHERE log LIKE 'sources/%' AND entry >= ?", (killed_at,))
        ledger.execute("DELETE FROM batches WHERE batch_id >= ?", (killed_at,))

    reader = _reader_of(workspace, killed_at)
    before = tree(workspace.output)
    refused = workspace.slackwater("plan", "rebuild", STREAM, code=5)
    assert error_code(refused) == "cut-was-read"
    assert reader.full_name in refused.stderr
    assert tree(workspace.output) == before

    _forget_reader(workspace, reader)
    plan = workspace.rebuild()
    assert workspace.written() == killed_at - 1
    workspace.run()

    cut = next(action["cut"] for action in plan["actions"] if action["kind"] == "cut-sink")
    assert cut["batches"] == list(range(killed_at, written + 1))
    backup = workspace.stream_folder / "operations" / plan["id"] / "backup"
    assert cut["files"], "the cut batches had written files"
    assert set(tree(backup)) >= set(cut["files"])
    assert workspace.rows() == file_baseline.rows()


@pytest.mark.thorough
def test_unreadable_and_absent_sinks_are_refused(file_workspace: Workspace, file_baseline: Workspace) -> None:
    workspace = file_workspace
    kill_at(workspace, "between offset and sink write")
    manifest = workspace.output / "_spark_metadata"
    newest, whole = manifest / "8", (manifest / "8").read_bytes()

    newest.write_bytes(whole[: len(whole) // 2] if len(whole) > 4 else b"")
    torn = workspace.slackwater("plan", "rebuild", STREAM, code=3)
    assert error_code(torn) == "sink-unreadable"
    assert str(newest) in torn.stderr
    newest.write_bytes(whole)

    manifest.rename(workspace.output / "moved")
    absent = workspace.slackwater("plan", "rebuild", STREAM, code=5)
    assert error_code(absent) == "sink-empty"
    (workspace.output / "moved").rename(manifest)

    workspace.slackwater("plan", "rebuild", STREAM, "--out", "plan.json")
    workspace.run()
    moved = workspace.slackwater("apply", "plan.json", "--yes", *CONF, code=5)
    assert error_code(moved).startswith("moved-")
    assert "since" in moved.stderr
    assert workspace.rows() == file_baseline.rows()


def test_killed_in_the_first_batch_begins_again_at_batch_0(file_workspace: Workspace, file_baseline: Workspace) -> None:
    workspace = file_workspace
    workspace.kill_before("out/_spark_metadata/0")
    assert workspace.written() == -1
    shutil.rmtree(workspace.checkpoint)

    plan = workspace.rebuild()
    workspace.run()

    assert plan["facts"]["target"] == -1
    assert workspace.rows() == file_baseline.rows()


@pytest.mark.thorough
def test_killed_apply_is_carried_on_by_running_it_again(file_workspace: Workspace, file_baseline: Workspace) -> None:
    workspace, target = file_workspace, 6
    kill_at(workspace, "between offset and sink write")
    workspace.slackwater("plan", "rebuild", STREAM, "--at", f"batch:{target}", "--out", "plan.json")
    next_generation = workspace.stream_folder / "checkpoints" / "0002"
    applying = workspace.start("apply", "plan.json", "--yes", *CONF)
    replaying = next_generation / "commits" / str(target - 1)
    kill_when(applying, replaying.exists, (next_generation / "offsets").exists)

    refused = workspace.slackwater("run", "clicks.py", *CONF, code=5)
    assert error_code(refused) == "operation-unfinished"
    workspace.slackwater("apply", "plan.json", "--yes", *CONF)
    assert workspace.written() == target
    workspace.run()

    assert workspace.rows() == file_baseline.rows()
