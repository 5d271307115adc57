"""Rebuilds start at the first batch that contributes, and no row differs; one that starts later is noticed."""

import json
import os
import random
import shutil
import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from tests.conformance.outputs import rows_of_sink
from tests.restart.scenario import CONF
from tests.support import warm_python
from tests.support.killing import kill_when_held
from tests.support.outputs import Rows
from tests.support.warm_jvm import attached

pytestmark = [pytest.mark.spark, pytest.mark.thorough, pytest.mark.timeout(1500)]

BURSTS, FILES_A_BURST, BURST_MINUTES, FILE_MINUTES = 3, 6, 240, 9
FILES = BURSTS * FILES_A_BURST
LAST_BURST = FILES - FILES_A_BURST
HELD = FILES - 2
"""The batch in which each stream is held; the one before is the newest that every output has."""
SWAPPED = (1, 2)
"""Two files of a burst that arrive in another order than that of their event times."""
WITHIN = "page = target AND n % 5 = m % 5 AND clicked BETWEEN viewed AND viewed + INTERVAL 12 MINUTES"
BOTH_WAYS = WITHIN.replace("BETWEEN viewed", "BETWEEN viewed - INTERVAL 3 MINUTES")
HOW = ("inner", "left_outer", "right_outer", "full_outer", "left_semi")
FILE_SINK = 'sw.sinks.files("parquet", "out/{name}")'
QUERIES = {
    "sessions": 'views(spark).groupBy(F.session_window("at", "5 minutes"), "page").agg(F.sum("n").alias("n"))',
    "windows": 'views(spark).groupBy(F.window("at", "20 minutes", "8 minutes", "3 minutes"), "page").count()',
    **{how: f'viewed(spark).join(clicked(spark), F.expr("{WITHIN}"), "{how}")' for how in HOW},
    "both_ways": f'viewed(spark).join(clicked(spark), F.expr("{BOTH_WAYS}"), "left_outer")',
    # Without a bound: everything is replayed.
    "union": 'views(spark).union(ahead(spark)).groupBy(F.window("at", "1 hour"), "page").count()',
    "other_column": 'start_of(views(spark).groupBy(F.window("other", "1 hour"), "page").count())',
    "sum": 'start_of(views(spark).groupBy(F.window(F.expr("at + INTERVAL 1 HOUR"), "1 hour"), "page").count())',
}
UPDATING = ("other_column", "sum")
"""Spark allows no append mode for them."""
HEAD = """
import slackwater as sw
from pyspark.sql import functions as F

pipeline = sw.Pipeline("web", connectors=["delta"])


def read(spark, name):
    schema = "ts TIMESTAMP, page STRING, n LONG, other TIMESTAMP"
    return spark.readStream.schema(schema).option("maxFilesPerTrigger", 1).json(name)


def views(spark):
    return read(spark, "views").withWatermark("ts", "10 minutes").withColumnRenamed("ts", "at")


def ahead(spark):
    return read(spark, "views").selectExpr("ts + INTERVAL 12 HOURS AS at", "page", "n", "other")


def viewed(spark):
    return views(spark).selectExpr("at AS viewed", "page", "n")


def clicked(spark):
    clicks = read(spark, "clicks").withWatermark("ts", "6 minutes")
    return clicks.selectExpr("ts AS clicked", "page AS target", "n AS m")


def start_of(counted):
    return counted.selectExpr("window.start AS start", "page", "`count`")
"""


