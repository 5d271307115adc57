import json
import os
import shutil
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from pathlib import Path
from typing import cast

import pytest
from hypothesis import given
from hypothesis import strategies as st

from slackwater.core.records import GenerationRecord
from slackwater.ledger.database import Connection
from slackwater.ledger.ledger import Ledger
from slackwater.ledger.recording.log_copier import LogCopier, after_recorded, copy_new, strip_sink_compact
from slackwater.sinks.files.sink import FilesOutput
from slackwater.storage.local import LocalStore
from slackwater.storage.protocols import Entry
from tests.support.corpus import VERSIONS, corpus_case, corpus_cases
from tests.support.ledgers import STREAM, stream_record

FILES_TO_FILES = "file_json_to_parquet_filesink"
PURGED = "retention_min_batches_2_filesink"
NEWER_MS = 4_000_000_000_000


def copier(ledger: Ledger, case: Path, generation: int = 1, stream: str = STREAM) -> LogCopier:
    return LogCopier(ledger, stream, generation, LocalStore(case / "checkpoint"), FilesOutput(str(case / "sink")))


@pytest.fixture(scope="module")
def module_ledger(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Ledger]:
    with Ledger.open(tmp_path_factory.mktemp("ledger") / "ledger.db", create=True) as ledger:
        yield ledger


@pytest.mark.parametrize("version", VERSIONS)
def test_every_checkpoint_of_the_corpus_is_in_the_ledger_as_spark_wrote_it(
    module_ledger: Ledger, version: str, tmp_path: Path
) -> None:
    for case_name in corpus_cases(version):
        case = corpus_case(version, case_name, tmp_path)
        stream = f"weather/{version}-{case_name}"
        module_ledger.register_stream(stream_record(stream.removeprefix("weather/")))
        module_ledger.add_generation(GenerationRecord(stream, 1, str(case)))
        copied = copier(module_ledger, case, stream=stream).copy()
        assert copied > 0, case
        _same_as_on_disk(module_ledger, stream, case)
        assert copier(module_ledger, case, stream=stream).copy() == 0, case
        shutil.rmtree(case)


@pytest.mark.parametrize("case_name", [FILES_TO_FILES, PURGED])
def test_a_checkpoint_is_copied_to_either_database(ledger: Ledger, case_name: str, tmp_path: Path) -> None:
    case = corpus_case("4.3.0", case_name, tmp_path)
    checkpoint, sink = LocalStore(case / "checkpoint"), FilesOutput(str(case / "sink"))
    assert copy_new(ledger, STREAM, 1, checkpoint, sink) > 0
    _same_as_on_disk(ledger, STREAM, case)
    assert copy_new(ledger, STREAM, 1, checkpoint, sink) == 0


def test_a_compacted_entry_is_kept_as_the_lines_that_belong_to_it(ledger: Ledger, tmp_path: Path) -> None:
    case = corpus_case("4.3.0", FILES_TO_FILES, tmp_path)
    copier(ledger, case).copy()
    for log in ("sources/0", "sink"):
        lines = ledger.lines(STREAM, log)
        assert list(lines) == list(range(8))
        assert [line.count("\n") for line in lines.values()] == [1] * 8


def test_of_a_sink_that_purged_its_first_entries_the_oldest_known_one_stands_for_all_before(
    ledger: Ledger, tmp_path: Path
) -> None:
    copier(ledger, corpus_case("4.3.0", PURGED, tmp_path)).copy()
    files = {entry: line.count("\n") for entry, line in ledger.lines(STREAM, "sink").items()}
    assert files == {8: 9, 9: 1, 10: 1, 11: 1}
    # A source's lines name their entry: none is lost.
    assert set(ledger.lines(STREAM, "sources/0")) == set(range(12))


@pytest.mark.parametrize("case_name", [FILES_TO_FILES, PURGED, "join_inner_hdfs", "rate_to_noop"])
def test_copying_after_every_file_that_appears_gives_the_same_as_copying_at_the_end(
    module_ledger: Ledger, case_name: str, tmp_path: Path
) -> None:
    case = corpus_case("4.3.0", case_name, tmp_path / "whole")
    growing = tmp_path / "growing"
    ends = {}
    for stream, folder in ((f"weather/end-{case_name}", case), (f"weather/growing-{case_name}", growing)):
        module_ledger.register_stream(stream_record(stream.removeprefix("weather/")))
        module_ledger.add_generation(GenerationRecord(stream, 1, str(folder)))
        patient = copier(module_ledger, folder, stream=stream)
        for path in _as_written(case) if folder == growing else []:
            (growing / path).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(case / path, growing / path)
            patient.copy()
        patient.copy()
        ends[folder] = _everything(module_ledger, stream)
    assert ends[growing] == ends[case]


