"""Continuous processing from a real topic to another, killed and run again."""

from __future__ import annotations

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
COPIED = "readings-copied"


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Broker]:
    with Broker.start(tmp_path_factory.mktemp("broker")) as running:
        servers = {**os.environ, "KAFKA_SERVERS": running.bootstrap_servers}
        subprocess.run([sys.executable, str(EXAMPLES / "make_topics.py")], check=True, env=servers)
        create_topic(running.bootstrap_servers, COPIED, 2)
        yield running


def test_continuous_processing_copies_each_record_at_least_once(
    broker: Broker, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("KAFKA_SERVERS", broker.bootstrap_servers)
    workspace = Area("triggers", ["continuous"], {}, ["kafka"]).lay_down(tmp_path / "continuous")
    every = Counter(values(broker.bootstrap_servers, "readings-1"))
    _run_until_copied(workspace, broker, every)

    first = Counter(values(broker.bootstrap_servers, COPIED))
    before = _epoch(workspace)
    run = workspace.run_until(lambda: _epoch(workspace) > before + 1)
    copied = Counter(values(broker.bootstrap_servers, COPIED))

    assert "at least once" in run
    assert first == every
    assert copied >= every
    assert copied.keys() == every.keys()
    assert row_of("triggers", "continuous").after_kill == "at-least-once"


def _epoch(workspace: Workspace) -> int:
    """The newest committed epoch."""
    return max(int(entry.name) for entry in (workspace.checkpoint("continuous") / "commits").glob("[0-9]*"))


def _run_until_copied(workspace: Workspace, broker: Broker, every: Counter[bytes | None]) -> None:
    """Run the stream, and kill it once the second topic has each record."""
    output = workspace.folder / "killed.log"
    with output.open("wb") as log:
        process = subprocess.Popen(
            [sys.executable, "-m", "slackwater", "run", FILE], cwd=workspace.folder, stdout=log, stderr=log
        )
    deadline = time.monotonic() + WAIT_S
    try:
        while not Counter(values(broker.bootstrap_servers, COPIED)) >= every:
            assert process.poll() is None, output.read_text()
            assert time.monotonic() < deadline, output.read_text()
            time.sleep(0.5)
    finally:
        kill_with_children(process, children_of(process.pid))
