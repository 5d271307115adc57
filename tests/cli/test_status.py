"""``slackwater status`` on homes at every place of the number line."""

import json
import os
import re
import shutil
import signal
import socket
import sqlite3
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

import pytest
from deltalake import DeltaTable
from syrupy.assertion import SnapshotAssertion

from slackwater.core.escaping import quoted
from slackwater.core.program import Program, SourceShape, made_by
from slackwater.core.records import LeaseRecord, LogLine, OperationRecord
from slackwater.facts.sources import ANSWER_S_MAX
from slackwater.ledger.lease import Lease, this_process
from slackwater.ledger.ledger import Ledger
from slackwater.sources import kind_named
from slackwater.sources.common.contract import Asked
from tests.cli.conftest import Done, Slackwater
from tests.sinks import delta_logs
from tests.support.homes import (
    LAYOUT,
    RAN_MS,
    START_MS,
    STATELESS,
    STREAM,
    HomeSpec,
    edit_ledger,
    make_home,
    written_at,
)
from tests.support.processes import Command

NO_SUCH_PROCESS = 4_194_400
"""Above the highest process id that Linux gives out."""


def test_a_clean_stream_as_text(slackwater: Slackwater, tmp_path: Path, snapshot: SnapshotAssertion) -> None:
    make_home(tmp_path)

    done = slackwater("status")

    assert done.code == 0
    assert done.out == snapshot


def test_a_clean_stream_as_json(slackwater: Slackwater, tmp_path: Path, snapshot: SnapshotAssertion) -> None:
    make_home(tmp_path)

    assert slackwater("status", "per_page", "--format", "json").document == snapshot


@pytest.mark.parametrize(
    ("spec", "code", "next_batch", "exit_code"),
    [
        (HomeSpec(), "clean", 6, 0),
        (HomeSpec(planned=6, state=6), "clean", 6, 0),
        (HomeSpec(planned=6, state=6, written=6), "commit-missing", 6, 0),
        (HomeSpec(written=8), "sink-ahead", 6, 5),
        (HomeSpec(written=6), "sink-ahead", 6, 5),
        (HomeSpec(written=3), "sink-behind", 6, 5),
        (HomeSpec(state=3), "state-lost", 6, 5),
        (HomeSpec(state=None), "state-lost", 6, 5),
        (HomeSpec(planned=-1, committed=-1, state=None, written=-1, run="none"), "new", 0, 0),
        (HomeSpec(planned=-1, committed=-1, state=None, written=4, run="none"), "sink-foreign", 0, 5),
        (HomeSpec(planned=0, committed=-1, state=None, written=-1), "clean", 0, 0),
        (HomeSpec(run="failed"), "failed", 6, 7),
    ],
)
def test_what_the_number_line_means(
    slackwater: Slackwater, tmp_path: Path, *, spec: HomeSpec, code: str, next_batch: int, exit_code: int
) -> None:
    make_home(tmp_path, spec)

    done = slackwater("status", "--format", "json")
    stream = done.document["streams"][0]

    assert (stream["verdict"]["code"], stream["next_batch"], done.code) == (code, next_batch, exit_code)
    assert stream["next_batch_planned"] == (spec.planned > spec.committed)


def test_a_refused_start_is_shown_until_one_succeeds(slackwater: Slackwater, tmp_path: Path) -> None:
    home = make_home(tmp_path)
    (tmp_path / "clicks.py").write_text(
        "import slackwater\n"
        'pipeline = slackwater.Pipeline("clicks")\n'
        '@pipeline.stream(sink=slackwater.sinks.files("parquet", "elsewhere"))\n'
        "def per_page(spark): ...\n"
    )
    before = slackwater("ledger", STREAM, "--format", "json").document

    refused = slackwater("run", "clicks.py")
    status = slackwater("status", "--format", "json")
    found = status.document["streams"][0]["findings"][0]

    assert (refused.code, status.code, found["code"]) == (5, 7, "start-refused")
    assert found["text"].startswith("the last start was refused: sink-changed: Stream clicks/per_page has written")
    assert f"hint: {found['advice']}" in refused.err
    assert found["advice"] in slackwater("doctor", STREAM).out
    assert slackwater("ledger", STREAM, "--format", "json").document == before
    with Ledger.open(home / "ledger.db", create=False) as ledger:
        ledger.begin_run(STREAM, 1, "4.1.3")
    assert "start-refused" not in slackwater("status", "--format", "json").out


