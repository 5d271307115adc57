import shutil
import time
from collections.abc import Callable
from pathlib import Path

from structlog.testing import capture_logs

from slackwater.core.records import BatchRecord, BatchSource, GenerationRecord
from slackwater.ledger.ledger import Ledger
from slackwater.ledger.recording.history import history_of
from slackwater.ledger.recording.log_copier import LogCopier
from slackwater.ledger.recording.watcher import Watcher
from slackwater.storage.local import LocalStore
from slackwater.storage.protocols import Entry
from tests.support.corpus import corpus_case
from tests.support.ledgers import STREAM, stream_record
from tests.support.postgres_server import PostgresServer

CASE = "file_json_to_parquet_filesink"


def test_an_entry_is_in_the_ledger_soon_after_spark_wrote_it(ledger: Ledger, tmp_path: Path) -> None:
    case = corpus_case("4.3.0", CASE, tmp_path)
    growing = tmp_path / "checkpoint"
    watcher = Watcher(LogCopier(ledger, STREAM, 1, LocalStore(growing)))
    watcher.start()
    (growing / "offsets").mkdir(parents=True)
    for entry in range(8):
        shutil.copy(case / "checkpoint" / "offsets" / str(entry), growing / "offsets" / str(entry))
        _wait_until(lambda entry=entry: entry in ledger.lines(STREAM, "offsets"))  # type: ignore[misc]  # bound now
    watcher.stop()
    assert (watcher.copied, watcher.errors) == (8, 0)


def test_stopping_takes_what_is_still_missing(ledger: Ledger, tmp_path: Path) -> None:
    case = corpus_case("4.3.0", CASE, tmp_path)
    watcher = Watcher(LogCopier(ledger, STREAM, 1, LocalStore(case / "checkpoint")), interval_s=3600)
    watcher.start()
    assert ledger.lines(STREAM, "commits") == {}
    watcher.stop()
    assert set(ledger.lines(STREAM, "commits")) == set(range(8))


def test_stopping_a_watcher_that_was_never_started_is_no_error(ledger: Ledger, tmp_path: Path) -> None:
    Watcher(LogCopier(ledger, STREAM, 1, LocalStore(tmp_path))).stop()


class FailingStore(LocalStore):
    """Fails for the first listings, as a store does that is unreachable for a while."""

    failures = 5

    def list(self, path: str = "") -> tuple[Entry, ...]:
        if self.failures:
            self.failures -= 1
            raise OSError("the store is unreachable")
        return super().list(path)


def test_an_error_is_counted_and_logged_once_and_the_copy_continues(ledger: Ledger, tmp_path: Path) -> None:
    case = corpus_case("4.3.0", CASE, tmp_path)
    watcher = Watcher(LogCopier(ledger, STREAM, 1, FailingStore(case / "checkpoint")), interval_s=0.01)
    with capture_logs() as logged:
        watcher.start()
        _wait_until(lambda: watcher.copied > 0)
        watcher.stop()
    assert watcher.errors == 5
    assert [(line["event"], line["error"]) for line in logged] == [
        ("the ledger was not updated", "the store is unreachable")
    ]
    assert set(ledger.lines(STREAM, "commits")) == set(range(8))


def test_a_database_that_goes_away_and_comes_back_is_caught_up_with(
    postgres: PostgresServer, empty_postgres: str, tmp_path: Path
) -> None:
    case = corpus_case("4.3.0", CASE, tmp_path)
    with Ledger.open(postgres.url(postgres.new_database(empty_postgres)), create=False) as ledger:
        ledger.register_stream(stream_record())
        ledger.add_generation(GenerationRecord(STREAM, 1, str(case)))
        watcher = Watcher(LogCopier(ledger, STREAM, 1, LocalStore(case / "checkpoint")), interval_s=0.01)
        postgres.stop()
        with capture_logs():
            watcher.start()
            _wait_until(lambda: watcher.errors > 0)
            postgres.start()
            _wait_until(lambda: watcher.copied > 0)
            watcher.stop()
        assert set(ledger.lines(STREAM, "offsets")) == set(range(8))


def _wait_until(reached: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 20
    while not reached():
        assert time.monotonic() < deadline
        time.sleep(0.005)


# What is known of the batches of a query that was watched, and of those that a run executed.


SOURCE = BatchSource("FileStreamSource[file:/landing]", '{"logOffset":1}', '{"logOffset":2}', None, 0)


def test_a_watched_batch_without_rows_may_have_been_skipped_by_its_output(sqlite_url: str, tmp_path: Path) -> None:
    with Ledger.open(sqlite_url, create=False) as ledger:
        stream = stream_record(STREAM.partition("/")[2])
        ledger.register_stream(stream, GenerationRecord(STREAM, 1, str(tmp_path)))
        watched = BatchRecord(STREAM, 1, 3, 0, input_rows=0, sources=(SOURCE,))
        ledger.record_batch(watched)
        run = ledger.begin_run(STREAM, 1, "4.1.3")
        ledger.record_batch(watched._replace(batch_id=4, run=run.id))
        ledger.record_batch(watched._replace(batch_id=5, input_rows=2))

        history = history_of(ledger, ledger.stream(STREAM))

    assert history.skipped == {3}
