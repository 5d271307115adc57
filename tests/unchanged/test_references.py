"""Which files are applications, what names them, and where their writers write: without a JVM."""

import inspect
import shutil
from collections.abc import Mapping
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from zipfile import ZipFile

import pytest
from pyspark.sql.streaming.readwriter import DataStreamWriter

from slackwater.core.errors import PipelineError, Refused
from slackwater.core.records import WATCHED, GenerationRecord, StreamRecord
from slackwater.core.reference import reference_of, split_reference
from slackwater.core.sink import WriterCalls
from slackwater.ledger.ledger import Ledger
from slackwater.ledger.recording.snapshot import look_at_output
from slackwater.runtime.application import running
from slackwater.runtime.application.capture import captured
from slackwater.runtime.application.queries import as_known, settle_place
from slackwater.runtime.application.writers import _TRIGGERS, Given, Start, _keep, chooses_client
from slackwater.runtime.loader import is_application
from slackwater.runtime.pipeline import StreamDefinition
from slackwater.runtime.run.before_start import check_same_sink
from slackwater.runtime.session import SessionOptions
from slackwater.sinks.common.registry import UNKNOWN, is_same_sink, open_output, recognised
from slackwater.triggers import as_trigger
from tests.support.errors import raises_code

QUERY = "spark.readStream.text('in').writeStream.option('checkpointLocation', 'c').start('out')\n"
PIPELINE = "import slackwater as sw\npipeline = sw.Pipeline('p')\n"


@pytest.mark.parametrize(
    ("files", "expected"),
    [
        ({"app.py": QUERY}, True),
        ({"app.py": "from jobs import main\nmain()\n", "jobs.py": f"def main():\n    {QUERY}"}, True),
        ({"app.py": PIPELINE + QUERY}, False),
        ({"app.py": "from streams import pipeline\n", "streams.py": PIPELINE}, False),
        ({"app.py": "print('nothing')\n"}, False),
        ({"app.py": "def broken(:\n"}, False),
    ],
)
def test_an_application_writes_streams_and_has_no_pipeline(
    tmp_path: Path, files: dict[str, str], expected: bool
) -> None:
    for name, text in files.items():
        (tmp_path / name).write_text(text)
    assert is_application(f"{tmp_path / 'app.py'} -- --day 2026-01-31") is expected


@pytest.mark.parametrize(
    ("files", "expected"),
    [
        ({"packed/jobs.py": f"def main():\n    {QUERY}"}, True),
        ({"packed/__init__.py": "from .jobs import main\n", "packed/jobs.py": f"def main():\n    {QUERY}"}, True),
        ({"packed/__init__.py": PIPELINE}, False),
        ({"packed/__init__.py": PIPELINE, "packed/jobs.py": QUERY}, False),
        ({"packed/jobs.py": "def main(): ...\n"}, False),
        ({"packed/jobs.py": "def broken(:\n"}, False),
        ({}, False),
    ],
)
@pytest.mark.parametrize("imported", ["from packed.jobs import main", "import packed, packed.jobs as jobs"])
def test_what_an_application_imports_from_an_archive_is_read_and_not_run(
    tmp_path: Path, files: dict[str, str], expected: bool, imported: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "app.py").write_text(f"{imported}\n")
    with ZipFile(tmp_path / "libs.zip", "w") as archive:
        for name, text in {"packed/__init__.py": "", **files}.items():
            archive.writestr(name, f"raise SystemExit\n{text}")
    monkeypatch.syspath_prepend(tmp_path / "libs.zip")
    assert is_application(str(tmp_path / "app.py")) is expected


def test_a_pipeline_of_another_library_is_none_of_slackwater(tmp_path: Path) -> None:
    (tmp_path / "app.py").write_text(f"import pyspark.ml\nstages = pyspark.ml.Pipeline()\n{QUERY}")
    assert is_application(str(tmp_path / "app.py"))


@pytest.mark.parametrize("arguments", [(), ("--in", "a folder"), ("--", "it's", "", "-- --")])
def test_the_arguments_of_an_application_are_a_part_of_its_reference(arguments: tuple[str, ...]) -> None:
    assert split_reference(reference_of("/srv/my app.py", arguments)) == ("/srv/my app.py", arguments)