@pytest.mark.parametrize("written", [5, 8])
def test_printed_commands_repeat_the_options_of_the_last_run(
    slackwater: Slackwater, tmp_path: Path, written: int
) -> None:
    home = make_home(tmp_path, HomeSpec(written=written))
    words = ("--master", "local[1]", "--conf", "spark.app.zone=Europe/Berlin")
    with Ledger.open(home / "ledger.db", create=False) as ledger:
        ledger.register_stream(ledger.find_stream(STREAM)._replace(session=words))

    shown = slackwater("status", STREAM, "--format", "json").document["streams"][0]

    options = " ".join(map(quoted, words))
    assert shown["check"] == f"slackwater check {shown['pipeline_file']} {options}"
    if written > 5:
        assert shown["next"] == f"slackwater plan rebuild {STREAM} {options}"


def test_a_stream_whose_first_start_was_refused_is_none_yet(slackwater: Slackwater, tmp_path: Path) -> None:
    (tmp_path / "clicks.py").write_text(
        "import slackwater\n"
        'pipeline = slackwater.Pipeline("clicks")\n'
        'trigger = slackwater.triggers.continuous("1 second")\n'
        '@pipeline.stream(sink=slackwater.sinks.files("parquet", "out"), trigger=trigger)\n'
        "def per_page(spark): ...\n"
    )

    refused = slackwater("run", "clicks.py")
    shown = slackwater("status")

    assert (refused.code, shown.code) == (2, 0), refused.err
    assert "no stream has run in this home yet" in shown.out + shown.err


def test_no_rebuild_is_printed_that_would_be_refused(slackwater: Slackwater, tmp_path: Path) -> None:
    kept = LAYOUT | {"operators": ["DeduplicateWithinWatermark"]}
    make_home(tmp_path, HomeSpec(state=3, layout=kept))

    stream = slackwater("status", "--format", "json").document["streams"][0]
    refused = slackwater("plan", "rebuild", STREAM)

    assert stream["verdict"]["code"] == "state-lost"
    assert (stream["findings"][0]["goal"], stream["next"]) == (
        "reset",
        f"slackwater plan reset {STREAM} --from earliest",
    )
    assert "state-not-reproducible" in refused.err
    assert stream["next"] in refused.err
    assert "slackwater plan rebuild" not in slackwater("doctor", STREAM).out


def test_what_is_printed_for_a_moved_home_is_typed(slackwater: Slackwater, tmp_path: Path) -> None:
    home = make_home(tmp_path)
    # Records where the home is.
    slackwater("plan", "rebuild", STREAM)
    home.rename(tmp_path / "home")
    (tmp_path / "slackwater.toml").write_text('home = "home"')

    for verb in (("status",), ("doctor", STREAM)):
        printed = slackwater(*verb)
        assert "if that is so: slackwater home accept --moved" in printed.out
    typed = slackwater("home", "accept", "--moved")

    assert typed.code == 0, typed.err
    assert slackwater("status").code == 0


def test_an_unreadable_sink_is_shown_and_not_fatal(slackwater: Slackwater, tmp_path: Path) -> None:
    make_home(tmp_path)
    (tmp_path / "out" / "_spark_metadata" / "5").write_text("torn")

    done = slackwater("status", "--format", "json")
    stream = done.document["streams"][0]

    assert done.code == 3
    assert stream["verdict"]["code"] == "sink-unreadable"
    assert stream["sink_error"]["code"] == "sink-unreadable"
    assert stream["marks"] == {"planned": 5, "committed": 5, "state": 5, "written": None, "pending_no_data": 6}


