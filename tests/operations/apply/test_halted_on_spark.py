"""Spark starts no query on a checkpoint whose files are being replaced, and changes nothing in it."""

from pathlib import Path

import pytest
from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException

from slackwater.checkpoint.writer import halted_by, is_halted
from slackwater.runtime.session import SessionOptions
from slackwater.runtime.session.session import end_session, start_session
from slackwater.storage.local import LocalStore

pytestmark = [pytest.mark.spark]


def test_no_query_starts(tmp_path: Path) -> None:
    settings = {"spark.sql.warehouse.dir": str(tmp_path / "warehouse")}
    session = start_session(SessionOptions("halted", "local[1]", settings, ()), lambda _: None)
    store = LocalStore(tmp_path / "checkpoint")

    def run() -> None:
        frame = session.readStream.schema("n long").json(str(tmp_path / "in"))
        writer = frame.writeStream.format("noop").option("checkpointLocation", store.location)
        writer.trigger(availableNow=True).start().awaitTermination()

    def files() -> dict[str, bytes]:
        paths = [f"{folder.path}/{name}" for folder in store.folders() for name in folder.files]
        return {path: store.read(path) for path in paths}

    try:
        (tmp_path / "in").mkdir()
        (tmp_path / "in" / "0.json").write_text('{"n": 1}')
        run()
        metadata = store.read("metadata")
        store.delete(".metadata.crc")
        store.write("metadata", halted_by("20261122T204640-211b36"))
        before = files()
        with pytest.raises((Py4JJavaError, PySparkException)) as failed:
            run()
        assert "slackwater_is_replacing_this_checkpoint" in str(failed.value)
        assert is_halted(store)
        assert files() == before
        store.write("metadata", metadata)
        run()
    finally:
        end_session(session)
