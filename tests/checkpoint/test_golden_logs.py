"""Marks, offsets, watermarks, operators and counts of every real checkpoint, against what Spark reported."""

from __future__ import annotations

import ast
import json
from datetime import datetime
from functools import cache
from typing import Any

import pytest

from slackwater.checkpoint.logs import marks, read_logs
from slackwater.checkpoint.reader import read_checkpoint
from slackwater.core.checkpoint import CheckpointReport
from tests.checkpoint.cases import CASES, NAMES, checkpoint_folder, description, opened


@pytest.fixture(params=CASES, ids=NAMES)
def case(request: pytest.FixtureRequest) -> tuple[str, str]:
    found: tuple[str, str] = request.param
    return found


def last_progress(version: str, case: str) -> dict[int, dict[str, Any]]:
    """The last progress of each batch over all runs: a batch that was run again counts once."""
    return {
        progress["batchId"]: progress
        for run in description(version, case).get("runs", [])
        for progress in run["progress"]
    }


def parsed(offset: object) -> object:
    """An offset as a JSON value; progress has it parsed already on 3.5 and in Python's own spelling on 4.0."""
    if not isinstance(offset, str):
        return offset
    return ast.literal_eval(offset) if "'" in offset or offset == "None" else json.loads(offset)


@cache
def report_of(case: tuple[str, str], *, state: bool = False) -> CheckpointReport:
    return read_checkpoint(opened(*case), state=state)


def test_no_damage(case: tuple[str, str]) -> None:
    assert report_of(case, state=True).damage == ()


def test_marks_and_query_id(case: tuple[str, str]) -> None:
    version, name = case
    report = report_of(case)
    folder = checkpoint_folder(*case)
    offsets = [int(path.name) for path in (folder / "offsets").iterdir() if path.name.isdigit()]
    commits = [int(path.name) for path in (folder / "commits").iterdir() if path.name.isdigit()]
    assert report.marks.planned == max(offsets, default=-1)
    assert report.marks.committed == max(commits, default=-1)
    assert report.marks == marks(opened(*case).store)
    runs = description(version, name).get("runs", [])
    assert {run["id"] for run in runs} <= {report.query_id}
    assert read_logs(opened(*case).store).query_id == report.query_id


def test_state_can_be_loaded_up_to_the_commit(case: tuple[str, str]) -> None:
    report = report_of(case)
    if report.operators:
        assert report.marks.state is not None
        assert report.marks.state >= report.marks.committed
    else:
        assert report.marks.state is None


def test_offsets_equal_progress(case: tuple[str, str]) -> None:
    progress = last_progress(*case)
    checked = 0
    for line in report_of(case).batches:
        reported = progress.get(line.id)
        # Batches of asynchronous progress and of real-time mode have entries that cover more than the batch.
        if (
            reported is None
            or not line.planned
            or "async" in case[1]
            or case[1] in {"realtime_mode", "continuous_rate"}
        ):
            continue
        ends = [parsed(end.text) for end in line.sources]
        assert ends == [parsed(source["endOffset"]) for source in reported["sources"]], line.id
        checked += 1
    assert checked or not progress or "async" in case[1] or case[1] in {"realtime_mode", "continuous_rate"}


def test_watermarks_equal_progress(case: tuple[str, str]) -> None:
    progress = last_progress(*case)
    for line in report_of(case).batches:
        watermark = (progress.get(line.id, {}).get("eventTime") or {}).get("watermark")
        if watermark and line.planned:
            moment = datetime.fromisoformat(watermark)
            assert line.watermark_ms == round(moment.timestamp() * 1000), f"batch {line.id}"


def test_operators_equal_progress(case: tuple[str, str]) -> None:
    progress = last_progress(*case)
    report = report_of(case, state=True)
    reported = progress.get(report.marks.committed, {}).get("stateOperators", [])
    if not reported:
        return
    # Progress lists the operator nearest the sink first, as the ids do.
    assert len(report.operators) == len(reported)
    for operator, metrics in zip(report.operators, reported, strict=True):
        # Session windows have no name of their own in the progress of 3.5.
        assert metrics["operatorName"] in {operator.name, "defaultName"}
        stores = 4 if operator.name == "symmetricHashJoin" and len(operator.stores) > 1 else 1
        assert operator.partitions * stores == metrics["numStateStoreInstances"]


def test_row_counts_equal_progress(case: tuple[str, str]) -> None:
    report = report_of(case, state=True)
    reported = last_progress(*case).get(report.marks.committed, {}).get("stateOperators", [])
    for operator, metrics in zip(report.operators, reported, strict=False):
        if operator.name.startswith("transformWithState"):
            continue  # counts keys of some families and elements of others; the dumps compare every row
        counted = [
            store.rows for store in operator.stores if store.rows is not None and not store.name.endswith("NumValues")
        ]
        if operator.stores[0].families:
            continue  # one store with several families, likewise
        assert sum(counted) == metrics["numRowsTotal"], operator


def test_spark_version_is_recognised(case: tuple[str, str]) -> None:
    report = report_of(case)
    wanted = None if case[1] == "continuous_rate" else case[0][:3]
    assert report.spark_at_least == wanted
    assert report.spark_evidence


def test_next_batch(case: tuple[str, str]) -> None:
    report = report_of(case)
    assert report.next_batch is not None
    if report.marks.committed == report.marks.planned:
        assert (report.next_batch.id, report.next_batch.mode) == (report.marks.planned + 1, "replan")
        assert report.next_batch.end is None
    else:
        assert (report.next_batch.id, report.next_batch.mode) == (max(report.marks.planned, 0), "rerun")
        assert report.next_batch.end
