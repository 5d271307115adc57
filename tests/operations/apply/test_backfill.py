"""Backfills without Spark: what is free for them, that the stream keeps its place, and that undo restores all."""

import json
import re
import sqlite3
from collections.abc import Iterator, Mapping
from contextlib import closing
from dataclasses import dataclass, replace
from pathlib import Path

import pytest

from slackwater.checkpoint.logs import read_logs
from slackwater.core.checkpoint import SourceFile
from slackwater.core.errors import OutcomeUnknown, Refused, UsageError
from slackwater.core.program import InputShape, Program, SourceShape, Traced
from slackwater.core.records import GenerationRecord, LogLine, StreamRecord
from slackwater.core.sink import Cut, Delivery, Traits
from slackwater.diagnose.number_line import findings
from slackwater.formats.text_log import parse_offset_entry
from slackwater.ledger.recording.history import history_of
from slackwater.operations.actions.outputs import RECORD
from slackwater.operations.apply.operation import Operation
from slackwater.operations.plan.plan import Plan, SourceStart
from slackwater.runtime.run.before_start import program_json
from slackwater.sinks.common.contract import OpaqueOutput
from slackwater.sinks.common.registry import SINKS, SinkKind
from slackwater.sources.common.contract import Served
from slackwater.sources.files import NO_FILES
from slackwater.storage.local import LocalStore
from tests.support.errors import raises_code
from tests.support.homes import STATELESS, STREAM, HomeSpec, edit_ledger
from tests.support.outputs import manifest_ids
from tests.support.rebuilds import Project, StubReplayer, make_project, old_files, reset_behind
from tests.support.stages import add_stage, read_uncopied

SPEC = HomeSpec(state=None, layout=STATELESS)
KAFKA = HomeSpec(state=None, layout=STATELESS, source="kafka")
SKIPS = Traits(Delivery("exactly-once", "it skips batches that it has"), one_writer=True, skips_known_batches=True)
NEWEST = 5
BATCH = NEWEST + 1
"""The id of the first backfill."""


@pytest.fixture
def project(tmp_path: Path) -> Project:
    """A stream that was started again behind three files that no batch has read."""
    return reset_behind(make_project(tmp_path / "project", SPEC), 3)


def _apply(project: Project, plan: Plan) -> None:
    project.apply(plan, StubReplayer(project.folder / "clicks.py", STATELESS))


def test_the_batch_is_written_and_the_stream_keeps_its_place(project: Project) -> None:
    before, position = project.in_use(), _position(project)
    plan = project.plan_backfill(old_files(project, 3))
    assert [action.kind for action in plan.actions][-2:] == ["run-backfill", "switch-generation"]

    _apply(project, plan)

    after = project.snapshot()
    assert (after.marks.next_batch, after.marks.next_is_planned, after.marks.written) == (BATCH + 1, False, BATCH)
    assert _position(project) == position
    assert findings(after)[0].code == "clean"
    assert manifest_ids(project.folder / "out") == [*range(BATCH + 1)]
    assert project.files_read() == [
        *(f"{number:03d}.json" for number in range(NEWEST + 1)),
        "old-0.json",
        "old-1.json",
        "old-2.json",
    ]
    assert project.plan(goal="resume").actions == ()
    assert not project.apply(plan)
    project.undo(plan)
    assert project.in_use() == before
    assert findings(project.snapshot())[0].code == "clean"


def _position(project: Project) -> str:
    snapshot = project.snapshot()
    offsets = Path(snapshot.generation.location) / "offsets" / str(snapshot.marks.planned)
    return parse_offset_entry(offsets.read_bytes()).offsets[0].text or ""


def test_one_backfill_after_another(project: Project) -> None:
    before = project.in_use()
    first, second = old_files(project, 3)[:1], old_files(project, 3)[1:]
    plans = []
    for files in (first, second):
        plans.append(project.plan_backfill(files))
        _apply(project, plans[-1])

    assert project.snapshot().marks.next_batch == BATCH + 2
    assert len(project.files_read()) == NEWEST + 4
    for plan in reversed(plans):
        project.undo(plan)
    assert project.in_use() == before


def test_an_undone_backfill_can_be_applied_and_undone_again(project: Project) -> None:
    before = project.in_use()
    plan = project.plan_backfill(old_files(project, 3))
    for _ in range(2):
        _apply(project, plan)
        project.undo(plan)
        assert project.in_use() == before


