"""Backfills into a directory, without Spark: the stream is not changed, and undo removes only what is its own."""

import json
from dataclasses import replace
from pathlib import Path

import pytest

from slackwater.checkpoint.logs import read_logs
from slackwater.cli.verbs.ledger import operations_document
from slackwater.cli.verbs.prune import delete_prunable
from slackwater.core.errors import Moved, Refused, StreamFailed
from slackwater.core.records import GenerationRecord, LogLine, StreamRecord
from slackwater.core.sink import BackfillDirectory
from slackwater.formats.text_log import parse_offset_entry
from slackwater.operations.apply.operation import Operation
from slackwater.operations.plan.contributing import Code
from slackwater.operations.plan.document import plan_again, title
from slackwater.operations.plan.plan import Plan, SourceStart
from slackwater.sinks.files.backfill_output import backfill_output, directory_sink, discard
from slackwater.sinks.files.sink import FilesSink
from slackwater.storage.local import LocalStore
from tests.support.errors import raises_code
from tests.support.homes import STATELESS, STREAM, HomeSpec
from tests.support.outputs import manifest_ids
from tests.support.rebuilds import Project, StubReplayer, make_project, old_files, reset_behind
from tests.support.stages import add_stage, read_uncopied

SPEC = HomeSpec(state=None, layout=STATELESS)
NEWEST = 5
GENERATION = 3
"""The checkpoint of the backfill directory; the reset has built the second."""


@pytest.fixture
def project(tmp_path: Path) -> Project:
    """A stream that was started again behind three files that no batch has read."""
    return reset_behind(make_project(tmp_path / "project", SPEC), 3)


@pytest.fixture
def side(project: Project) -> Path:
    return project.folder / "side"


@pytest.fixture
def plan(project: Project, side: Path) -> Plan:
    return project.plan_backfill(old_files(project, 3), side)


def _apply(project: Project, plan: Plan) -> bool:
    return project.apply(plan, StubReplayer(project.folder / "clicks.py", STATELESS))


def _live(project: Project) -> dict[str, str]:
    """What the stream runs on, without the checkpoint of the backfill directory and the list of checkpoints."""
    found = project.in_use()
    return {name: text for name, text in found.items() if f"/{GENERATION:04d}" not in name and name != "stream.json"}


def _marks(project: Project) -> tuple[int, list[int]]:
    """The generation in use, and the newest batches that the output had."""
    with project.open() as workspace:
        marks = workspace.ledger.sink_marks(STREAM)
        return workspace.ledger.find_stream(STREAM).current_generation, [mark.written for mark in marks]


def test_the_rows_are_aside_and_the_stream_is_not_changed(project: Project, plan: Plan, side: Path) -> None:
    before, live, marks, read = project.in_use(), _live(project), _marks(project), project.files_read()
    assert [action.kind for action in plan.actions] == ["start-generation", "verify-generation", "run-into-directory"]
    assert title(plan) == f"backfill {STREAM} at earliest into {side}"
    assert plan_again(plan) == f"slackwater plan backfill {STREAM} --from earliest --output aside --into {side}"

    assert _apply(project, plan)

    assert (_live(project), _marks(project), project.files_read()) == (live, marks, read)
    assert manifest_ids(side) == [0]
    assert read_logs(LocalStore(project.checkpoint(GENERATION))).committed == 0
    assert not _apply(project, plan)
    assert project.plan(goal="resume").actions == ()

    project.undo(plan)
    assert list(side.iterdir()) == []
    assert project.in_use() == before
    assert _apply(project, plan)
    assert manifest_ids(side) == [0]


def test_the_range_is_still_free(project: Project, plan: Plan, side: Path) -> None:
    _apply(project, plan)
    other = project.plan_backfill(old_files(project, 3), side.with_name("other"))
    _apply(project, other)
    real = project.plan_backfill(old_files(project, 3))
    _apply(project, real)

    assert manifest_ids(project.folder / "out")[-1] == NEWEST + 1
    assert {"old-0.json", "old-1.json", "old-2.json"} <= set(project.files_read())

    with raises_code(Refused, "backfill-overlaps"):
        project.plan_backfill(old_files(project, 3), side.with_name("third"))
    for one in (plan, real, other):
        project.undo(one)
    assert manifest_ids(project.folder / "out")[-1] == NEWEST


def test_the_operation_that_stands_in_the_way_of_an_undo_is_one_that_has_switched(project: Project, side: Path) -> None:
    first = project.plan_backfill(old_files(project, 3)[:1])
    _apply(project, first)
    rebuilt = project.plan()
    _apply(project, rebuilt)
    _apply(project, project.plan_backfill(old_files(project, 3)[1:], side))

    with raises_code(Refused, "undo-superseded", says=rebuilt.id):
        project.undo(first)


