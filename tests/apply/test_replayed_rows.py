"""Rows of replayed batches against recorded counts: Spark counts rows again where an executor is lost."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

import pytest

from slackwater.checkpoint.logs import read_logs
from slackwater.core.errors import Refused
from slackwater.core.records import LogLine
from slackwater.operations.actions.common.facts import COUNTED
from slackwater.operations.apply.replayer import Replayed
from slackwater.storage.open import open_read_store
from tests.support.homes import ROWS, STREAM, HomeSpec
from tests.support.rebuilds import CLEAN, Project, Silent, StubReplayer, make_project

BATCH = 5
KAFKA = replace(CLEAN, source="kafka")
UNREPORTED = replace(KAFKA, reported=tuple(range(BATCH)))
"""The driver was killed before the progress of the newest batch was recorded."""


@dataclass
class Counting(StubReplayer):
    """Reports of ``BATCH`` these rows, at each replay of it the next ones, and of others what is recorded."""

    counts: tuple[int, ...] = (ROWS,)
    replays: list[bool] = field(default_factory=list)

    def run_pending(self, checkpoint: str, **options: object) -> Replayed:
        batch = read_logs(open_read_store(checkpoint)).planned
        super().run_pending(checkpoint, **options)
        if not options["changelog"]:
            return Replayed(batch, 0)
        if batch != BATCH:
            return Replayed(batch, ROWS)
        self.replays.append(bool(options["again"]))
        return Replayed(batch, self.counts[min(len(self.replays), len(self.counts)) - 1])

    def _rows(self, *_: object) -> int:
        return 0


class Saying(Silent):
    """Keeps what is said."""

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
            workspace.ledger.record_batch(replace(batch, input_rows=rows))
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
    assert project.apply(plan, replayer, display=display).outcome == "applied"
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


@pytest.mark.parametrize("spec", [CLEAN, KAFKA, UNREPORTED], ids=["files", "kafka", "unreported"])
def test_a_batch_that_reads_too_many_rows_is_replayed_again(tmp_path: Path, spec: HomeSpec) -> None:
    assert applied(recorded(tmp_path, spec), ROWS + 50, ROWS) == ([False, True], None, [])


def test_it_is_refused_where_it_reads_them_again(tmp_path: Path) -> None:
    error = refused(recorded(tmp_path, CLEAN), ROWS + 50)

    assert (error.expected, error.found) == ("100 rows", "150 rows, also in a second replay of the batch")


@pytest.mark.parametrize("rows", [ROWS, ROWS - 3])
def test_a_count_above_the_range_does_not_hold(tmp_path: Path, rows: int) -> None:
    _, counted, said = applied(recorded(tmp_path, KAFKA, 150), rows)

    assert counted == {str(BATCH): {"recorded": 150, "replayed": rows}}
    assert len(said) == 1
    assert "its range has no more than 100" in said[0]


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