def test_an_output_that_was_changed_while_the_undo_was_interrupted(project: Project) -> None:
    """What is taken out was looked up and recorded, and then another writer changed the output."""
    before = project.in_use()
    plan = project.plan_backfill(old_files(project, 3))
    _apply(project, plan)
    (folder,) = project.folder.rglob(f"operations/{plan.id}")
    stale = Cut(BATCH - 1, (BATCH,), ("another.parquet",), 7)
    RECORD.write(LocalStore(folder), RECORD.kind("backfill-1", stale))
    project.undo(plan)
    assert project.in_use() == before
    assert not (folder / RECORD.name).exists()


def test_there_is_nothing_to_do_for_an_empty_range(project: Project) -> None:
    plan = project.plan_backfill([])

    assert plan.actions == ()
    assert plan.facts.notes[0].startswith("nothing to do: ")


def test_files_that_were_read_or_will_be_read_are_refused(project: Project) -> None:
    read = SourceFile(f"file://{project.folder}/clicks/003.json", 1, 0)
    new = SourceFile(f"file://{project.folder}/clicks/new.json", 1, 0)
    for file in (read, new):
        with raises_code(Refused, "backfill-overlaps", found=file.path):
            project.plan_backfill([*old_files(project, 3), file])
    files = old_files(project, 3)
    _apply(project, project.plan_backfill(files[:2]))
    with pytest.raises(Refused, match="already read") as again:
        project.plan_backfill(files)
    assert again.value.expected == files[2].path


def test_a_file_that_no_longer_exists(project: Project) -> None:
    files = old_files(project, 3)
    plan = project.plan_backfill(files)
    (project.folder / "clicks" / "old-1.json").unlink()

    with raises_code(Refused, "source-files-lost"):
        _apply(project, plan)


def test_where_it_is_not_recorded_what_was_read(project: Project) -> None:
    files = old_files(project, 3)
    _apply(project, project.plan_backfill(files[:1]))
    edit_ledger(project.home, "DELETE FROM log_lines WHERE generation = 3 AND log = 'offsets'")

    with raises_code(Refused, "backfill-unknown"):
        project.plan_backfill(files)


def test_a_lost_ledger_is_restored_with_what_was_read(project: Project) -> None:
    files = old_files(project, 3)
    _apply(project, project.plan_backfill(files[:1]))
    for file in project.home.glob("ledger.db*"):
        file.unlink()
    assert project.plan(goal="resume").actions == ()

    with raises_code(Refused, "backfill-overlaps", found=files[0].path):
        project.plan_backfill(files)


@pytest.mark.parametrize("offset", ['{"logOffset":"2"}', '{"logOffset":1e3}', "{}", '{"somewhere":0}', '"2"', "true"])
def test_an_offset_in_an_edited_plan_that_is_none(project: Project, offset: str) -> None:
    start = SourceStart("0", offset, {}, None, "source 0")
    with raises_code(UsageError, "target"):
        project.plan_backfill_of(start, NO_FILES)
    with raises_code(UsageError, "target"):
        project.plan_reset("keep", start)


def test_a_source_of_which_nothing_is_known(project: Project) -> None:
    start = SourceStart("0", '{"somewhere":0}', {}, None, "source 0")
    for file in (project.checkpoint(1) / "offsets").iterdir():
        file.write_text(file.read_text().replace("logOffset", "somewhere"))
    with closing(sqlite3.connect(project.home / "ledger.db")) as ledger, ledger:
        lines = "UPDATE log_lines SET text = CAST(replace(CAST(text AS TEXT), 'logOffset', 'somewhere') AS BLOB)"
        ledger.execute(f"{lines} WHERE log = 'offsets'")

    with raises_code(Refused, "backfill-unknown"):
        project.plan_backfill_of(start, '{"somewhere":5}')


@pytest.mark.parametrize(
    ("spec", "code", "hint"),
    [
        (HomeSpec(), "backfill-stateful", f"slackwater plan reset {STREAM} --from earliest$"),
        (replace(SPEC, output_mode="update"), "backfill-replaces", ""),
        (replace(SPEC, planned=6), "backfill-unready", "--until-caught-up"),
        (replace(SPEC, planned=7, committed=6, written=4), "backfill-unready", f"plan resume {STREAM}"),
        (replace(SPEC, planned=-1, committed=-1, written=-1), "backfill-unready", "--until-caught-up"),
    ],
    ids=["with state", "rows replace newer ones", "interrupted", "sink behind", "never ran"],
)
def test_a_stream_that_takes_no_backfill(spec: HomeSpec, code: str, hint: str, tmp_path: Path) -> None:
    project = make_project(tmp_path / "project", spec)

    with raises_code(Refused, code) as refused:
        project.plan_backfill(old_files(project, 1))

    assert re.search(hint, str(refused.value.hint))