def test_a_plan_that_was_made_before_it_is_made_again(project: Project, plan: Plan) -> None:
    """Both would build a generation of the same number."""
    older = project.plan()
    _apply(project, plan)
    before = project.in_use()

    with raises_code(Moved, "moved-number", hint=f"plan again: slackwater plan rebuild {STREAM}"):
        _apply(project, older)

    assert project.in_use() == before
    project.undo(plan)
    assert _apply(project, older)


def test_a_directory_with_something_in_it(project: Project, side: Path) -> None:
    side.mkdir()
    plan = project.plan_backfill(old_files(project, 3), side)
    (side / "notes.txt").write_text("mine")

    with raises_code(Refused, "backfill-directory-occupied", found="notes.txt"):
        project.plan_backfill(old_files(project, 3), side)
    with raises_code(Refused, "backfill-directory-occupied"):
        _apply(project, plan)
    with raises_code(Refused, "backfill-directory-occupied", found="a file"):
        project.plan_backfill(old_files(project, 3), side / "notes.txt")


class _Fills(StubReplayer):
    """Somebody writes to the directory while the checkpoint is built."""

    def code(self) -> Code:
        (self.pipeline.parent / "side").mkdir(exist_ok=True)
        (self.pipeline.parent / "side" / "notes.txt").write_text("mine")
        return super().code()


def test_a_directory_that_is_filled_meanwhile(project: Project, plan: Plan, side: Path) -> None:
    before = project.in_use()

    with raises_code(Refused, "moved-backfill-directory", found="notes.txt", says="--output aside --into"):
        project.apply(plan, _Fills(project.folder / "clicks.py", STATELESS))

    assert project.in_use() == before
    assert [path.name for path in side.iterdir()] == ["notes.txt"]


@pytest.mark.parametrize(
    "place", ["out", "out/older", "clicks/older", ".", ".slackwater/older", "later/older", "link/older"]
)
def test_a_directory_that_is_shared(place: str, project: Project) -> None:
    with project.open() as workspace:
        sink = {"kind": "files", "format": "parquet", "path": str(project.folder / "later")}
        first = GenerationRecord("clicks/later", 1, str(project.folder / "checkpoint-of-later"))
        workspace.ledger.register_stream(StreamRecord("clicks", "later", sink, "append", "clicks.py"), first)
    (project.folder / "link").symlink_to(project.folder / "out")

    with raises_code(Refused, "backfill-directory-shared"):
        project.plan_backfill(old_files(project, 3), project.folder / place)


class _Fails(StubReplayer):
    """Writes a file, as of a batch that is interrupted, and fails; or is killed where ``killed`` is set."""

    killed = False

    def run_into_directory(self, operation: Operation, generation: GenerationRecord, output: BackfillDirectory) -> None:
        super().run_into_directory(operation, generation, output)
        LocalStore(generation.location).delete("commits/0")
        (Path(output.path) / "_spark_metadata" / "0").unlink()
        if self.killed:
            raise KeyboardInterrupt
        raise StreamFailed("backfill-failed", "The batch fails")


def test_a_batch_that_fails_leaves_nothing(project: Project, plan: Plan, side: Path) -> None:
    before = project.in_use()

    with pytest.raises(StreamFailed):
        project.apply(plan, _Fails(project.folder / "clicks.py", STATELESS))

    assert project.in_use() == before
    assert list(side.iterdir()) == []
    with project.open() as workspace:
        assert workspace.ledger.open_operation(STREAM) is None
    assert _apply(project, plan)


def test_what_others_have_written_stays(project: Project, plan: Plan, side: Path) -> None:
    elsewhere = project.folder / "elsewhere"
    part = "part-00001-6f5c1c2e-0f6b-4a43-9d1e-2f4f5b7f0a11-c000.snappy.parquet"
    elsewhere.mkdir()
    interrupted = _Fails(project.folder / "clicks.py", STATELESS)
    interrupted.killed = True
    with pytest.raises(KeyboardInterrupt):
        project.apply(plan, interrupted)
    (side / "day=1").mkdir()
    for file in (elsewhere / part, side / "day=1" / part, side / "notes.txt"):
        file.write_text("rows")
    (side / "linked").symlink_to(elsewhere)

    project.undo(plan)

    assert sorted(path.name for path in side.iterdir()) == ["linked", "notes.txt"]
    assert (elsewhere / part).exists()
    discard(BackfillDirectory("parquet", str(side)), "20260105T093000-aaaaaa")
    assert (side / "notes.txt").exists()


def test_the_directory_of_another_operation_is_left_alone(project: Project, plan: Plan, side: Path) -> None:
    _apply(project, plan)
    files = project.files(side)

    discard(BackfillDirectory("parquet", str(side)), "20260105T093000-aaaaaa")

    assert project.files(side) == files


