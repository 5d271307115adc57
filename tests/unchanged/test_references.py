"""Which files are applications, what names them, and where their writers write: without a JVM."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from slackwater.core.errors import Refused
from slackwater.core.records import GenerationRecord
from slackwater.core.reference import reference_of, split_reference
from slackwater.core.sink import WriterCalls
from slackwater.runtime.application import running
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


def test_a_query_with_the_name_of_another_is_refused() -> None:
    one: Any = SimpleNamespace(name="out", full_name="watched/out", checkpoint="/b")
    with pytest.raises(Refused) as moved:
        running._refuse_other_checkpoint(one, GenerationRecord("watched/out", 1, "/a"))
    assert (moved.value.code, moved.value.expected, moved.value.found) == ("query-checkpoint", "/a", "/b")
    active: Any = SimpleNamespace(_active={"out": one}, _poll=lambda *_: None)
    kind = next(kind for kind in vars(running).values() if hasattr(kind, "_refuse_second"))
    with pytest.raises(Refused) as second:
        kind._refuse_second(active, one)
    assert second.value.code == "query-duplicate"
