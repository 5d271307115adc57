"""Kinds, rows and logs of real checkpoints, against what Spark itself reported of their sources."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from slackwater.core.checkpoint import OffsetEntry
from slackwater.core.errors import FormatError
from slackwater.formats.compactible import derive_interval, parse_entry_name
from slackwater.formats.text_log import parse_offset_entry
from slackwater.ledger.recording.log_copier import decode, split_source_compact
from slackwater.sources import kind_named, kind_of
from slackwater.sources.common.contract import SourceRange
from tests.checkpoint.cases import CASES, NAMES, checkpoint_folder, description

_KINDS = {
    "FileStreamSource": {"files"},
    "RateStreamV2": {"rate"},
    "RatePerMicroBatchStream": {"rate-micro-batch"},
    # Outside real-time mode it writes a number, in real-time mode a number for each partition.
    "MemoryStream": {"number", "unknown"},
    "PythonMicroBatchStream": {"unknown"},
}
"""What may be found for a source that progress events describe so."""


def _progress(version: str, case: str) -> list[dict[str, Any]]:
    return [progress for run in description(version, case).get("runs", []) for progress in run.get("progress", [])]


def _allowed(source: dict[str, Any]) -> set[str]:
    return next(kinds for name, kinds in _KINDS.items() if name in source["description"])


def _offset(reported: Any) -> str | None:
    """An offset of a progress event, which PySpark 4 shows as Python values."""
    if isinstance(reported, dict):
        return json.dumps(reported)
    return None if reported in {None, "None", "null"} else str(reported)


def _entries(checkpoint: Path) -> dict[int, OffsetEntry]:
    """The entries of the offset log that can be parsed; some cases are damaged on purpose."""
    found = {}
    for file in (checkpoint / "offsets").glob("[0-9]*"):
        try:
            found[int(file.name)] = parse_offset_entry(file.read_bytes())
        except FormatError:
            continue
    return found


def _log(folder: Path) -> dict[int, str]:
    """A source's own log as the ledger records it."""
    log: dict[int, str] = {}
    for file in sorted(folder.glob("[0-9]*"), key=lambda file: file.name.endswith(".compact")):
        parsed = parse_entry_name(file.name)
        assert parsed is not None
        content = decode(file.read_bytes())
        log |= split_source_compact(content, parsed[0]) if parsed[1] else {parsed[0]: content}
    return log


@pytest.mark.parametrize(("version", "case"), CASES, ids=NAMES)
def test_kinds_are_those_that_spark_reports(version: str, case: str) -> None:
    checkpoint, entries = checkpoint_folder(version, case), _entries(checkpoint_folder(version, case))
    for progress in _progress(version, case):
        entry = entries.get(progress["batchId"])
        if entry is None or len(entry.offsets) != len(progress["sources"]):
            continue
        for source, offset in zip(progress["sources"], entry.offsets, strict=True):
            found = kind_of(offset.text, _log(checkpoint / "sources" / offset.source))
            assert found.kind in _allowed(source) | ({"unknown"} if offset.text is None else set()), offset


@pytest.mark.parametrize(("version", "case"), CASES, ids=NAMES)
def test_rows_by_offsets_are_the_rows_that_spark_read(version: str, case: str) -> None:
    for progress in _progress(version, case):
        for source in progress["sources"]:
            span = SourceRange("0", _offset(source["startOffset"]), _offset(source["endOffset"]))
            rows = kind_of(span.end, {}).rows(span)
            assert rows in {None, source["numInputRows"]}, span


@pytest.mark.parametrize(("version", "case"), CASES, ids=NAMES)
def test_logs_of_file_sources_are_written_as_spark_wrote_them(version: str, case: str) -> None:
    for folder in (checkpoint_folder(version, case) / "sources").glob("*"):
        log = _log(folder)
        kind = kind_of(None, log)
        if kind is not kind_named("files") or set(log) != set(range(len(log))):
            continue
        on_disk = {file.name: file.read_bytes() for file in folder.glob("[0-9]*")}
        written = kind.log_until(f'{{"logOffset":{max(log)}}}', log, derive_interval(on_disk))
        both = written.keys() & on_disk.keys()

        assert both
        assert {name: written[name] for name in both} == {name: on_disk[name] for name in both}


def test_the_corpus_has_rate_and_file_sources() -> None:
    kinds = {
        kind_of(offset.text, _log(checkpoint_folder(version, case) / "sources" / offset.source)).kind
        for version, case in CASES
        for entry in _entries(checkpoint_folder(version, case)).values()
        for offset in entry.offsets
    }

    assert {"files", "rate"} <= kinds
