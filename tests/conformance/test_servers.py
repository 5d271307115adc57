"""Outputs on servers: topics of a real broker, a table of a real PostgreSQL."""

from collections import Counter
from collections.abc import Iterable
from pathlib import Path

import psycopg
import pytest
from deltalake import DeltaTable

from examples.demo.broker import Broker
from scripts.conformance import expected, shown, streams
from tests.conformance.matrix import Area, Workspace, before_commit, compared
from tests.support.kafka_topics import create_topic, values
from tests.support.outputs import Rows
from tests.support.postgres_server import postgres_server

pytestmark = [pytest.mark.spark, pytest.mark.kafka, pytest.mark.timeout(1200)]


def test_outputs_on_servers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    connectors = sorted({"postgresql", *(row.connector for row in shown("servers") if row.connector)})
    area = Area("servers", streams("servers"), {}, connectors, before_commit)
    with Broker.start(tmp_path / "broker") as broker, postgres_server() as server:
        monkeypatch.setenv("KAFKA_SERVERS", broker.bootstrap_servers)
        url = server.url(server.new_database())
        monkeypatch.setenv("POSTGRES_URL", url)

        def workspace(name: str) -> Workspace:
            # Outputs on a server cannot be put back with the folder: each workspace has its own.
            monkeypatch.setenv("KAFKA_TOPIC", name)
            monkeypatch.setenv("POSTGRES_TABLE", name)
            for suffix in ("plain", "once"):
                create_topic(broker.bootstrap_servers, f"{name}-{suffix}", 2)
            with psycopg.connect(url) as connection:
                connection.execute(f'CREATE TABLE "{name}_jdbc" (at TIMESTAMPTZ, device TEXT, kind TEXT, n BIGINT)')
            return area.lay_down(tmp_path / name)

        def rows(name: str) -> dict[str, Rows]:
            plain, once = (values(broker.bootstrap_servers, f"{name}-{suffix}") for suffix in ("plain", "once"))
            with psycopg.connect(url) as connection:
                tables = [
                    connection.execute(f'SELECT at, device, kind, n FROM "{name}{suffix}"').fetchall()
                    for suffix in ("", "_jdbc", "_by_function", "_of_two")
                ]
            of_delta = DeltaTable(tmp_path / name / "out" / "two_outputs").to_pyarrow_table().to_pylist()
            found: dict[str, Iterable[object]] = {
                "kafka_topic": plain,
                "kafka_exactly_once": once,
                "postgres_table": tables[0],
                "jdbc_table": tables[1],
                "marked_function": tables[2],
                "two_outputs": [*tables[3], *of_delta],
            }
            return {stream: Counter(repr(one) for one in found[stream]) for stream in area.streams}

        workspace("whole").run()
        restarted = workspace("restarted")
        restarted.kill_in_batch("--until-caught-up")
        restarted.run()
        rebuilt = workspace("rebuilt")
        rebuilt.kill_in_batch("--until-caught-up")
        refused = {stream: rebuilt.rebuild(stream) for stream in area.streams}
        rebuilt.run_only([stream for stream in area.streams if not refused[stream]])
        whole, after_kill, after = rows("whole"), rows("restarted"), rows("rebuilt")

    assert {
        stream: (compared(after_kill[stream], whole[stream]), refused[stream] or compared(after[stream], whole[stream]))
        for stream in area.streams
    } == expected("servers")
