"""Rows of replayed batches against recorded counts: Spark counts rows again where an executor is lost."""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

import pytest

from slackwater.checkpoint.logs import read_logs
from slackwater.core.errors import OutcomeUnknown, Refused
from slackwater.core.records import LogLine
from slackwater.operations.action import COUNTED, Display
from slackwater.operations.plan.contributing import Code
from slackwater.operations.plan.plan import Plan
from slackwater.sources.common.contract import SourceRange
from slackwater.storage.open import open_read_store
from tests.support.homes import LAYOUT, ROWS, STREAM, HomeSpec, source_offset
from tests.support.rebuilds import CLEAN, Project, StubReplayer, make_project
from tests.support.stages import three_stages

BATCH = 5
KAFKA = replace(CLEAN, source="kafka")
ALL_MS = 10**12
"""A retention with which every batch contributes to the state."""
UNREPORTED = replace(KAFKA, reported=tuple(range(BATCH)))
"""The driver was killed before the progress of the newest batch was recorded."""


@dataclass
class Counting(StubReplayer):
    """Reports of ``BATCH`` these rows, at each replay of it the next ones, and of others what is recorded."""

    counts: tuple[int, ...] = (ROWS,)
    replays: list[bool] = field(default_factory=list)

    def run_pending(self, checkpoint: str, **options: object) -> tuple[int, int]:
        batch = read_logs(open_read_store(checkpoint)).planned
        super().run_pending(checkpoint, **options)
        if not options["changelog"]:
            return batch, 0
        if batch != BATCH:
            return batch, ROWS
        self.replays.append(bool(options["again"]))
        return batch, self.counts[min(len(self.replays), len(self.counts)) - 1]

    def _rows(self, *_: object) -> int:
        return 0


class Saying(Display):
    def __init__(self) -> None:
        self.said: list[str] = []

    def say(self, text: str) -> None:
        self.said.append(text)


def recorded(folder: Path, spec: HomeSpec, rows: int | None = None, sizes: Mapping[str, int] | None = None) -> Project:
    """A project with this count of ``BATCH``, and with the sizes of its file."""
    project = make_project(folder, spec)
    with project.open() as workspace:
        batch = workspace.ledger.batch(STREAM, BATCH)
        if batch is not None and rows is not None:
            workspace.ledger.record_batch(batch._replace(input_rows=rows))
        if sizes is not None:
            workspace.ledger.record_lines([LogLine(STREAM, 1, "sizes/0", BATCH, json.dumps(sizes))])
    return project


def refused(project: Project, *counts: int) -> Refused:
    """How the rebuild is refused where the replays of ``BATCH`` read these rows."""
    before, plan = project.in_use(), project.plan()
    with pytest.raises(Refused) as caught:
        project.apply(plan, Counting(project.folder / "clicks.py", counts=counts))
    after = project.in_use()
    assert {name: after[name] for name in before} == before
    assert caught.value.code == "rows-differ"
    return caught.value


def applied(project: Project, *counts: int) -> tuple[list[bool], object, list[str]]:
    """What was replayed again, what the journal has of counts, and what was said of them."""
    replayer, display = Counting(project.folder / "clicks.py", counts=counts), Saying()
    plan = project.plan()
    assert project.apply(plan, replayer, display=display)
    journal = project.home / "streams" / "clicks" / "per_page" / "operations" / plan.id / "journal.jsonl"
    lines = [json.loads(line) for line in journal.read_text().splitlines()]
    [facts] = [line["facts"] for line in lines if line.get("kind") == "replay-batches" and line["state"] == "done"]
    return replayer.replays, facts.get(COUNTED), [text for text in display.said if "executor" in text]


@pytest.mark.parametrize("rows", [ROWS, ROWS - 3])
def test_a_range_of_offsets_has_rows_for_not_all_of_them(tmp_path: Path, rows: int) -> None:
    """A transactional topic has markers, a compacted one has gaps."""
    assert applied(recorded(tmp_path, UNREPORTED), rows) == ([False], None, [])


def test_it_has_no_more_rows_than_offsets(tmp_path: Path) -> None:
    error = refused(recorded(tmp_path, UNREPORTED), ROWS + 1)

    assert "its range has no more than 100" in error.message
    assert "slackwater plan rebuild" in (error.hint or "")
    assert "restore" not in (error.hint or ""), "no data of the source makes a range hold more rows than offsets"