def test_rows_that_another_stream_has_read_are_not_removed(project: Project, plan: Plan, side: Path) -> None:
    _apply(project, plan)
    (rows,) = side.glob("part-*")
    with project.open() as workspace:
        workspace.ledger.register_stream(StreamRecord("clicks", "later", {"kind": "noop"}, "append", "clicks.py"))
        workspace.ledger.add_generation(GenerationRecord("clicks/later", 1, str(project.folder / "later")))
        text = json.dumps({"path": f"file://{rows}", "timestamp": 1, "batchId": 0})
        workspace.ledger.record_lines([LogLine("clicks/later", 1, "sources/0", 0, f"v1\n{text}")])

    with raises_code(Refused, "backfill-directory-was-read", found="clicks/later"):
        project.undo(plan)

    assert manifest_ids(side) == [0]


def test_nor_rows_of_which_only_the_log_of_the_other_stream_shows_it(project: Project, plan: Plan, side: Path) -> None:
    _apply(project, plan)
    (rows,) = side.glob("part-*")
    add_stage(project, "later", "out", HomeSpec(planned=1, committed=1, state=1, written=1))
    read_uncopied(project, "later", f"side/{rows.name}", 2)

    with raises_code(Refused, "backfill-directory-was-read", found="clicks/later"):
        project.undo(plan)

    assert manifest_ids(side) == [0]


def test_an_edited_pipeline_does_not_continue_it(project: Project, plan: Plan, side: Path) -> None:
    interrupted = _Fails(project.folder / "clicks.py", STATELESS)
    interrupted.killed = True
    with pytest.raises(KeyboardInterrupt):
        project.apply(plan, interrupted)
    (project.folder / "clicks.py").write_text("import slackwater as sw\n")

    with raises_code(Refused, "pipeline-edited", says="plan again"):
        _apply(project, plan)

    assert list(side.iterdir()) == []


def test_prune_deletes_the_checkpoint_and_not_the_rows(project: Project, plan: Plan, side: Path) -> None:
    _apply(project, plan)
    files = project.files(side)

    with project.open() as workspace:
        (removed,) = delete_prunable(workspace, STREAM, 1, lambda _: None)
        listed = operations_document(workspace, STREAM)["operations"][-1]

    assert (removed.generations, removed.operations) == ((GENERATION,), ())
    assert project.files(side) == files
    assert (listed["summary"], listed["obstacle"]) == (f"backfill at earliest into {side}", None)
    project.undo(plan)
    assert list(side.iterdir()) == []


def test_the_format_is_that_of_the_stream_where_it_has_one() -> None:
    own = FilesSink("json", "/out", {"compression": "gzip"})
    output = backfill_output(own.identity(), "/side")

    assert output == BackfillDirectory("json", "/side")
    assert directory_sink(own, output) == replace(own, path="/side")
    assert backfill_output({"kind": "kafka", "topic": "t"}, "/side") == BackfillDirectory("parquet", "/side")
    assert directory_sink(own, BackfillDirectory("parquet", "/side")) == FilesSink("parquet", "/side")


def test_there_is_nothing_to_do_for_an_empty_range(project: Project, side: Path) -> None:
    plan = project.plan_backfill([], side)

    assert plan.actions == ()
    assert not side.exists()


def test_a_lost_ledger_is_restored_without_the_range(project: Project, plan: Plan) -> None:
    _apply(project, plan)
    for file in project.home.glob("ledger.db*"):
        file.unlink()
    assert project.plan(goal="resume").actions == ()

    assert project.plan_backfill(old_files(project, 3)).actions
    project.undo(plan)


def test_offsets_start_where_the_range_does(tmp_path: Path) -> None:
    """Spark takes the start of batch 0 from the source's own log."""
    project = make_project(tmp_path / "project", replace(SPEC, source="kafka"))
    project.claim_output()
    live, first, last = (
        '{"clicks":{"0":1000,"1":1000}}',
        '{"clicks":{"0":360,"1":300}}',
        '{"clicks":{"0":500,"1":300}}',
    )
    ahead = SourceStart("0", live, {"0": f"\0v1\n{live}"}, None, "")
    _apply(project, project.plan_reset("keep", ahead))
    start = SourceStart("0", first, {"0": f"\0v1\n{first}"}, None, "source 0")

    _apply(project, project.plan_backfill_of(start, last, project.folder / "side"))

    store = LocalStore(project.checkpoint(GENERATION))
    assert store.read("sources/0/0") == b"\0v1\n" + first.encode()
    assert parse_offset_entry(store.read("offsets/0")).offsets[0].text == last
    assert not store.exists("offsets/1")
