"""``slackwater.watch``: a query that Slackwater does not run is recorded byte for byte, and never disturbed."""

import json
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from slackwater.ledger.ledger import Ledger

pytestmark = pytest.mark.spark


@dataclass(frozen=True)
class Watched:
    """What the application left behind, and what it reported of each scene."""

    folder: Path
    report: Mapping[str, Mapping[str, Any]]
    log: str

    def ledger(self, scene: str) -> Ledger:
        return Ledger.open(self.folder / f"{scene}.db", create=False)


@pytest.fixture(scope="module")
def watched(tmp_path_factory: pytest.TempPathFactory) -> Watched:
    """All scenes in one application: Spark takes longer to start than any of them."""
    folder = tmp_path_factory.mktemp("watched")
    program = Path(__file__).with_name("programs") / "watched.py"
    ended = subprocess.run(
        [sys.executable, str(program), str(folder)], capture_output=True, text=True, timeout=300, check=False
    )
    assert ended.returncode == 0, ended.stderr
    return Watched(folder, json.loads((folder / "report.json").read_text()), ended.stdout + ended.stderr)


def _assert_equal_to_files(ledger: Ledger, stream: str, generation: int, log: str, folder: Path) -> None:
    """Byte for byte what the files hold; compacted entries repeat others, so they are no lines of the ledger's."""
    written = {int(file.name): file.read_bytes() for file in folder.iterdir() if file.name.isdigit()}
    recorded = {entry: line.encode() for entry, line in ledger.lines(stream, log, generation=generation).items()}
    assert written, folder
    assert {entry: recorded.get(entry) for entry in written} == written, log


def test_batches_and_logs_of_each_life_are_recorded(watched: Watched) -> None:
    with watched.ledger("plain") as ledger:
        stream = ledger.find_stream("watched/plain")
        generations = ledger.generations(stream.full_name)
        assert [Path(generation.location).name for generation in generations] == ["plain-1", "plain-2"], watched.log
        assert stream.current_generation == 2
        for generation in generations:
            checkpoint = watched.folder / Path(generation.location).name
            assert json.loads((checkpoint / "metadata").read_text())["id"] == generation.query_id
            for log in ("offsets", "commits", "sources/0"):
                _assert_equal_to_files(ledger, stream.full_name, generation.number, log, checkpoint / log)
        manifest = watched.folder / "plain-2-out" / "_spark_metadata"
        _assert_equal_to_files(ledger, stream.full_name, 2, "sink", manifest)
        batches = ledger.batches(stream.full_name)
    assert watched.report["plain"]["errors"] == 0, watched.log
    [said] = [line for line in watched.log.splitlines() if "query-checkpoint" in line]
    assert "a query is started with a new checkpoint, and writes all rows again" in said
    assert "plain-1" in said.partition("expected")[2]
    assert [(batch.generation, batch.batch_id, batch.input_rows) for batch in batches] == [
        (2, number, 1) for number in range(14)
    ]


def test_a_broken_ledger_does_not_break_the_query_and_is_filled_in_later(watched: Watched) -> None:
    report = watched.report["broken"]
    assert report["active"], watched.log
    assert report["errors"] > 0
    assert "the ledger was not updated" in watched.log
    assert "progress was not recorded" in watched.log
    assert report["left_out"] == [4, 5, 6, 7], watched.log
    assert report["errors_again"] == 0, watched.log
    with watched.ledger("broken") as ledger:
        for log in ("offsets", "commits", "sources/0"):
            _assert_equal_to_files(ledger, "watched/broken", 1, log, watched.folder / "broken-1" / log)


def test_a_deleted_ledger_is_created_again_from_the_checkpoint(watched: Watched) -> None:
    assert watched.report["deleted"]["errors_again"] == 0, watched.log
    with watched.ledger("deleted") as ledger:
        for log in ("offsets", "commits", "sources/0"):
            _assert_equal_to_files(ledger, "watched/deleted", 1, log, watched.folder / "deleted-1" / log)


def test_the_marks_of_a_continuous_query_are_recorded(watched: Watched) -> None:
    report = watched.report["continuous"]
    assert report["errors"] == 0, watched.log
    with watched.ledger("continuous") as ledger:
        for log in ("offsets", "commits"):
            _assert_equal_to_files(ledger, "watched/continuous", 1, log, watched.folder / "continuous-1" / log)
        assert max(ledger.entries("watched/continuous", "commits")) == report["committed"]