@pytest.mark.parametrize("spec", [CLEAN, KAFKA, UNREPORTED], ids=["files", "kafka", "unreported"])
def test_a_batch_that_reads_too_many_rows_is_replayed_again(tmp_path: Path, spec: HomeSpec) -> None:
    assert applied(recorded(tmp_path, spec), ROWS + 50, ROWS) == ([False, True], None, [])


def test_it_is_refused_where_it_reads_them_again(tmp_path: Path) -> None:
    error = refused(recorded(tmp_path, CLEAN), ROWS + 50)

    assert (error.expected, error.found) == ("100 rows", "150 rows, also in a second replay of the batch")


def test_a_count_above_the_range_does_not_hold_where_the_replay_reads_all_of_it(tmp_path: Path) -> None:
    _, counted, said = applied(recorded(tmp_path, KAFKA, 150), ROWS)

    assert counted == {str(BATCH): {"recorded": 150, "replayed": ROWS}}
    assert len(said) == 1
    assert "its range has no more than 100" in said[0]


@pytest.mark.parametrize("rows", [ROWS - 20, ROWS + 20])
def test_it_holds_where_rows_may_have_gone(tmp_path: Path, rows: int) -> None:
    """From a compacted topic, or from one whose rows the query reads twice in a batch."""
    error = refused(recorded(tmp_path, KAFKA, 2 * ROWS), rows)

    assert (error.expected, error.found) == ("200 rows", f"{rows} rows")
    assert "a reset that processes everything" in (error.hint or "")


def test_a_query_that_reads_its_rows_twice_has_counts_above_the_range(tmp_path: Path) -> None:
    assert applied(recorded(tmp_path, KAFKA, 2 * ROWS), 2 * ROWS) == ([False], None, [])


def test_of_such_a_query_a_count_that_is_too_high_is_replayed_again(tmp_path: Path) -> None:
    assert applied(recorded(tmp_path, KAFKA, 2 * ROWS), 2 * ROWS + 50, 2 * ROWS) == ([False, True], None, [])


def test_a_count_within_the_range_holds(tmp_path: Path) -> None:
    """Records of a compacted topic can be gone, although its oldest offset is still there."""
    assert "a reset that processes everything" in (refused(recorded(tmp_path, KAFKA, ROWS - 1), ROWS - 3).hint or "")


def test_a_count_does_not_hold_where_the_files_are_those_that_were_read(tmp_path: Path) -> None:
    project = recorded(tmp_path, CLEAN, 150, {f"file://{tmp_path}/clicks/{BATCH:03d}.json": 0})

    _, counted, said = applied(project, ROWS)

    assert counted == {str(BATCH): {"recorded": 150, "replayed": ROWS}}
    assert "its files are still those that it read" in said[0]


def test_no_rows_at_all_are_not_those_of_the_files(tmp_path: Path) -> None:
    project = recorded(tmp_path, CLEAN, 150, {f"file://{tmp_path}/clicks/{BATCH:03d}.json": 0})

    refused(project, 0)


def test_a_count_holds_where_sizes_are_not_recorded(tmp_path: Path) -> None:
    """A file with another content can have the same time."""
    refused(recorded(tmp_path, CLEAN, 150), ROWS)


@dataclass
class OtherCode(Counting):
    """Runs other code than ran ``BATCH``. The source still has ``left`` rows of each range, if that is known."""

    left: int | None = None
    asked: list[str | None] = field(default_factory=list)

    def code(self) -> Code:
        return super().code()._replace(rows_digest="of other code")

    def rows_served(self, *asked: object) -> int | None:
        span, was = asked
        assert isinstance(span, SourceRange)
        assert was == {}
        self.asked.append(span.end)
        return self.left