@pytest.mark.parametrize(
    ("calls", "identity", "guarantee"),
    [
        (
            WriterCalls("parquet", {"path": "/data/out"}),
            {"kind": "files", "format": "parquet", "path": "/data/out"},
            "exactly-once",
        ),
        (
            WriterCalls("delta", {"path": "/data/t"}),
            {"kind": "table", "name": "delta./data/t", "format": "delta"},
            "exactly-once",
        ),
        (
            WriterCalls("iceberg", {}, table="lake.t"),
            {"kind": "table", "name": "lake.t", "format": "iceberg"},
            "exactly-once",
        ),
        (
            WriterCalls("iceberg", {}, table="lake.t", location="/data/lake/t"),
            {"kind": "table", "name": "lake.t", "format": "iceberg", "path": "/data/lake/t"},
            "exactly-once",
        ),
        (
            WriterCalls("parquet", {}, table="t", location="/data/t"),
            {"kind": "table", "name": "t", "format": "parquet", "path": "/data/t"},
            "exactly-once",
        ),
        (
            WriterCalls("json", {"path": "/data/t"}, table="t"),
            {"kind": "table", "name": "t", "format": "json", "path": "/data/t"},
            "exactly-once",
        ),
        (WriterCalls("kafka", {"topic": "t"}), {"kind": "kafka", "topic": "t"}, "at-least-once"),
        (WriterCalls("parquet", {}, function="foreachBatch"), {"kind": "foreach_batch"}, "at-least-once"),
        (WriterCalls("parquet", {}, function="foreach"), {"kind": "foreach"}, "at-least-once"),
        (WriterCalls("console", {}), {"kind": "console"}, "at-least-once"),
        (WriterCalls("memory", {}, query="m"), {"kind": "memory", "name": "m"}, "none"),
        (WriterCalls("noop", {}), {"kind": "noop"}, "none"),
        (WriterCalls("pulsar", {}), {"kind": "pulsar"}, "at-least-once"),
    ],
)
def test_each_kind_of_sink_recognises_its_own_output(
    calls: WriterCalls, identity: dict[str, str], guarantee: str
) -> None:
    found = recognised(calls)
    assert dict(found) == identity
    assert open_output(found).traits.delivery.guarantee == guarantee


def _described(*rows: tuple[str, str]) -> Any:
    """A session whose catalog describes one table so; without rows it has none, and the session's format is orc."""

    def sql(query: str) -> Any:
        assert query == "DESCRIBE TABLE EXTENDED lake.t"
        return SimpleNamespace(collect=lambda: rows)

    conf = SimpleNamespace(get=lambda name, _default: {"spark.sql.sources.default": "orc"}[name])
    catalog = SimpleNamespace(tableExists=lambda name: name == "lake.t" and bool(rows))
    return SimpleNamespace(sparkSession=SimpleNamespace(sql=sql, conf=conf, catalog=catalog))


@pytest.mark.parametrize(
    ("frame", "given", "expected"),
    [
        (_described(), None, ("orc", None)),
        (_described(), "delta", ("delta", None)),
        (
            _described(
                ("Provider", "string"), ("", ""), ("# Detailed Table Information", ""), ("Provider", "ICEBERG"),
                ("Location", "/lake/t"),
            ),
            None,
            ("iceberg", "/lake/t"),
        ),
        (_described(("Provider", "string"), ("Location", "string")), None, ("orc", None)),
    ],
)  # fmt: skip
def test_a_table_has_the_format_that_spark_writes_it_by(
    frame: Any, given: str | None, expected: tuple[str, str | None]
) -> None:
    calls = Start(frame, Given(format=given), "lake.t", lambda: None).calls
    assert (calls.format, calls.location) == expected


def test_a_table_by_name_whose_log_is_elsewhere_is_not_checked(tmp_path: Path) -> None:
    # As a catalog that keeps the newest metadata file itself has it.
    (tmp_path / "metadata").mkdir()
    (tmp_path / "metadata" / "00001-0b1c.metadata.json").write_text("{}")
    for kind, folder in (("iceberg", tmp_path), ("delta", tmp_path / "absent"), ("parquet", tmp_path)):
        identity = {"kind": "table", "name": "lake.t", "format": kind, "path": str(folder)}
        written, seen = look_at_output(identity, None, (3, False), "quick", query_id="q")
        assert (written, seen.unreadable) == (None, None)
        assert "could not check which batches table lake.t has" in seen.unchecked
        assert str(folder) in seen.unchecked


