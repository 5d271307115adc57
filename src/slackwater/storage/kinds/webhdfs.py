"""HDFS by HTTP."""

from __future__ import annotations

from slackwater.storage.protocols import HADOOP
from slackwater.storage.registry import FsspecKind

STORE = FsspecKind(("webhdfs",), HADOOP, protocol="webhdfs", package="requests")