@pytest.mark.parametrize(
    ("goal", "target"), [("rebuild", "earliest"), ("rebuild", "batch:4"), ("replay", "earliest"), ("replay", "batch:6")]
)
def test_batches_before_it_are_not_processed_again(goal: str, target: str, project: Project) -> None:
    _apply(project, project.plan_backfill(old_files(project, 3)))

    with raises_code(Refused, "target-unknown") as refused:
        project.plan(target, goal=goal)

    assert str(refused.value.hint).endswith(f"slackwater plan reset {STREAM} --from earliest")


def test_a_rebuild_behind_it_leaves_its_rows_and_the_position(project: Project) -> None:
    _apply(project, project.plan_backfill(old_files(project, 3)))
    position = _position(project)
    output = project.files(project.folder / "out")

    plan = project.plan()
    _apply(project, plan)

    assert plan.facts.target == BATCH
    assert (_position(project), project.files(project.folder / "out")) == (position, output)
    assert len(project.files_read()) == NEWEST + 4


def test_offsets_between_what_was_read_are_free(tmp_path: Path) -> None:
    project = make_project(tmp_path / "project", KAFKA)
    project.claim_output()
    live = {"clicks": {"0": 1000, "1": 1000}}
    log = {"0": f"\0v1\n{_json(live)}"}
    _apply(project, project.plan_reset("keep", SourceStart("0", _json(live), log, None, "")))
    free = "clicks-0: offsets 360 to 999, clicks-1: offsets 240 to 999"
    for start, end, found in (
        ({"0": 359, "1": 240}, {"0": 500, "1": 500}, "clicks-0: offsets 359 to 499"),
        ({"0": 360, "1": 240}, {"0": 500, "1": 1001}, "clicks-1: offsets 240 to 1000"),
    ):
        with raises_code(Refused, "backfill-overlaps", expected=free, found=found):
            project.plan_backfill_of(*_range(start, end))

    plan = project.plan_backfill_of(*_range({"0": 360, "1": 300}, {"0": 1000, "1": 1000}))
    _apply(project, plan)

    assert json.loads(_position(project)) == live
    with pytest.raises(Refused) as again:
        project.plan_backfill_of(*_range({"0": 360, "1": 240}, {"0": 360, "1": 301}))
    assert again.value.expected == "clicks-1: offsets 240 to 299"
    with project.open() as workspace:
        history = history_of(workspace.ledger, workspace.ledger.find_stream(STREAM))
    assert history.begins == BATCH + 1


class Shortened(StubReplayer):
    """The broker has removed the oldest records of the first partition."""

    def served_positions(self) -> Mapping[str, Served]:
        return {"0": Served(_json({"clicks": {"0": 400, "1": 0}}))}


def test_offsets_that_the_broker_has_removed_since(tmp_path: Path) -> None:
    project = make_project(tmp_path / "project", KAFKA)
    project.claim_output()
    live = {"clicks": {"0": 1000, "1": 1000}}
    log = {"0": f"\0v1\n{_json(live)}"}
    _apply(project, project.plan_reset("keep", SourceStart("0", _json(live), log, None, "")))
    before, output = project.in_use(), project.files(project.folder / "out")
    plan = project.plan_backfill_of(*_range({"0": 360, "1": 300}, {"0": 1000, "1": 1000}))

    with raises_code(Refused, "source-rows-lost", found="clicks-0: offsets 360 to 399; the oldest that is left is 400"):
        project.apply(plan, Shortened(project.folder / "clicks.py", STATELESS))

    assert (project.in_use(), project.files(project.folder / "out")) == (before, output)
    _apply(project, project.plan_backfill_of(*_range({"0": 400, "1": 300}, {"0": 1000, "1": 1000})))


def _range(start: dict[str, int], end: dict[str, int]) -> tuple[SourceStart, str]:
    first = _json({"clicks": start})
    return SourceStart("0", first, {"0": f"\0v1\n{first}"}, None, "source 0"), _json({"clicks": end})


def _json(value: object) -> str:
    return json.dumps(value, separators=(",", ":"))


class Silent(StubReplayer):
    """Writes rows to a sink that does not show them, then fails as many times as asked for."""

    failures: int = 0

    def run_backfill(self, _operation: Operation, generation: GenerationRecord) -> None:
        store = LocalStore(generation.location)
        if self.failures:
            self.failures -= 1
            raise OSError("connection lost")
        store.write(f"commits/{read_logs(store).planned}", b'v1\n{"nextBatchWatermarkMs":0}')


@pytest.fixture
def _skips() -> Iterator[None]:
    SINKS.register("skips", SinkKind(lambda _: OpaqueOutput("skips", SKIPS, None)))
    yield
    SINKS.unregister("skips")