def test_a_table_of_files_has_the_batches_of_the_manifest_at_its_location(tmp_path: Path) -> None:
    identity = {"kind": "table", "name": "t", "format": "parquet", "path": tmp_path.as_uri()}
    (tmp_path / "_spark_metadata").mkdir()
    for batch in range(4):
        (tmp_path / "_spark_metadata" / str(batch)).write_text("v1")
    written, seen = look_at_output(identity, None, (3, False), "quick", query_id="q")
    assert (written, seen.unreadable, seen.unchecked) == (3, None, "")


def test_a_table_of_files_is_the_output_at_its_location() -> None:
    adopted = {"kind": "files", "path": "/data/t"}
    table = {"kind": "table", "name": "t", "format": "parquet", "path": "file:/data/t"}
    assert is_same_sink(adopted, table)
    assert is_same_sink(table, {**adopted, "format": "parquet"})
    assert not is_same_sink({**adopted, "path": "/data/other"}, table)
    assert not is_same_sink({**adopted, "kind": "delta"}, table)
    assert not is_same_sink(adopted, {"kind": "table", "name": "t", "format": "parquet"})


def test_where_a_table_is_does_not_make_it_another_one() -> None:
    known = {"kind": "table", "name": "lake.t", "format": "iceberg"}
    assert is_same_sink(known, {**known, "path": "/lake/t"})
    assert is_same_sink({**known, "path": "/lake/t"}, {**known, "path": "/elsewhere"})
    assert not is_same_sink(known, {**known, "name": "lake.other", "path": "/lake/t"})


def _query(name: str, checkpoint: str, output: str = "/lake/other") -> StreamDefinition:
    sink: Any = SimpleNamespace(identity=lambda: {"kind": "files", "path": output, "format": "json"})
    return StreamDefinition(WATCHED, name, lambda spark: spark, sink, "append", as_trigger(None), (), checkpoint)


def test_a_query_is_the_stream_that_has_its_checkpoint(tmp_path: Path) -> None:
    with Ledger.open(tmp_path / "ledger.db", create=True) as ledger:
        for pipeline, name, location in ((WATCHED, "clicks", "file:/a"), ("shop", "counts", "/c")):
            stream = StreamRecord(pipeline, name, UNKNOWN, "append", "shop.py")
            ledger.register_stream(stream, GenerationRecord(stream.full_name, 1, location))

        assert as_known(_query("out", "/a"), ledger).full_name == "watched/clicks"
        assert as_known(_query("out", "/b"), ledger).full_name == "watched/out"
        with pytest.raises(Refused) as moved:
            as_known(_query("clicks", "/b"), ledger)
        with pytest.raises(Refused) as of_a_pipeline:
            as_known(_query("counts", "/c"), ledger)
    assert (moved.value.code, moved.value.expected, moved.value.found) == ("query-checkpoint", "file:/a", "/b")
    assert (of_a_pipeline.value.code, of_a_pipeline.value.found) == (
        "query-checkpoint",
        "stream shop/counts of shop.py",
    )


def test_a_query_has_a_longer_name_where_another_output_ends_alike(tmp_path: Path) -> None:
    silver, bronze = "/lake/silver/orders", {"kind": "files", "path": "/lake/bronze/orders", "format": "json"}
    with Ledger.open(tmp_path / "ledger.db", create=True) as ledger:

        def record(query: StreamDefinition, sink: Mapping[str, str]) -> None:
            stream = StreamRecord(WATCHED, query.name, sink, "append", "shop.py")
            ledger.register_stream(stream, GenerationRecord(stream.full_name, 1, str(query.checkpoint)))

        record(_query("orders", "/ck/bronze"), bronze)
        second = as_known(_query("orders", "/ck/silver", silver), ledger)
        record(second, second.sink.identity())
        third = as_known(_query("orders", "/ck/old", "/old/silver/orders"), ledger)

        assert [second.name, third.name] == ["silver_orders", "old_silver_orders"]
        assert as_known(_query("orders", "/ck/silver", silver), ledger).name == "silver_orders"
        assert as_known(_query("orders", "/ck/bronze", bronze["path"]), ledger).name == "orders"
        with pytest.raises(Refused) as same_output:
            as_known(_query("orders", "/ck/new", bronze["path"]), ledger)
        with pytest.raises(Refused) as named:
            as_known(_query("silver_orders", "/ck/new", "/lake/named"), ledger)
    assert [one.value.code for one in (same_output, named)] == ["query-checkpoint"] * 2