def test_an_empty_home(slackwater: Slackwater) -> None:
    text, document = slackwater("status"), slackwater("status", "--format", "json")

    assert (text.code, text.out) == (0, "no stream has run in this home yet: <folder>/.slackwater")
    assert (document.code, document.document["streams"]) == (0, [])


def test_a_lease_that_is_held(slackwater: Slackwater, tmp_path: Path) -> None:
    home = make_home(tmp_path, HomeSpec(run="none"))

    with Ledger.open(home / "ledger.db", create=False) as ledger, Lease.acquire(ledger, STREAM, tmp_path, "run"):
        ledger.begin_run(STREAM, 1, "4.1.3")
        stream = slackwater("status", "--format", "json").document["streams"][0]

    assert (stream["lease"]["state"], stream["lease"]["pid"]) == ("held", os.getpid())
    assert stream["last_run"]["end"] == "running"
    assert stream["verdict"]["code"] == "running"


@pytest.mark.parametrize("only_jvm", [False, True])
def test_a_killed_run(slackwater: Slackwater, tmp_path: Path, only_jvm: bool) -> None:
    home = make_home(tmp_path, HomeSpec(planned=6, run="open"))
    dead = this_process()._replace(pid=NO_SUCH_PROCESS)
    jvm = dead._replace(jvm_pid=os.getpid(), jvm_started=this_process().pid_started)
    _hold(home, LeaseRecord(STREAM, 1, jvm if only_jvm else dead, "run", RAN_MS, RAN_MS))

    stream = slackwater("status", "--format", "json").document["streams"][0]

    assert stream["lease"]["state"] == ("only-jvm" if only_jvm else "abandoned")
    assert stream["last_run"]["end"] == "killed"
    [last_run] = [line for line in slackwater("status").out.splitlines() if line.startswith("  last run ")]
    assert re.fullmatch(r"  last run +killed, started \S+ \S+ UTC", last_run)


def test_a_holder_on_another_host_that_fell_silent(slackwater: Slackwater, tmp_path: Path) -> None:
    home = make_home(tmp_path)
    away = this_process()._replace(host=f"not-{socket.gethostname()}")
    _hold(home, LeaseRecord(STREAM, 1, away, "run", RAN_MS, RAN_MS))

    assert slackwater("status", "--format", "json").document["streams"][0]["lease"]["state"] == "expired"
    assert "free (expired at 2026-01-01 20:40:30 UTC" in slackwater("status").out


def test_an_unfinished_operation(slackwater: Slackwater, tmp_path: Path) -> None:
    home = make_home(tmp_path)
    with Ledger.open(home / "ledger.db", create=False) as ledger:
        ledger.begin_operation(OperationRecord("op-1", STREAM, "rebuild", "applying", RAN_MS, summary="plan.json"))

    stream = slackwater("status", "--format", "json").document["streams"][0]

    assert stream["verdict"]["code"] == "operation-unfinished"
    assert stream["next"] == "slackwater apply plan.json --yes"
    assert "operation  rebuild op-1" in slackwater("status").out


def test_lag_is_what_kafka_holds_beyond_the_newest_batch(slackwater: Slackwater, tmp_path: Path) -> None:
    make_home(tmp_path, HomeSpec(source="kafka"))

    assert slackwater("status", "--format", "json").document["streams"][0]["lag_rows"] == 200


def _hold(home: Path, lease: LeaseRecord) -> None:
    with Ledger.open(home / "ledger.db", create=False) as ledger:
        assert ledger.take_lease(None, lease)


