"""Continuous processing and real-time mode from a real topic to another, killed and run again."""

import os
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

from examples.demo.broker import Broker
from scripts.conformance import row_of
from tests.conformance.matrix import EXAMPLES, FILE, Area, Workspace
from tests.support.kafka_topics import create_topic, values
from tests.support.killing import children_of, kill_with_children

pytestmark = [pytest.mark.spark, pytest.mark.kafka, pytest.mark.thorough, pytest.mark.timeout(900)]
WAIT_S = 200
COPIED = {"continuous": "readings-copied", "real_time": "readings-at-once"}
"""The topic that the example of each trigger writes."""


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Broker]:
    with Broker.start(tmp_path_factory.mktemp("broker")) as running:
        servers = {**os.environ, "KAFKA_SERVERS": running.bootstrap_servers}
        subprocess.run([sys.executable, str(EXAMPLES / "make_topics.py")], check=True, env=servers)
        for topic in COPIED.values():
            create_topic(running.bootstrap_servers, topic, 2)
        yield running


@pytest.mark.parametrize("name", COPIED)
def test_copies(name: str, broker: Broker, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KAFKA_SERVERS", broker.bootstrap_servers)
    workspace = Area("triggers", [name], {}, ["kafka"]).lay_down(tmp_path / name)
    servers, topic = broker.bootstrap_servers, COPIED[name]
    every = Counter(values(servers, "readings-1"))
    _run_until_copied(workspace, servers, topic, every)

    first = Counter(values(servers, topic))
    before = _committed(workspace, name)
    run = workspace.run_until(lambda: _committed(workspace, name) > before + 1)
    copied = Counter(values(servers, topic))

    assert "at least once" in run
    assert first == every
    assert copied >= every
    assert copied.keys() == every.keys()
    assert row_of("triggers", name).after_kill == "at-least-once"


def _committed(workspace: Workspace, name: str) -> int:
    """The newest committed epoch or batch, -1 for none."""
    return max((int(entry.name) for entry in (workspace.checkpoint(name) / "commits").glob("[0-9]*")), default=-1)


def _run_until_copied(workspace: Workspace, servers: str, topic: str, every: Counter[bytes | None]) -> None:
    """Run the stream, and kill it once the second topic has each record."""
    output = workspace.folder / "killed.log"
    with output.open("wb") as log:
        process = subprocess.Popen(
            [sys.executable, "-m", "slackwater", "run", FILE], cwd=workspace.folder, stdout=log, stderr=log
        )
    deadline = time.monotonic() + WAIT_S
    try:
        while not Counter(values(servers, topic)) >= every:
            assert process.poll() is None, output.read_text()
            assert time.monotonic() < deadline, output.read_text()
            time.sleep(0.5)
    finally:
        kill_with_children(process, children_of(process.pid))
