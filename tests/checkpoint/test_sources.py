"""The kinds of sources that an inspection shows, where the offset alone does not determine them."""

from __future__ import annotations

from pathlib import Path

import pytest

from slackwater.checkpoint.listing import read_listing
from slackwater.checkpoint.sources import SourceReader, parse_source_entry
from slackwater.core.checkpoint import OffsetEntry, SourceLine, SourceLog, SourceOffset
from slackwater.core.errors import FormatError
from slackwater.storage.local import LocalStore
from tests.support.corpus import corpus_case

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