@pytest.mark.parametrize(
    ("count", "rows", "left", "asked"),
    [
        (ROWS - 3, ROWS - 3, None, False),
        (ROWS - 3, ROWS, None, False),
        (ROWS, 0, ROWS, True),
        (ROWS - 3, 2 * (ROWS - 3), ROWS - 3, True),
        (2 * ROWS, ROWS // 2, ROWS, True),
        (0, ROWS - 3, ROWS - 3, True),
        (ROWS, 3, None, True),
    ],
    ids=["equal", "whole range", "needs none now", "twice now", "twice then", "needed none then", "unknown"],
)
def test_other_code_counts_other_rows_of_a_source_that_has_all(
    tmp_path: Path, count: int, rows: int, left: int | None, asked: bool
) -> None:
    project = of_source(tmp_path, count)
    replayer = OtherCode(project.folder / "clicks.py", counts=(rows,), left=left)

    assert project.apply(project.plan(retention_ms=ALL_MS), replayer)

    assert replayer.asked == [source_offset(KAFKA, BATCH)] * asked


@pytest.mark.parametrize("rows", [0, ROWS - 20, 2 * (ROWS - 20)])
def test_other_code_does_not_hide_that_rows_of_a_source_are_gone(tmp_path: Path, rows: int) -> None:
    """As a compaction leaves a topic: its oldest offset and its end stay what they were."""
    project = of_source(tmp_path, ROWS)
    before, plan = project.in_use(), project.plan(retention_ms=ALL_MS)

    with pytest.raises(Refused) as caught:
        project.apply(plan, OtherCode(project.folder / "clicks.py", counts=(rows,), left=ROWS - 20))

    after = project.in_use()
    assert {name: after[name] for name in before} == before
    assert (caught.value.code, caught.value.expected, caught.value.found) == ("rows-differ", "100 rows", "80 rows")
    assert caught.value.message.startswith("A read of source 0 of batch 5 read 80 rows")


def of_source(folder: Path, count: int) -> Project:
    project = make_project(folder, replace(KAFKA, layout={**LAYOUT, "rows_digest": "of the code that ran"}))
    with project.open() as workspace:
        batch = workspace.ledger.batch(STREAM, BATCH)
        assert batch is not None
        sources = tuple(source._replace(input_rows=count) for source in batch.sources)
        workspace.ledger.record_batch(batch._replace(input_rows=count, sources=sources))
    return project


class Killed(Counting):
    """Is killed when Spark has committed ``BATCH``, before anybody has seen how many rows it read."""

    def run_pending(self, checkpoint: str, **options: object) -> tuple[int, int]:
        replayed = super().run_pending(checkpoint, **options)
        if options["changelog"] and replayed[0] == BATCH:
            raise KeyboardInterrupt
        return replayed


def killed(project: Project, *counts: int) -> Plan:
    """The plan of a rebuild that was killed behind the commit of ``BATCH``."""
    plan = project.plan()
    with pytest.raises(KeyboardInterrupt):
        project.apply(plan, Killed(project.folder / "clicks.py", counts=counts))
    assert read_logs(open_read_store(str(project.checkpoint(2)))).committed == BATCH
    return plan


def test_a_batch_that_was_committed_and_not_checked_is_replayed_again(tmp_path: Path) -> None:
    project = recorded(tmp_path, CLEAN)
    plan = killed(project, ROWS - 60)

    again = Counting(project.folder / "clicks.py", counts=(ROWS - 60,))
    with pytest.raises(Refused) as caught:
        project.apply(plan, again)

    assert (caught.value.code, again.replays) == ("rows-differ", [False])
    assert not project.checkpoint(2).exists()


def test_a_replay_that_was_killed_behind_a_commit_gives_what_one_attempt_gives(tmp_path: Path) -> None:
    project, whole = (recorded(tmp_path / name, CLEAN) for name in ("killed", "whole"))
    plan = killed(project, ROWS)

    assert project.apply(plan, Counting(project.folder / "clicks.py"))

    assert whole.apply(whole.plan(), Counting(whole.folder / "clicks.py"))
    logs = ("offsets", "commits", "state")
    found = [project.files(*(project.checkpoint(2) / one for one in logs)) for project in (project, whole)]
    assert found[0] == found[1]


class SeesFewer(StubReplayer):
    """Reads fewer rows of each batch of the later stage ``clicks/day``."""

    def __init__(self, pipeline: Path) -> None:
        super().__init__(pipeline)
        self.replayed: list[int] = []

    def run_pending(self, checkpoint: str, **options: object) -> tuple[int, int]:
        replayed = super().run_pending(checkpoint, **options)
        if "/day/" not in checkpoint or not options["changelog"]:
            return replayed
        self.replayed.append(replayed[0])
        return replayed[0], ROWS - 60


def test_a_later_stage_whose_batch_was_refused_does_not_pass_it_when_it_is_continued(tmp_path: Path) -> None:
    stages = three_stages(tmp_path)
    state = stages.home / "streams/clicks/day/checkpoints/0001/state/0/0"
    for version in (1, 2, 3):
        (state / f"{version}.delta").unlink()
    plan = stages.plan("batch:4", goal="replay", downstream=True)
    assert "replay-batches" in {action.kind for action in plan.members[1].actions}

    for _ in range(3):
        fewer = SeesFewer(stages.folder / "clicks.py")
        with pytest.raises(OutcomeUnknown) as caught:
            stages.apply(plan, fewer)
        assert "40 rows" in caught.value.message
        assert fewer.replayed == [1]
    assert stages.apply(plan)