def test_a_query_whose_checkpoint_was_moved_is_the_same_stream(tmp_path: Path) -> None:
    old, new = tmp_path / "old", tmp_path / "new"
    for folder in (old, new):
        folder.mkdir()
        (folder / "metadata").write_text('{"id":"61a84303-80aa-4970-973a-8b729f494d48"}')
    with Ledger.open(tmp_path / "ledger.db", create=True) as ledger:
        stream = StreamRecord(WATCHED, "clicks", UNKNOWN, "append", "shop.py")
        query_id = "61a84303-80aa-4970-973a-8b729f494d48"
        ledger.register_stream(stream, GenerationRecord(stream.full_name, 1, str(old), query_id=query_id))

        with pytest.raises(Refused):
            as_known(_query("clicks", str(new)), ledger)
        shutil.rmtree(old)
        moved = as_known(_query("out", str(new)), ledger)
        settle_place(moved, ledger)

        assert moved.name == "clicks"
        assert [one.location for one in ledger.generations(stream.full_name)] == [str(new)]


def test_another_output_of_a_program_is_refused_with_the_command_that_forgets_the_recorded_one() -> None:
    known = StreamRecord(WATCHED, "counts", {"kind": "table", "name": "t", "format": "parquet"}, "append", "shop.py")
    now = known._replace(sink={"kind": "table", "name": "t", "format": "iceberg", "path": "/lake/t"})
    with raises_code(Refused, "sink-changed", says="slackwater release watched/counts forgets the recorded one"):
        check_same_sink(known, now)


@pytest.mark.parametrize(
    ("options", "environment", "expected"),
    [
        ({}, {}, False),
        ({"spark.master": "local[2]", "spark.api.mode": "classic"}, {"SPARK_API_MODE": "connect"}, False),
        ({"spark.remote": "sc://localhost"}, {}, True),
        ({"spark.api.mode": "Connect"}, {}, True),
        ({}, {"SPARK_API_MODE": "connect"}, True),
        ({}, {"SPARK_REMOTE": "sc://localhost"}, True),
        ({}, {"SPARK_CONNECT_MODE_ENABLED": "1"}, True),
    ],
)
def test_what_makes_a_session_of_spark_connect(
    options: dict[str, object], environment: dict[str, str], expected: bool
) -> None:
    assert chooses_client(options, environment) is expected


def test_an_application_that_ends_itself_is_named_with_how_to_give_its_arguments(tmp_path: Path) -> None:
    file = tmp_path / "app.py"
    file.write_text(f"import argparse\nargparse.ArgumentParser().parse_args()\n{QUERY}")
    with raises_code(PipelineError, "application-fails", says=f"slackwater check '{file} -- ARGUMENTS'; --pipeline"):
        captured(f"{file} -- --day 1", None, SessionOptions())


def test_a_second_query_of_one_name_is_refused() -> None:
    one: Any = SimpleNamespace(name="out", full_name="watched/out", checkpoint="/b")
    active: Any = SimpleNamespace(_active={"out": one}, _poll=lambda *_: None)
    kind = next(kind for kind in vars(running).values() if hasattr(kind, "_refuse_second"))
    with raises_code(Refused, "query-duplicate"):
        kind._refuse_second(active, one)


# What a writer is given is kept, whatever the version of PySpark.


def test_each_trigger_of_this_pyspark_is_known() -> None:
    assert inspect.signature(DataStreamWriter.trigger).parameters.keys() - {"self"} <= _TRIGGERS.keys()


def test_a_trigger_of_real_time_mode_is_kept() -> None:
    given = Given()

    _keep(given, "trigger", {"realTime": "5 seconds"})

    assert (given.trigger.kind, given.trigger.interval) == ("real-time", "5 seconds")
