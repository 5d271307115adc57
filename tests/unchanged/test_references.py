"""Which files are applications, what names them, and where their writers write: without a JVM."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from slackwater.core.errors import Refused
from slackwater.core.records import WATCHED, GenerationRecord, StreamRecord
from slackwater.core.reference import reference_of, split_reference
from slackwater.core.sink import WriterCalls
from slackwater.ledger.ledger import Ledger
from slackwater.runtime.application import running
from slackwater.runtime.application.queries import as_known
from slackwater.runtime.loader import is_application, load
from slackwater.runtime.pipeline import StreamDefinition
from slackwater.runtime.watch import watch
from slackwater.sinks.common.registry import UNKNOWN, open_output, recognised
from slackwater.triggers import as_trigger

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


def _query(name: str, checkpoint: str) -> StreamDefinition:
    sink: Any = None
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


@pytest.mark.parametrize(
    "session",
    [
        "SparkSession.builder.remote('sc://localhost:1')",
        "SparkSession.builder.config('spark.api.mode', 'connect')",
        "os.environ.update(SPARK_REMOTE='sc://localhost:1') or SparkSession.builder",
    ],
)
def test_a_session_of_spark_connect_is_refused_before_a_server_is_asked(
    tmp_path: Path, session: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    application = tmp_path / "app.py"
    application.write_text(
        f"import os\nfrom pyspark.sql import SparkSession\nspark = ({session}).getOrCreate()\n{QUERY}"
    )
    monkeypatch.setenv("SPARK_REMOTE", "sc://localhost:1")
    monkeypatch.delenv("SPARK_REMOTE")
    with pytest.raises(Refused) as refused:
        load(str(application))
    assert refused.value.code == "connect-session"
    assert "slackwater adopt LOCATION" in str(refused.value.hint)
    remote: Any = type("SparkSession", (), {"__module__": "pyspark.sql.connect.session"})()
    with pytest.raises(Refused):
        watch(remote, ledger=tmp_path / "ledger.db")


def test_a_second_query_of_one_name_is_refused() -> None:
    one: Any = SimpleNamespace(name="out", full_name="watched/out", checkpoint="/b")
    active: Any = SimpleNamespace(_active={"out": one}, _poll=lambda *_: None)
    kind = next(kind for kind in vars(running).values() if hasattr(kind, "_refuse_second"))
    with pytest.raises(Refused) as second:
        kind._refuse_second(active, one)
    assert second.value.code == "query-duplicate"