@pytest.mark.usefixtures("_skips")
@pytest.mark.parametrize(("kind", "undone"), [("console", True), ("skips", False)])
def test_a_sink_that_keeps_the_rows(kind: str, undone: bool, tmp_path: Path) -> None:
    spec = replace(SPEC, sink={"kind": kind}, written=-1)
    project = reset_behind(make_project(tmp_path / "project", spec), 3)
    before = project.in_use()
    plan = project.plan_backfill(old_files(project, 3))
    assert any(f"cannot remove what batch {BATCH} wrote" in risk for risk in plan.risks)
    replayer = Silent(project.folder / "clicks.py", STATELESS)
    replayer.failures = 1

    with pytest.raises(OutcomeUnknown):
        project.apply(plan, replayer)
    if undone:
        project.undo(plan)
        assert project.in_use() == before
        return
    with raises_code(Refused, "backfill-kept"):
        project.undo(plan)
    project.apply(plan, replayer)
    assert project.snapshot().marks.next_batch == BATCH + 1
    with raises_code(Refused, "backfill-kept", says="slackwater run"):
        project.undo(plan)


def test_a_batch_that_another_stream_has_read_is_not_taken_out(project: Project) -> None:
    plan = project.plan_backfill(old_files(project, 3))
    _apply(project, plan)
    with project.open() as workspace:
        workspace.ledger.register_stream(
            StreamRecord("clicks", "later", {"kind": "noop"}, "append", str(project.folder / "clicks.py"))
        )
        workspace.ledger.add_generation(GenerationRecord("clicks/later", 1, str(project.folder / "later")))
        file = {"path": f"file://{project.folder}/out/older-{BATCH}.parquet", "timestamp": 1, "batchId": 0}
        workspace.ledger.record_lines([LogLine("clicks/later", 1, "sources/0", 0, f"v1\n{_json(file)}")])

    with raises_code(Refused, "cut-was-read", found="clicks/later"):
        project.undo(plan)

    assert manifest_ids(project.folder / "out") == [*range(BATCH + 1)]


def test_nor_one_of_which_only_the_log_of_the_other_stream_shows_it(project: Project) -> None:
    plan = project.plan_backfill(old_files(project, 3))
    _apply(project, plan)
    add_stage(project, "later", "out", HomeSpec(planned=1, committed=1, state=1, written=1))
    read_uncopied(project, "later", f"out/older-{BATCH}.parquet", 2)

    with raises_code(Refused, "cut-was-read", found="clicks/later"):
        project.undo(plan)

    assert manifest_ids(project.folder / "out") == [*range(BATCH + 1)]


def test_an_edited_pipeline_does_not_continue_it(project: Project) -> None:
    plan = project.plan_backfill(old_files(project, 3))
    replayer = Silent(project.folder / "clicks.py", STATELESS)
    replayer.failures = 1
    with pytest.raises(OutcomeUnknown):
        project.apply(plan, replayer)
    (project.folder / "clicks.py").write_text("import slackwater as sw\n")

    with pytest.raises(OutcomeUnknown, match="edited"):
        _apply(project, plan)


@dataclass
class _OfTheProcess(Silent):
    """A query with a column that is another one in each process: a time, or an id of the run."""

    value: str = "first"
    topic: str = "clicks"
    threshold: int = 4

    def program(self, settings: Mapping[str, str] | None = None) -> Mapping[str, object] | None:
        filters = (f"(n > {self.threshold})",)
        rows = InputShape("source0", filters=filters, columns=(Traced("run", f"'{self.value}'"),))
        return program_json(
            Program(sources=(SourceShape("kafka", self.topic),), rows=(rows,), code=self.value, settings=settings or {})
        )


@pytest.mark.usefixtures("_skips")
def test_a_value_of_the_process_does_not_stop_a_batch_that_cannot_be_taken_out(tmp_path: Path) -> None:
    """Neither undo nor a run is possible then: the batch has to be finished."""
    project = reset_behind(make_project(tmp_path / "project", replace(SPEC, sink={"kind": "skips"}, written=-1)), 3)
    plan, pipeline = project.plan_backfill(old_files(project, 3)), project.folder / "clicks.py"
    killed = _OfTheProcess(pipeline, STATELESS)
    killed.failures = 1
    with pytest.raises(OutcomeUnknown):
        project.apply(plan, killed)
    with pytest.raises(OutcomeUnknown, match="was kafka clicks, is kafka other"):
        project.apply(plan, _OfTheProcess(pipeline, STATELESS, topic="other"))
    with pytest.raises(OutcomeUnknown, match=r"filter \(n > 5\) was added"):
        project.apply(plan, _OfTheProcess(pipeline, STATELESS, threshold=5))

    project.apply(plan, _OfTheProcess(pipeline, STATELESS, value="second"))

    assert project.snapshot().marks.next_batch == BATCH + 1