@pytest.mark.parametrize(
    ("file", "code"),
    [
        ("{checkpoint}/offsets/5", "checkpoint-damaged"),
        ("{checkpoint}/commits/5", "checkpoint-damaged"),
        ("{checkpoint}/metadata", "checkpoint-damaged"),
        ("{checkpoint}/state/0/0/6.delta", "checkpoint-damaged"),
        ("out/_spark_metadata/5", "sink-unreadable"),
        ("out/part-5.parquet", "output-damaged"),
    ],
)
@pytest.mark.parametrize("how", ["empty", "torn"])
def test_damage_of_what_the_next_start_reads(
    slackwater: Slackwater, tmp_path: Path, file: str, code: str, how: str
) -> None:
    checkpoint = make_home(tmp_path) / "streams" / "clicks" / "per_page" / "checkpoints" / "0001"
    path = tmp_path / file.format(checkpoint=checkpoint)
    content = path.read_bytes()
    path.write_bytes(b"" if how == "empty" else content[: len(content) // 2])

    done = slackwater("status", "--format", "json")
    finding = done.document["streams"][0]["findings"][0]

    assert (done.code, finding["code"], finding["severity"]) == (3, code, "stop")


def test_missing_files_of_the_output(slackwater: Slackwater, tmp_path: Path) -> None:
    make_home(tmp_path)
    (tmp_path / "out" / "part-1.parquet").unlink()

    quick, thorough = slackwater("status", "--format", "json"), slackwater("status", "--verify", "--format", "json")

    assert quick.code == 0
    assert (thorough.code, thorough.document["streams"][0]["verdict"]["code"]) == (3, "output-damaged")
    for file in (tmp_path / "out").glob("*.parquet"):
        file.unlink()
    assert slackwater("status").code == 3


def _compacted(folder: Path) -> Path:
    """The manifest as Spark leaves it when it has compacted batches 0 to 3 and removed their entries."""
    manifest = folder / "out" / "_spark_metadata"
    lines = [(manifest / str(batch)).read_text().split("\n")[1] for batch in range(4)]
    (manifest / "3.compact").write_text("\n".join(["v1", *lines]))
    for batch in range(4):
        (manifest / str(batch)).unlink()
    return manifest


def _without(*batches: int) -> Callable[[Path], None]:
    def remove(folder: Path) -> None:
        for batch in batches:
            (folder / "out" / "_spark_metadata" / str(batch)).unlink()

    return remove


def _without_its_compacted_entry(folder: Path) -> None:
    (_compacted(folder) / "3.compact").unlink()


def _without_the_oldest_line(folder: Path) -> None:
    file = _compacted(folder) / "3.compact"
    version, _, *lines = file.read_text().split("\n")
    file.write_text("\n".join([version, *lines]))


@pytest.mark.parametrize(
    ("damage", "codes"),
    [
        (_without(2), (3, 3)),
        (_without(0), (3, 3)),
        (_without(0, 1, 2), (3, 3)),
        (_without_its_compacted_entry, (3, 3)),
        (_without_the_oldest_line, (0, 3)),
        (_compacted, (0, 0)),
    ],
)
def test_entries_that_are_missing_in_the_manifest(
    slackwater: Slackwater, tmp_path: Path, damage: Callable[[Path], object], codes: tuple[int, int]
) -> None:
    make_home(tmp_path, HomeSpec())
    slackwater("status")
    damage(tmp_path)

    quick, thorough = slackwater("status", "--format", "json"), slackwater("status", "--verify", "--format", "json")

    assert (quick.code, thorough.code) == codes
    for code, done in zip(codes, (quick, thorough), strict=True):
        assert done.document["streams"][0]["verdict"]["code"] == ("output-damaged" if code else "clean")


def _second_stream(home: Path, folder: Path) -> None:
    """Another stream of the home, whose checkpoint is a copy of the first one's."""
    first = home / "streams" / "clicks" / "per_page" / "checkpoints" / "0001"
    second = home / "streams" / "clicks" / "totals" / "checkpoints" / "0001"
    shutil.copytree(first, second)
    shutil.copytree(folder / "out", folder / "totals")
    for entry in (folder / "totals" / "_spark_metadata").iterdir():
        entry.write_text(entry.read_text().replace(f"{folder}/out/", f"{folder}/totals/"))
    with Ledger.open(home / "ledger.db", create=False) as ledger:
        stream = ledger.find_stream(STREAM)._replace(name="totals", id=None)
        sink = {**stream.sink, "path": stream.sink["path"].replace("/out", "/totals")}
        generation = ledger.generation(STREAM, 1)._replace(stream=stream.full_name, location=str(second))
        ledger.register_stream(stream._replace(sink=sink), generation)


@pytest.mark.parametrize(
    ("statement", "code", "exit_code"),
    [
        ("UPDATE streams SET sink = 'x' WHERE name = 'per_page'", "ledger-unreadable", 3),
        ("UPDATE streams SET current_generation = 9 WHERE name = 'per_page'", "generation-unknown", 4),
        ("UPDATE generations SET layout = '[]' WHERE stream = 'clicks/per_page'", "ledger-unreadable", 3),
        ("UPDATE generations SET location = 's3://' WHERE stream = 'clicks/per_page'", "store-unreachable", 9),
    ],
)
def test_a_stream_that_cannot_be_read_does_not_hide_the_others(
    slackwater: Slackwater, tmp_path: Path, *, statement: str, code: str, exit_code: int
) -> None:
    home = make_home(tmp_path)
    _second_stream(home, tmp_path)
    with sqlite3.connect(home / "ledger.db") as database:
        database.execute(statement)

    text, document = slackwater("status"), slackwater("status", "--format", "json")
    alone = slackwater("status", "totals", "--format", "json")

    assert [stream["stream"] for stream in document.document["streams"]] == ["clicks/totals"]
    (unreadable,) = document.document["unreadable"]
    assert (unreadable["stream"], unreadable["error"]["code"]) == (STREAM, code)
    assert (document.code, text.code) == (exit_code, exit_code)
    assert f"{STREAM}  cannot be read: {unreadable['error']['message']}" in text.out
    assert f"code {code}" in text.out
    assert "clicks/totals  generation 1" in text.out
    assert alone.document["streams"] == document.document["streams"]


def test_a_watch_shows_the_state_again_until_ctrl_c(tmp_path: Path) -> None:
    make_home(tmp_path)
    watch = Command(("status", "--watch", "1", "--format", "json"), tmp_path)
    watch.wait_for(lambda: watch.log.count("\n") >= 1, "the first document")
    (newest,) = (tmp_path / ".slackwater").rglob("commits/5")
    newest.unlink()
    watch.wait_for(lambda: '"committed": 4' in watch.log, "what was changed is shown")
    watch.signal_group(signal.SIGINT)

    assert watch.end() == 0
    committed = [json.loads(line)["streams"][0]["marks"]["committed"] for line in watch.log.splitlines()]
    assert committed == sorted(committed, reverse=True)
    assert set(committed) == {5, 4}


def test_rows_that_were_dropped_as_late_are_counted(slackwater: Slackwater, tmp_path: Path) -> None:
    """Of the generation in use, among its newest batches."""
    home = make_home(tmp_path)
    assert slackwater("status", "--format", "json").document["streams"][0]["late_rows"] == 0
    assert "dropped" not in slackwater("status").out
    edit_ledger(home, "UPDATE batches SET late_rows = batch_id WHERE batch_id > 3")

    assert slackwater("status", "--format", "json").document["streams"][0]["late_rows"] == 9
    assert f"9 rows dropped by the newest 200 batches: slackwater ledger {STREAM}" in slackwater("status").out


# What ``status`` says of a source that has something else than was read, or that does not answer.


POSITION = '{"sourceVersion":1,"reservoirId":"%s","reservoirVersion":1,"index":-1,"isStartingVersion":false}'
QUIET = HomeSpec(state=None, layout=STATELESS)
LOG = "table/_delta_log"


def _reads(folder: Path, *shapes: SourceShape) -> None:
    """Record that the query of the home in this folder reads these."""
    with Ledger.open(folder / ".slackwater/ledger.db", create=False) as ledger:
        ledger.update_generation(STREAM, 1, programs=made_by(Program(sources=shapes).as_json()))


def _reads_table(folder: Path) -> None:
    make_home(folder, QUIET)
    for entry in (folder / ".slackwater/streams/clicks/per_page/checkpoints/0001/offsets").iterdir():
        entry.write_text("\n".join([*entry.read_text().splitlines()[:2], POSITION % delta_logs.ID]))
    _reads(folder, SourceShape("delta", str(folder / "table")))


def _codes(done: Done) -> Sequence[str]:
    return [finding["code"] for finding in done.document["streams"][0]["findings"]]


def test_brokers_that_do_not_answer_cost_two_seconds_and_are_said(slackwater: Slackwater, tmp_path: Path) -> None:
    make_home(tmp_path, replace(QUIET, source="kafka"))
    with socket.socket() as listening:
        listening.bind(("127.0.0.1", 0))
        listening.listen()
        address = f"127.0.0.1:{listening.getsockname()[1]}"
        _reads(tmp_path, SourceShape("kafka", "topics clicks", options={"kafka.bootstrap.servers": address}))
        began = time.monotonic()
        done = slackwater("status")
        took_s = time.monotonic() - began

    assert took_s < 10 * ANSWER_S_MAX
    assert done.code == 0
    assert "not compared: source 0 cannot report its positions" in done.out


def test_a_store_that_does_not_answer_costs_two_seconds_and_is_said(
    slackwater: Slackwater, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    _reads_table(tmp_path)
    ended = threading.Event()
    monkeypatch.setattr("slackwater.sources.delta.live.open_read_store", lambda _: ended.wait())

    began = time.monotonic()
    done = slackwater("status")
    took_s = time.monotonic() - began
    ended.set()

    assert took_s < 10 * ANSWER_S_MAX
    assert done.code == 0
    assert "not compared: source 0 cannot report its positions: no answer within 2 s" in done.out


def test_a_table_that_was_created_again_is_found_without_its_files(slackwater: Slackwater, tmp_path: Path) -> None:
    _reads_table(tmp_path)
    delta_logs.commit(tmp_path / "table", delta_logs.TABLE)
    delta_logs.commit(tmp_path / "table", [{"add": "no file that a library could load"}])
    assert _codes(slackwater("status", "--format", "json")) == ["clean"]

    metadata = {**delta_logs.TABLE[2]["metaData"], "id": "another"}
    delta_logs.commit(tmp_path / "table", [{"metaData": metadata}])

    assert _codes(slackwater("status", "--format", "json"))[0] == "SW-DELTA-005"


def test_the_id_of_a_table_whose_log_was_compacted(tmp_path: Path) -> None:
    table = tmp_path / "table"
    for _ in range(2):
        delta_logs.commit(table, delta_logs.TABLE)
    DeltaTable(str(table)).create_checkpoint()
    (tmp_path / LOG / f"{0:020}.json").unlink()
    delta_logs.commit(table, [delta_logs.TABLE[0]])
    live = kind_named("delta").live()

    assert live.unserved(SourceShape("delta", str(table)), Asked(POSITION % delta_logs.ID)) == ()
    assert live.unserved(SourceShape("delta", str(table)), Asked(POSITION % "old"))[0].problem == "table-replaced"


@pytest.mark.parametrize("change", ["written later", "other bytes"])
def test_a_file_that_was_changed_after_it_was_read(slackwater: Slackwater, tmp_path: Path, change: str) -> None:
    home = make_home(tmp_path, QUIET)
    assert _codes(slackwater("status", "--format", "json")) == ["clean"]
    file = tmp_path / "clicks/004.json"
    if change == "written later":
        written_at(file, START_MS + 3_600_000)
    else:
        file.write_text("more")
        written_at(file, START_MS + 4)
        with Ledger.open(home / "ledger.db", create=False) as ledger:
            sizes = json.dumps({f"file://{file}": 0})
            ledger.record_lines([LogLine(STREAM, 1, "sizes/0", 4, sizes)])

    done = slackwater("status", "--format", "json")

    assert _codes(done) == ["SW-FSRC-005", "clean"]
    assert done.document["streams"][0]["findings"][0]["where"].endswith("clicks/004.json")
    assert done.code == 0
    assert "SW-FSRC-005" in slackwater("doctor").out