def test_nothing_is_asked_of_the_ledger_where_nothing_is_new(ledger_url: str, tmp_path: Path) -> None:
    case = corpus_case("4.3.0", FILES_TO_FILES, tmp_path)
    ledger = Ledger.open(ledger_url, create=False)
    ledger.register_stream(stream_record())
    ledger.add_generation(GenerationRecord(STREAM, 1, str(case)))
    again = copier(ledger, case)
    again.copy()
    transactions: list[str] = []
    _count_transactions(ledger, transactions)
    for _ in range(3):
        assert again.copy() == 0
    assert transactions == []
    (case / "checkpoint" / "offsets" / "8").write_text("v1\n{}\n{}")
    assert again.copy() == 1
    assert transactions != []
    ledger.close()


def test_an_entry_whose_number_is_not_the_next_is_found_a_little_later(ledger: Ledger, tmp_path: Path) -> None:
    case = corpus_case("4.3.0", FILES_TO_FILES, tmp_path)
    watching = copier(ledger, case)
    watching.copy()
    (case / "checkpoint" / "offsets" / "20").write_text("v1\n{}\n{}")
    deadline = time.monotonic() + 10
    while watching.copy() == 0:
        assert time.monotonic() < deadline
    assert 20 in ledger.lines(STREAM, "offsets")


def test_an_entry_is_found_where_folders_never_change_their_time(ledger: Ledger, tmp_path: Path) -> None:
    """As on some mounts of object stores."""
    case = corpus_case("4.3.0", FILES_TO_FILES, tmp_path)
    offsets = case / "checkpoint" / "offsets"
    frozen = offsets.stat()
    watching = copier(ledger, case)
    watching.copy()
    (offsets / "8").write_text("v1\n{}\n{}")
    os.utime(offsets, ns=(frozen.st_atime_ns, frozen.st_mtime_ns))
    assert watching.copy() == 1


def test_a_torn_file_is_taken_once_it_is_whole(ledger: Ledger, tmp_path: Path) -> None:
    case = corpus_case("4.3.0", FILES_TO_FILES, tmp_path)
    patient = copier(ledger, case)
    patient.copy()
    path = case / "checkpoint" / "offsets" / "8"
    for torn in ("", "v", '{"batchWatermarkMs'):
        path.write_text(torn)
        assert patient.copy() == 0
    path.write_text('v1\n{"batchWatermarkMs":0}\n{"logOffset":8}')
    assert patient.copy() == 1
    assert ledger.lines(STREAM, "offsets", 8)[8] == path.read_text()


def test_kafkas_initial_offsets_begin_with_a_nul(ledger: Ledger, tmp_path: Path) -> None:
    source = tmp_path / "checkpoint" / "sources" / "0"
    source.mkdir(parents=True)
    (source / "0").write_bytes(b'\0v1\n{"clicks":{"0":4}}')
    assert copy_new(ledger, STREAM, 1, LocalStore(tmp_path / "checkpoint")) == 1
    assert ledger.lines(STREAM, "sources/0")[0] == '\0v1\n{"clicks":{"0":4}}'


def test_names_that_are_no_entries_are_passed_over(ledger: Ledger, tmp_path: Path) -> None:
    offsets = tmp_path / "offsets"
    offsets.mkdir()
    for name in (".0.crc", ".1.3fa9.tmp", "2.tmp", "3.compact.bak", "-4", "five", "٦"):
        (offsets / name).write_text("v1\n{}")
    assert copy_new(ledger, STREAM, 1, LocalStore(tmp_path)) == 0


def test_a_checkpoint_that_is_not_there_yet_has_nothing_to_copy(ledger: Ledger, tmp_path: Path) -> None:
    assert copy_new(ledger, STREAM, 1, LocalStore(tmp_path / "later"), FilesOutput(str(tmp_path / "gold"))) == 0


class PurgingStore(LocalStore):
    """Spark takes the oldest entry of ``offsets/`` away between the listing and the reading."""

    def list(self, path: str = "") -> tuple[Entry, ...]:
        listed = super().list(path)
        if path == "offsets":
            Path(self.location, "offsets", "0").unlink(missing_ok=True)
        return listed


def test_an_entry_that_vanishes_while_it_is_read_is_passed_over(ledger: Ledger, tmp_path: Path) -> None:
    case = corpus_case("4.3.0", FILES_TO_FILES, tmp_path)
    copy_new(ledger, STREAM, 1, PurgingStore(case / "checkpoint"))
    assert set(ledger.lines(STREAM, "offsets")) == set(range(1, 8))
    assert set(ledger.lines(STREAM, "commits")) == set(range(8))


