"""Marks, offsets, watermarks, operators and counts of every real checkpoint, against what Spark reported."""

import ast
import json
from dataclasses import replace
from datetime import datetime
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from slackwater.checkpoint.listing import read_listing
from slackwater.checkpoint.logs import marks, no_data_entry, read_logs
from slackwater.checkpoint.reader import read_checkpoint
from slackwater.checkpoint.sources import SourceReader, parse_source_entry
from slackwater.core.checkpoint import CheckpointReport, OffsetEntry, SourceLine, SourceLog, SourceOffset
from slackwater.core.errors import FormatError
from slackwater.core.program import QueryProfile
from slackwater.storage.local import LocalStore
from tests.checkpoint.cases import CASES, NAMES, checkpoint_folder, description, opened
from tests.support.corpus import corpus_case
from tests.support.homes import make_home, watermark_ms


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


# The pending no-data batch, by output mode and operators.


@pytest.mark.parametrize(
    ("mode", "operators", "pending"),
    [
        ("append", ("Aggregate",), True),
        ("update", ("Aggregate",), True),
        ("append", ("Join",), True),
        ("append", (), False),
        ("append", None, True),
        ("complete", None, False),
    ],
)
def test_by_mode_and_operators(tmp_path: Path, mode: str, operators: tuple[str, ...] | None, *, pending: bool) -> None:
    home = make_home(tmp_path)
    logs = read_logs(LocalStore(home / "streams/clicks/per_page/checkpoints/0001"))
    profile = None if operators is None else QueryProfile(operators, (600_000,), (), None, ("files",))
    if profile is not None:
        silent = replace(profile, asks_for_batches=False)
        assert no_data_entry(logs, silent, mode, enabled=True, now_ms=1) is None

    entry = no_data_entry(logs, profile, mode, enabled=True, now_ms=1)

    assert (entry is not None) == pending
    if entry is not None:
        assert entry.metadata is not None
        assert entry.metadata.batch_watermark_ms == watermark_ms(6)
    assert no_data_entry(logs, profile, mode, enabled=False, now_ms=1) is None


# The kinds of sources that an inspection shows, where the offset alone does not determine them.


_FILES = b'v1\n{"path":"file:///in/0.json","timestamp":1704067200000,"batchId":0}'


def _read(checkpoint: Path, offset: str | None) -> tuple[SourceLine, list[str]]:
    store = LocalStore(checkpoint)
    reader = SourceReader(store, read_listing(store))
    (line,) = reader.sources(OffsetEntry(1, None, (SourceOffset("0", offset),)))
    return line, [damage.path for damage in reader.damage]


def _checkpoint(folder: Path, entries: dict[str, bytes]) -> Path:
    log = folder / "sources" / "0"
    log.mkdir(parents=True)
    for name, data in entries.items():
        (log / name).write_bytes(data)
    return folder


def test_a_rate_source_without_offsets_is_known_by_its_log(tmp_path: Path) -> None:
    case = corpus_case("4.3.0", "rate_to_noop", tmp_path)
    created = (case / "checkpoint" / "sources" / "0" / "0").read_text().split("\n")[1]

    assert _read(case / "checkpoint", None) == (SourceLine(0, "0", "rate", initial=created), [])


@pytest.mark.parametrize(
    ("log", "offset", "expected"),
    [
        ({"0": _FILES}, '{"logOffset":0}', SourceLine(0, "0", "file", SourceLog(0, 0, 1))),
        ({"0": _FILES}, None, SourceLine(0, "0", "file", SourceLog(0, 0, 1))),
        ({"0": _FILES}, '{"logOff', SourceLine(0, "0", "file", SourceLog(0, 0, 1))),
        ({"0": _FILES}, "0", SourceLine(0, "0", "file", SourceLog(0, 0, 1))),
        ({}, '{"logOffset":-1}', SourceLine(0, "0", "file")),
        ({"0": b'\0v1\n{"t":{"0":4}}'}, '{"t":{"0":9}}', SourceLine(0, "0", "kafka", initial='{"t":{"0":4}}')),
        ({"0": b"\0v1\n{}"}, "{}", SourceLine(0, "0", "kafka", initial="{}")),
        ({}, "{}", SourceLine(0, "0", "unknown")),
        ({}, "7", SourceLine(0, "0", "socket, memory or rate")),
        ({"0": b"v1\nits own"}, '{"its":"own"}', SourceLine(0, "0", "unknown", initial="its own")),
        ({"0": b"its own"}, '{"its":"own"}', SourceLine(0, "0", "unknown")),
        ({"0": b'v2\n{"its":"own"}'}, '{"its":"own"}', SourceLine(0, "0", "unknown")),
        ({"0": b"\xff\xfe\x00"}, '{"its":"own"}', SourceLine(0, "0", "unknown")),
        ({"0": b'\0v1\n{"persistent://t":[8,1]}'}, '{"persistent://t":[8,2]}', SourceLine(0, "0", "unknown")),
        ({"0": b'\0v1\n{"persistent://t":[8,1]}'}, None, SourceLine(0, "0", "unknown")),
    ],
    ids=[
        "files", "files, no offset", "files, torn offset", "files, old offset", "no files", "Kafka", "Kafka, no topic",
        "nothing", "number", "unknown", "no version", "another version", "bytes", "like Kafka", "like Kafka, no offset",
    ],
)  # fmt: skip
def test_kinds(tmp_path: Path, log: dict[str, bytes], offset: str | None, expected: SourceLine) -> None:
    assert _read(_checkpoint(tmp_path, log), offset) == (expected, [])
    for data in log.values():
        parse_source_entry(data)


@pytest.mark.parametrize("data", [b"", b'v1\n{"its":', b'\0v1\n{"t":{"0":'], ids=["empty", "cut", "cut, of Kafka"])
def test_an_entry_of_an_unknown_kind_that_was_cut(tmp_path: Path, data: bytes) -> None:
    _, damage = _read(_checkpoint(tmp_path, {"0": data}), '{"its":"own"}')

    assert damage == ["sources/0/0"]
    with pytest.raises(FormatError):
        parse_source_entry(data)


@pytest.mark.parametrize(
    ("offset", "kind"),
    [('{"t":{"0":9}}', "kafka"), ('{"logOffset":0}', "file"), ("5", "socket, memory or rate"), (None, "unknown")],
)
def test_a_damaged_entry_is_listed_once(tmp_path: Path, offset: str | None, kind: str) -> None:
    line, damage = _read(_checkpoint(tmp_path, {"0": b"\0\0\0"}), offset)

    assert (line.kind, line.initial, damage) == (kind, None, ["sources/0/0"])
