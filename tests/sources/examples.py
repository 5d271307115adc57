"""Examples of every kind of source: three positions in order, and the source's own log. A new kind adds a line here."""

from dataclasses import dataclass, field

from slackwater.sources.common.contract import SourceEntries
from slackwater.sources.kafka import render_initial_offsets


@dataclass(frozen=True)
class Example:
    """A source of one kind.

    ``rows`` are the rows between ``first`` and ``last``, where offsets determine them. ``oldest`` is a position from
    which it can serve all of them, where that is not ``first``.
    """

    kind: str
    first: str
    middle: str
    last: str
    log: SourceEntries = field(default_factory=dict)
    rows: int | None = None
    oldest: str | None = None
    name: str = ""

    def __str__(self) -> str:
        return self.name or self.kind

    @property
    def offsets(self) -> tuple[str, str, str]:
        """The positions, in order."""
        return self.first, self.middle, self.last


def file_log(entries: int) -> dict[int, str]:
    """The log of a file source that took one file more in each entry."""
    return {
        entry: "\n".join(["v1", *(_file_line(entry, number) for number in range(entry + 1))])
        for entry in range(entries)
    }


def _file_line(entry: int, number: int) -> str:
    return f'{{"path":"file:///in/{entry}-{number}.json","timestamp":{1_704_067_200_000 + entry},"batchId":{entry}}}'


def _kinesis(position: str) -> str:
    shard = f'{{"subSequenceNumber":"-1","isLast":"true","iteratorType":"AT","iteratorPosition":"{position}"}}'
    return f'{{"metadata":{{"streamName":"orders","batchId":"0"}},"shardId-000000000000":{shard}}}'


def _kinesis_databricks(position: str) -> str:
    shard = f'{{"shard":{{"stream":"orders","shardId":"shardId-000000000000"}},"firstSeqNum":"{position}"}}'
    return f'{{"shards":[{shard}],"streamName":"orders"}}'


def _delta(version: int) -> str:
    return (
        f'{{"sourceVersion":1,"reservoirId":"61a84303-80aa-4970-973a-8b729f494d48","reservoirVersion":{version},'
        '"index":-1,"isStartingVersion":false}'
    )


def _iceberg(position: int) -> str:
    return f'{{"version":1,"snapshot_id":5780467081217083563,"position":{position},"scan_all_files":false}}'


def _rate_continuous(value: int) -> str:
    return (
        f'{{"0":{{"value":{value},"runTimeMs":1704067200000}},"1":{{"value":{value + 1},"runTimeMs":1704067200000}}}}'
    )


_INITIAL = '{"orders":{"0":10,"1":0}}'

EXAMPLES = (
    Example("files", '{"logOffset":1}', '{"logOffset":8}', '{"logOffset":22}', file_log(25)),
    Example("files", "1", "8", "22", file_log(25), name="files, offsets of an old release"),
    Example(
        "kafka",
        '{"orders":{"0":12,"1":3}}',
        '{"orders":{"0":12,"1":7}}',
        '{"orders":{"0":15,"1":7,"2":5},"returns":{"0":1}}',
        {0: render_initial_offsets(_INITIAL).decode()},
        rows=3 + 4 + 5 + 1,
        oldest='{"orders":{"0":12,"1":3,"2":0},"returns":{"0":0}}',
    ),
    Example("rate", "0", "4", "9", {0: "v1\n1704067200000"}),
    Example("rate-continuous", _rate_continuous(-2), _rate_continuous(4), _rate_continuous(8)),
    Example(
        "rate-micro-batch",
        '{"offset":0,"timestamp":1704067200000}',
        '{"offset":8,"timestamp":1704067202000}',
        '{"offset":20,"timestamp":1704067205000}',
        rows=20,
    ),
    Example("delta", _delta(3), _delta(4), _delta(7)),
    Example("iceberg", _iceberg(0), _iceberg(3), _iceberg(9)),
    Example("kinesis", _kinesis("495"), _kinesis("496"), _kinesis("499")),
    Example(
        "kinesis",
        _kinesis_databricks("495"),
        _kinesis_databricks("496"),
        _kinesis_databricks("499"),
        name="kinesis, Databricks",
    ),
    Example("number", "-1", "3", "20"),
    Example("unknown", '{"pos": 3}', '{"pos": 9}', '{"pos": 12}', name="Python data source"),
    Example("unknown", "{}", '{"orders":{}}', '{"orders":{"0":-1}}', name="nearly Kafka"),
    Example("unknown", '{"0":1,"1":1}', '{"0":2,"1":1}', '{"0":2,"1":5}', name="memory in real-time mode"),
)
