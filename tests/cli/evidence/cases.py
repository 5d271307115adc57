"""Streams and checkpoints to make evidence of; each returns the arguments that name it."""

import shutil
from collections.abc import Callable, Mapping
from pathlib import Path

from slackwater.core.records import BatchRecord
from slackwater.ledger.home import Home
from slackwater.ledger.ledger import Ledger
from slackwater.ledger.recording.stream_files import write_stream_file_of
from tests.support.corpus import corpus_case
from tests.support.homes import STREAM, HomeSpec, batch_record, make_home

HOUR_MS = 3_600_000
CENTURY_MS = 100 * 365 * 24 * HOUR_MS
FOREIGN = "file_json_to_parquet_filesink"


def healthy(folder: Path) -> list[str]:
    make_home(folder)
    return [STREAM]


def sink_ahead(folder: Path) -> list[str]:
    """The checkpoint was restored from an older copy, and the last run failed."""
    make_home(folder, HomeSpec(planned=7, committed=6, state=6, written=9, run="failed"))
    return [STREAM]


def many_batches(folder: Path) -> list[str]:
    """Hundreds of batches of different sizes, with large ids."""
    spec = HomeSpec(planned=230, committed=229, state=229, written=229)
    home = make_home(folder, spec)
    with Ledger.open(home / "ledger.db", create=False) as ledger:
        for batch in range(100, 230):
            ledger.record_batch(_varied(batch_record(spec, batch)))
    return [STREAM]


def _varied(record: BatchRecord) -> BatchRecord:
    rows = 0 if record.batch_id % 7 == 0 else record.batch_id**3 % 98_765_432
    return record._replace(input_rows=rows, durations_ms={"triggerExecution": 400 + rows % 70_000}, run=1)


def far_times(folder: Path) -> list[str]:
    """A row with an event time a century ahead."""
    home = make_home(folder, HomeSpec(source="kafka"))
    with Ledger.open(home / "ledger.db", create=False) as ledger:
        wrong = batch_record(HomeSpec(source="kafka"), 4)
        latest = (wrong.event_time_max_ms or 0) + CENTURY_MS
        ledger.record_batch(wrong._replace(event_time_max_ms=latest, run=1))
    return [STREAM]


def no_batch(folder: Path) -> list[str]:
    """A stream whose checkpoint was deleted."""
    home = make_home(folder)
    shutil.rmtree(home / "streams" / STREAM / "checkpoints" / "0001")
    return [STREAM]


def lost_ledger(folder: Path) -> list[str]:
    home = make_home(folder)
    with Ledger.open(home / "ledger.db", create=False) as ledger:
        write_stream_file_of(Home(home), ledger, STREAM)
    for file in home.glob("ledger.db*"):
        file.unlink()
    return [STREAM]


def damaged(folder: Path) -> list[str]:
    """A checkpoint with a torn entry, in the middle and at the end."""
    home = make_home(folder, HomeSpec(planned=6))
    checkpoint = home / "streams" / STREAM / "checkpoints" / "0001"
    (checkpoint / "offsets" / "6").write_bytes(b"v1\n{")
    (checkpoint / "offsets" / "3").unlink()
    (checkpoint / "state" / "0" / "0" / "4.delta").write_bytes(b"")
    return [STREAM]


def foreign(folder: Path) -> list[str]:
    """A checkpoint that Slackwater never ran, with its output."""
    case = corpus_case("4.3.0", FOREIGN, folder)
    return [str(case / "checkpoint"), "--sink", str(case / "sink")]


def without_sink(folder: Path) -> list[str]:
    """A checkpoint that Slackwater never ran, whose output is not known."""
    return [str(corpus_case("3.5.9", FOREIGN, folder) / "checkpoint")]


def unreachable_sink(folder: Path) -> list[str]:
    """The output is in a database that does not answer."""
    sink = {"kind": "postgres", "url": "postgresql://ann@127.0.0.1:1/clicks", "table": "clicks"}
    make_home(folder, HomeSpec(sink=sink))
    return [STREAM]


def long_words(folder: Path) -> list[str]:
    """Names that have no place to be broken, and markup in them."""
    deep = folder / ("<b>bold</b>&amp;" + "x" * 120) / ("y" * 200)
    deep.mkdir(parents=True)
    shutil.copytree(corpus_case("4.0.5", FOREIGN, folder) / "checkpoint", deep / "checkpoint")
    return [str(deep / "checkpoint")]


CASES: Mapping[str, Callable[[Path], list[str]]] = {
    "healthy": healthy,
    "sink-ahead": sink_ahead,
    "many-batches": many_batches,
    "far-times": far_times,
    "no-batch": no_batch,
    "lost-ledger": lost_ledger,
    "damaged": damaged,
    "foreign": foreign,
    "without-sink": without_sink,
    "unreachable-sink": unreachable_sink,
    "long-words": long_words,
}