def test_what_spark_purges_stays_in_the_ledger(ledger: Ledger, tmp_path: Path) -> None:
    case = corpus_case("4.3.0", FILES_TO_FILES, tmp_path)
    copier(ledger, case).copy()
    before = _everything(ledger, STREAM)
    shutil.rmtree(case)
    assert copier(ledger, case).copy() == 0
    assert _everything(ledger, STREAM) == before


@pytest.mark.parametrize("while_watched", [False, True])
def test_a_batch_that_was_planned_again_after_a_trim_is_known_by_its_new_range(
    ledger: Ledger, tmp_path: Path, *, while_watched: bool
) -> None:
    case = corpus_case("4.3.0", FILES_TO_FILES, tmp_path)
    watching = copier(ledger, case)
    watching.copy()
    old = ledger.lines(STREAM, "offsets")
    offsets = _trim(case)
    _cut_sink(case)
    if while_watched:
        assert watching.copy() == 0
    for entry in (5, 6, 7):
        (offsets / str(entry)).write_text(_planned_again(entry))
    assert (watching if while_watched else copier(ledger, case)).copy() == 3
    recorded = ledger.lines(STREAM, "offsets")
    assert recorded == {int(path.name): path.read_text() for path in offsets.glob("[0-9]")}
    replaced = {line.entry: line.text for line in ledger.replaced_lines(STREAM, "offsets")}
    assert replaced == {entry: old[entry] for entry in (5, 6, 7)}


@pytest.mark.parametrize("while_watched", [False, True])
@pytest.mark.parametrize(
    ("planned_ms", "sink_has_it"),
    [(NEWER_MS, True), (0, False), (0, True)],
    ids=["the sink shows the recorded batch", "older", "older, and shown"],
)
def test_a_recorded_range_is_kept_beside_a_restored_checkpoint(
    ledger: Ledger, tmp_path: Path, planned_ms: int, *, sink_has_it: bool, while_watched: bool
) -> None:
    case = corpus_case("4.3.0", FILES_TO_FILES, tmp_path)
    watching = copier(ledger, case)
    watching.copy()
    before = _everything(ledger, STREAM)
    offsets = _trim(case)
    if not sink_has_it:
        _cut_sink(case)
    if while_watched:
        assert watching.copy() == 0
    for entry in (5, 6, 7):
        (offsets / str(entry)).write_text(_planned_again(entry, planned_ms))
    assert (watching if while_watched else copier(ledger, case)).copy() == 0
    assert _everything(ledger, STREAM) == before


@pytest.mark.parametrize("left", [0, 1, 2, 3, 4, 20, -1], ids=lambda left: f"{left} bytes")
def test_a_torn_file_does_not_replace_what_is_recorded(ledger: Ledger, tmp_path: Path, left: int) -> None:
    case = corpus_case("4.3.0", FILES_TO_FILES, tmp_path)
    copier(ledger, case).copy()
    before = _everything(ledger, STREAM)
    for log in ("offsets", "commits", "sources/0"):
        file = case / "checkpoint" / log / "7"
        file.write_bytes(file.read_bytes()[:left])
    assert copier(ledger, case).copy() == 0
    assert _everything(ledger, STREAM) == before


def _trim(case: Path) -> Path:
    """Remove batches 5 to 7 from the checkpoint; its ``offsets``."""
    for log in ("offsets", "commits"):
        for entry in (5, 6, 7):
            (case / "checkpoint" / log / str(entry)).unlink()
    return case / "checkpoint" / "offsets"


def _cut_sink(case: Path) -> None:
    for path in (case / "sink" / "_spark_metadata").glob("[5-7]*"):
        path.unlink()


def _planned_again(entry: int, planned_ms: int = NEWER_MS) -> str:
    metadata = f'{{"batchWatermarkMs":0,"batchTimestampMs":{planned_ms},"conf":{{}}}}'
    return f'v1\n{metadata}\n{{"logOffset":{entry + 100}}}'


def test_a_new_generation_does_not_repeat_what_the_sink_has_kept(ledger: Ledger, tmp_path: Path) -> None:
    case = corpus_case("4.3.0", FILES_TO_FILES, tmp_path)
    copier(ledger, case).copy()
    ledger.add_generation(GenerationRecord(STREAM, 2, str(case), based_at=6))
    ledger.set_current_generation(STREAM, 2)
    sink_log = case / "sink" / "_spark_metadata"
    file = {"path": "file:///gold/again.parquet", "size": 1, "isDir": False, "modificationTime": 0}
    line = json.dumps({**file, "blockReplication": 1, "blockSize": 1, "action": "add"}, separators=(",", ":"))
    (sink_log / "7").write_text(f"v1\n{line}")
    copier(ledger, case, generation=2).copy()
    assert ledger.recorded_entries(STREAM, 2, "sink") == {7}
    assert ledger.lines(STREAM, "sink")[7] == (sink_log / "7").read_text()
    assert set(ledger.lines(STREAM, "sink")) == set(range(8))
    # Its checkpoint is another one, so all of its logs are recorded as its own.
    assert ledger.recorded_entries(STREAM, 2, "offsets") == set(range(8))