class Bursts:
    """A folder with some of the streams, and their input: file N of each input is read by batch N."""

    def __init__(self, folder: Path, streams: Sequence[str], seed: int) -> None:
        self.folder, self.streams = folder, streams
        folder.mkdir()
        (folder / "bursts.py").write_text(HEAD + "".join(map(_stream, streams)))
        dice = random.Random(seed)
        for name in ("views", "clicks"):
            for number in range(FILES):
                self._write(name, number, _rows(name, number, dice))
            # Everything is written.
            self._write(name, FILES, [_row(BURSTS * BURST_MINUTES + 3000, "end", 0)])

    def _write(self, name: str, number: int, rows: Sequence[dict[str, object]]) -> None:
        (self.folder / name).mkdir(exist_ok=True)
        file = self.folder / name / f"{number:03}.json"
        file.write_text("".join(json.dumps(row) + "\n" for row in rows))
        os.utime(file, (1_700_000_000 + number, 1_700_000_000 + number))

    def checkpoint(self, stream: str) -> Path:
        return self.folder / ".slackwater" / "streams" / "web" / stream / "checkpoints" / "0001"

    def slackwater(self, *arguments: str) -> None:
        done = warm_python.run(arguments, self.folder, attached(self.folder))
        assert done.returncode == 0, f"{arguments} ended with {done.returncode}:\n{done.stdout}\n{done.stderr}"

    def run(self) -> None:
        self.slackwater("run", "bursts.py", "--until-caught-up", *CONF)

    def kill(self) -> None:
        """Run, and kill when each stream is held in a batch: before it is planned, or before it is committed."""
        points = [
            self.checkpoint(stream) / ("commits", "offsets")[number % 2] / str(HELD)
            for number, stream in enumerate(self.streams)
        ]
        kill_when_held(("run", "bursts.py", *CONF), self.folder, points)

    def plan(self, stream: str) -> dict[str, Any]:
        """Delete the checkpoint of a stream and plan its rebuild: what the plan depends on."""
        shutil.rmtree(self.checkpoint(stream))
        self.slackwater("plan", "rebuild", stream, "--out", "plan.json", "--force")
        facts: dict[str, Any] = json.loads((self.folder / "plan.json").read_text())["facts"]
        return facts

    def rebuild(self, stream: str) -> int:
        """Delete the checkpoint of a stream and rebuild it: the first batch that is read again."""
        facts = self.plan(stream)
        assert facts["target"] in {HELD - 1, HELD}, facts
        self.slackwater("apply", "plan.json", "--yes", *CONF)
        return int(facts["contributing"])

    def rows(self, stream: str) -> Rows:
        return rows_of_sink(self.folder / "out" / stream)

    def swap_back(self, saved: Path) -> None:
        """Make the folder what it was when it was copied. A home that is elsewhere is a copy: this one is not."""
        shutil.rmtree(self.folder)
        shutil.copytree(saved, self.folder, symlinks=True)


def _stream(name: str) -> str:
    sink, mode = FILE_SINK.format(name=name), ""
    if name in UPDATING:
        sink, mode = f'sw.sinks.delta("out/{name}", keys=["start", "page"])', ', output_mode="update"'
    return f"\n\n@pipeline.stream(sink={sink}{mode})\ndef {name}(spark):\n    return {QUERIES[name]}\n"


def _rows(name: str, number: int, dice: random.Random) -> list[dict[str, object]]:
    burst, file = divmod(number, FILES_A_BURST)
    if file in SWAPPED:
        file = sum(SWAPPED) - file
    start = burst * BURST_MINUTES + file * FILE_MINUTES
    # The page "long" is viewed all through a burst.
    rows = [_row(start + minute, "long", dice.randint(1, 9)) for minute in range(0, FILE_MINUTES, 3)]
    for page in [f"page-{dice.randint(0, 2)}" for _ in range(6)]:
        rows += [_row(start + dice.uniform(0, FILE_MINUTES), page, dice.randint(1, 9))]
    if name == "views":
        # No click has this page: a left row without a match.
        rows.append(_row(start + FILE_MINUTES - 0.01, f"lonely-{number}", 1))
    if number % FILES_A_BURST >= FILES_A_BURST // 2:
        # One row is late and accepted, one is of the burst before.
        rows.append(_row(start - dice.uniform(0, 4), "page-0", dice.randint(1, 9)))
        rows.append(_row(start - BURST_MINUTES, "page-1", dice.randint(1, 9)))
    dice.shuffle(rows)
    return rows


def _row(minute: float, page: str, n: int) -> dict[str, object]:
    """A row at a time after the first day began; ``other`` goes round within two hours."""
    return {"ts": _time(1440 + minute), "page": page, "n": n, "other": _time(n * 13)}


def _time(minute: float) -> str:
    day, rest = divmod(round(minute * 60_000), 86_400_000)
    hour, rest = divmod(rest, 3_600_000)
    return f"2024-01-{day + 1:02}T{hour:02}:{rest // 60_000:02}:{rest % 60_000 / 1000:06.3f}Z"


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
