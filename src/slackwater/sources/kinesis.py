"""Kinesis streams, as the open-source connector and Databricks' own write their offsets."""

from __future__ import annotations

from slackwater.sources.common.contract import SourceEntries
from slackwater.sources.common.source import Source


class Kinesis(Source):
    """An iterator or a range of sequence numbers by shard; sequence numbers do not count rows."""

    kind = "kinesis"

    def owns(self, offset: object, log: SourceEntries) -> bool:
        if not isinstance(offset, dict):
            return False
        if offset.keys() <= {"streamName", "shards"}:
            return isinstance(offset.get("streamName"), str)
        stream = offset.get("metadata")
        return isinstance(stream, dict) and isinstance(stream.get("streamName"), str)


SOURCE = Kinesis()
