"""HDFS by the native client of Hadoop, which needs Java and libhdfs."""

from __future__ import annotations

from slackwater.storage.protocols import HADOOP
from slackwater.storage.registry import FsspecKind

STORE = FsspecKind(("hdfs",), HADOOP, protocol="hdfs")