def _as_written(case: Path) -> list[Path]:
    """The log files of a case in the order in which Spark wrote them."""
    ranks = {"metadata": 0, "sources": 1, "offsets": 2, "_spark_metadata": 3, "commits": 4}
    found: list[tuple[int, int, Path]] = []
    for top in ("checkpoint", "sink"):
        for path in (case / top).rglob("*"):
            relative = path.relative_to(case)
            log = next((part for part in relative.parts if part in ranks), None)
            number = path.name.removesuffix(".compact")
            if log and path.is_file() and (number.isdecimal() or log == "metadata"):
                found.append((int(number) if number.isdecimal() else -1, ranks[log], relative))
    return [relative for _, _, relative in sorted(found)]


def _same_as_on_disk(ledger: Ledger, stream: str, case: Path) -> None:
    checkpoint = case / "checkpoint"
    assert ledger.lines(stream, "metadata")[0] == (checkpoint / "metadata").read_text()
    for log in ("offsets", "commits"):
        on_disk = {int(path.name): path.read_text() for path in (checkpoint / log).iterdir() if path.name.isdecimal()}
        assert ledger.lines(stream, log) == on_disk, (case, log)
    for source in (checkpoint / "sources").glob("*"):
        _same_lines(ledger, stream, f"sources/{source.name}", source)
    if (case / "sink" / "_spark_metadata").exists():
        _same_lines(ledger, stream, "sink", case / "sink" / "_spark_metadata")


def _same_lines(ledger: Ledger, stream: str, log: str, folder: Path) -> None:
    """Every line of the log is in the ledger exactly once; a source's line under the entry that it names."""
    on_disk = {
        line
        for path in folder.iterdir()
        if path.name.removesuffix(".compact").isdecimal()
        for line in path.read_text().split("\n")[1:]
    }
    kept = [(entry, text) for entry, line in ledger.lines(stream, log).items() for text in line.split("\n")[1:]]
    assert sorted(text for _, text in kept) == sorted(on_disk), (folder, log)
    for entry, text in kept:
        if log != "sink" and text.startswith('{"path"'):
            assert json.loads(text)["batchId"] == entry


def _everything(ledger: Ledger, stream: str) -> dict[str, dict[int, str]]:
    return {log: ledger.lines(stream, log) for log in ledger.logs(stream)}


def _count_transactions(ledger: Ledger, started: list[str]) -> None:
    database = ledger._database

    def counted(name: str) -> Callable[[], AbstractContextManager[Connection]]:
        transaction = getattr(database, name)

        def start(**how: bool) -> AbstractContextManager[Connection]:
            started.append(name)
            return cast("AbstractContextManager[Connection]", transaction(**how))

        return start

    for name in ("read", "write"):
        setattr(database, name, counted(name))


# What is new in a compacted entry is the same whichever way it is found.


_FILES = st.lists(st.lists(st.integers(0, 12), max_size=3), max_size=5)


def entry_of(files: list[int]) -> str:
    return "\n".join(["v1", *(f'{{"path":"file:///out/part-{number:02}","action":"add"}}' for number in files)])


@given(_FILES, st.lists(st.integers(0, 20), max_size=4))
def test_what_follows_the_recorded_lines_is_what_they_do_not_list(earlier: list[list[int]], own: list[int]) -> None:
    recorded = [entry_of(files) for files in earlier]
    compacted = entry_of([number for files in earlier for number in files] + own)
    found = after_recorded(compacted, recorded)
    listed = {number for files in earlier for number in files}
    assert (found is None) == (not listed.isdisjoint(own))
    assert found in {None, strip_sink_compact(compacted, recorded)}


@given(_FILES, _FILES)
def test_lines_in_another_order_are_compared_one_by_one(earlier: list[list[int]], listed: list[list[int]]) -> None:
    recorded = [entry_of(files) for files in earlier]
    compacted = entry_of([number for files in listed for number in files])
    assert after_recorded(compacted, recorded) in {None, strip_sink_compact(compacted, recorded)}


def test_a_line_that_goes_on_is_another_line() -> None:
    recorded = ["v1\nfile-1"]
    assert after_recorded("v1\nfile-10", recorded) is None
    assert after_recorded("v1\nfile-1", recorded) == "v1"
