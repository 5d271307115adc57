"""Every way to read topics, on a real broker."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from examples.demo.broker import Broker
from scripts.conformance import expected, streams
from tests.conformance.matrix import EXAMPLES, Area, measured

pytestmark = [pytest.mark.spark, pytest.mark.kafka, pytest.mark.timeout(1200)]


def test_kafka(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with Broker.start(tmp_path / "broker") as broker:
        monkeypatch.setenv("KAFKA_SERVERS", broker.bootstrap_servers)
        subprocess.run([sys.executable, str(EXAMPLES / "make_topics.py")], check=True, env=os.environ)

        assert measured(Area("kafka", streams("kafka"), {}, ["kafka"]), tmp_path) == expected("kafka")
