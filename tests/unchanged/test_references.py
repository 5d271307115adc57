"""Which files are applications, what names them, and where their writers write: without a JVM."""

from __future__ import annotations

from pathlib import Path

import pytest

from slackwater.core.reference import reference_of, split_reference
from slackwater.core.sink import WriterCalls
from slackwater.runtime.loader import is_application
from slackwater.sinks.common.registry import open_output, recognised

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
