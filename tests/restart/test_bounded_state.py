"""Rebuilds start at the first batch that contributes, and no row differs; one that starts later is noticed."""

from __future__ import annotations

import shutil
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from tests.restart.bursts import HELD, LAST_BURST, QUERIES, Bursts
from tests.restart.scenario import CONF
from tests.support import warm_python
from tests.support.outputs import Rows
from tests.support.warm_jvm import attached

pytestmark = [pytest.mark.spark, pytest.mark.thorough, pytest.mark.timeout(1500)]
FAULTY = Path(__file__).with_name("faulty_rebuild.py")
GATE = ("sessions", "left_outer")
SEED = 7
UNBOUNDED = {"union", "other_column", "sum"}
FAULTS = {
    "one_batch_late": None,
    "drops_watermark": "verify-range",
    "merges": "rows-differ",
    "one_trigger_more": "replay-strayed",
}
"""The faults of ``faulty_rebuild``, and the code with which ``apply`` refuses what it has built."""


class Killed:
    """The killed streams, which are put back for each test, and the rows of an uninterrupted run."""

    def __init__(self, folder: Path) -> None:
        whole = Bursts(folder / "whole", GATE, SEED)
        whole.run()
        self.expected: dict[str, Rows] = {stream: whole.rows(stream) for stream in GATE}
        self.bursts, self.saved = Bursts(folder / "killed", GATE, SEED), folder / "saved"
        self.bursts.kill()
        shutil.copytree(self.bursts.folder, self.saved, symlinks=True)


@pytest.fixture(scope="module")
def of_module(tmp_path_factory: pytest.TempPathFactory) -> Killed:
    return Killed(tmp_path_factory.mktemp("bounded"))


@pytest.fixture
def killed(of_module: Killed) -> Iterator[Killed]:
    yield of_module
    of_module.bursts.swap_back(of_module.saved)


def test_a_rebuild_reads_the_last_burst_alone(killed: Killed) -> None:
    first = {stream: killed.bursts.rebuild(stream) for stream in GATE}
    killed.bursts.run()

    assert first["sessions"] == LAST_BURST
    assert LAST_BURST <= first["left_outer"] < HELD - 1
    assert {stream: killed.bursts.rows(stream) for stream in GATE} == killed.expected


@pytest.mark.parametrize("stream", GATE)
@pytest.mark.parametrize("fault", FAULTS)
def test_a_faulty_rebuild_is_noticed(killed: Killed, fault: str, stream: str) -> None:
    """It is refused; or, where only the search is at fault, the rows differ, which is what these tests compare."""
    shutil.rmtree(killed.bursts.checkpoint(stream))
    assert _faulty(killed.bursts, fault, "plan", "rebuild", stream, "--out", "plan.json", "--force") is None
    refused = _faulty(killed.bursts, fault, "apply", "plan.json", "--yes", *CONF)

    assert refused == FAULTS[fault]
    if refused is None:
        killed.bursts.slackwater("run", "bursts.py", "--until-caught-up", "--stream", stream, *CONF)
        assert killed.bursts.rows(stream) != killed.expected[stream]


@pytest.mark.parametrize("stream", GATE)
def test_a_batch_that_is_counted_twice_is_replayed_again(killed: Killed, stream: str) -> None:
    """From the state before it: its rows are in the state once."""
    shutil.rmtree(killed.bursts.checkpoint(stream))
    assert _faulty(killed.bursts, "counts_twice", "plan", "rebuild", stream, "--out", "plan.json", "--force") is None
    assert _faulty(killed.bursts, "counts_twice", "apply", "plan.json", "--yes", *CONF) is None

    killed.bursts.slackwater("run", "bursts.py", "--until-caught-up", "--stream", stream, *CONF)
    assert killed.bursts.rows(stream) == killed.expected[stream]


def _faulty(bursts: Bursts, fault: str, *arguments: str) -> str | None:
    """A command that rebuilds with a fault: with which code it was refused, if it was."""
    done = warm_python.run_program([str(FAULTY), fault, *arguments], bursts.folder, attached(bursts.folder))
    codes = [line.split()[1].rstrip(":") for line in done.stderr.splitlines() if line.startswith("error ")]
    assert bool(codes) == bool(done.returncode), f"{done.stdout}\n{done.stderr}"
    return codes[0] if codes else None


def test_without_recorded_event_times_a_rebuild_reads_everything(killed: Killed) -> None:
    with closing(sqlite3.connect(killed.bursts.folder / ".slackwater" / "ledger.db")) as ledger, ledger:
        # As in a ledger of a release that did not record them.
        assert ledger.execute("UPDATE batches SET event_time_min_ms = NULL, event_time_max_ms = NULL").rowcount
        assert ledger.execute("DELETE FROM log_lines WHERE log = 'input-watermarks'").rowcount

    first = {stream: killed.bursts.rebuild(stream) for stream in GATE}
    killed.bursts.run()

    assert first == dict.fromkeys(GATE, 0)
    assert {stream: killed.bursts.rows(stream) for stream in GATE} == killed.expected


@pytest.mark.parametrize("seed", [1, 2])
def test_every_kind_of_query_is_exact(tmp_path: Path, seed: int) -> None:
    whole, killed = Bursts(tmp_path / "whole", tuple(QUERIES), seed), Bursts(tmp_path / "killed", tuple(QUERIES), seed)
    whole.run()
    killed.kill()
    first = {stream: killed.rebuild(stream) for stream in QUERIES}
    killed.run()

    assert {stream for stream, batch in first.items() if batch == 0} == UNBOUNDED
    assert {stream: killed.rows(stream) for stream in QUERIES} == {stream: whole.rows(stream) for stream in QUERIES}
