"""The ledger's tables; ``schema`` creates them.

Times are epoch milliseconds. Streams are identified by full name, ``pipeline/stream``.
"""

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Any

from slackwater.core.errors import DataError
from slackwater.core.masking import brief
from slackwater.formats.text_log import json_value


def unreadable(expected: str, found: object) -> DataError:
    """The error for an unreadable value; the function that opened the ledger adds the place."""
    return DataError(
        "ledger-unreadable",
        "The ledger is damaged, or something other than Slackwater changed it",
        expected=expected,
        found=brief(repr(found)),
        hint="restore the ledger from a backup",
    )


class Kind(Enum):
    """A column's type. SQLite stores any value in any column, and a file can be damaged or edited."""

    INTEGER = int, "an integer"
    STRING = str, "a string"
    # Bytes and not a string: Kafka's sources/<i>/0 begins with a NUL, which PostgreSQL's text cannot hold.
    BYTES = bytes, "bytes"
    OBJECT = dict, "a JSON object"
    LIST = list, "a JSON list"

    # Plain attributes: a long history has hundreds of thousands of values to read.
    def __init__(self, python_type: type, expected: str) -> None:
        self.python_type = python_type
        self.expected = expected
        self.is_json = python_type in {dict, list}

    def read(self, stored: Any) -> Any:
        """Decodes the driver's value. Raises ``DataError`` (``ledger-unreadable``)."""
        if stored is None:
            return None
        value = stored
        if self.is_json:
            try:
                value = json_value(stored)
            except (ValueError, TypeError, RecursionError) as error:
                raise unreadable(self.expected, stored) from error
        if not isinstance(value, self.python_type):
            raise unreadable(self.expected, stored)
        return value

    def read_all(self, stored: Sequence[Any]) -> list[Any]:
        if not self.is_json and {*map(type, stored)} <= {self.python_type, type(None)}:
            return list(stored)
        return [self.read(value) for value in stored]

    def to_store(self, value: Any) -> Any:
        # Any other mapping than a dict is stored as one.
        return json.dumps(value, default=dict) if self.is_json and value is not None else value


@dataclass(frozen=True, eq=False)
class Table:
    name: str
    key: tuple[str, ...]
    columns: Mapping[str, Kind]
    sql: str


_KINDS = {
    "VARCHAR": Kind.STRING,
    "TEXT": Kind.STRING,
    "INTEGER": Kind.INTEGER,
    "BIGINT": Kind.INTEGER,
    "SERIAL": Kind.INTEGER,
    "BYTES": Kind.BYTES,
    "OBJECT": Kind.OBJECT,
    "LIST": Kind.LIST,
}
_COLUMN = re.compile(rf'"?(\w+)"? ({"|".join(_KINDS)})\b')


def _table(sql: str) -> Table:
    """The table of a statement; ``SERIAL``, ``BYTES``, ``OBJECT`` and ``LIST`` stand for types of the databases."""
    head, _, key = sql.partition("PRIMARY KEY (")
    columns = {name: _KINDS[kind] for name, kind in _COLUMN.findall(head)}
    return Table(head.split()[2], tuple(key.partition(")")[0].split(", ")), columns, sql)


_OF_GENERATION = "FOREIGN KEY(stream, generation) REFERENCES generations (stream, number)"

versions = _table(
    """CREATE TABLE slackwater_version (
        version_num VARCHAR(32) NOT NULL, CONSTRAINT slackwater_version_pkc PRIMARY KEY (version_num))"""
)
"""The schema's version, in one row. On PostgreSQL other programs in the database may have such a table, too."""

streams = _table(
    """CREATE TABLE streams (
        full_name VARCHAR NOT NULL, pipeline VARCHAR NOT NULL, name VARCHAR NOT NULL, sink OBJECT NOT NULL,
        output_mode VARCHAR NOT NULL, pipeline_file VARCHAR NOT NULL, current_generation INTEGER NOT NULL,
        id VARCHAR, session LIST, CONSTRAINT pk_streams PRIMARY KEY (full_name))"""
)

generations = _table(
    """CREATE TABLE generations (
        stream VARCHAR NOT NULL, number INTEGER NOT NULL, location VARCHAR NOT NULL, query_id VARCHAR, based_at BIGINT,
        parent INTEGER, source_cut OBJECT NOT NULL, layout OBJECT, begins BIGINT, programs LIST,
        CONSTRAINT pk_generations PRIMARY KEY (stream, number),
        CONSTRAINT fk_generations_streams FOREIGN KEY(stream) REFERENCES streams (full_name))"""
)

runs = _table(
    f"""CREATE TABLE runs (
        id SERIAL NOT NULL, stream VARCHAR NOT NULL, generation INTEGER NOT NULL, spark_version VARCHAR NOT NULL,
        started_ms BIGINT NOT NULL, ended_ms BIGINT, "end" VARCHAR, reason TEXT, stop_requested_ms BIGINT,
        settings OBJECT, code VARCHAR, failure VARCHAR, failure_code VARCHAR, rows_digest VARCHAR, program VARCHAR,
        accepted OBJECT, trigger_ms BIGINT,
        CONSTRAINT pk_runs PRIMARY KEY (id), CONSTRAINT fk_runs_generations {_OF_GENERATION})"""
)

batches = _table(
    f"""CREATE TABLE batches (
        stream VARCHAR NOT NULL, generation INTEGER NOT NULL, batch_id BIGINT NOT NULL, timestamp_ms BIGINT NOT NULL,
        input_rows BIGINT NOT NULL, sources LIST NOT NULL, watermark_ms BIGINT, event_time_min_ms BIGINT,
        event_time_max_ms BIGINT, late_rows BIGINT NOT NULL, state_rows BIGINT NOT NULL, output_rows BIGINT,
        durations_ms OBJECT NOT NULL, run INTEGER, state_bytes BIGINT,
        CONSTRAINT pk_batches PRIMARY KEY (stream, generation, batch_id),
        CONSTRAINT fk_batches_generations {_OF_GENERATION})"""
)

log_lines = _table(
    f"""CREATE TABLE log_lines (
        stream VARCHAR NOT NULL, generation INTEGER NOT NULL, log VARCHAR NOT NULL, entry BIGINT NOT NULL,
        text BYTES NOT NULL, CONSTRAINT pk_log_lines PRIMARY KEY (stream, generation, log, entry),
        CONSTRAINT fk_log_lines_generations {_OF_GENERATION})"""
)

replaced_lines = _table(
    f"""CREATE TABLE replaced_lines (
        stream VARCHAR NOT NULL, generation INTEGER NOT NULL, log VARCHAR NOT NULL, entry BIGINT NOT NULL,
        seen_ms BIGINT NOT NULL, text BYTES NOT NULL,
        CONSTRAINT pk_replaced_lines PRIMARY KEY (stream, generation, log, entry, seen_ms),
        CONSTRAINT fk_replaced_lines_generations {_OF_GENERATION})"""
)

sink_marks = _table(
    """CREATE TABLE sink_marks (
        stream VARCHAR NOT NULL, seen_ms BIGINT NOT NULL, written BIGINT NOT NULL, committed BIGINT,
        CONSTRAINT pk_sink_marks PRIMARY KEY (stream, seen_ms),
        CONSTRAINT fk_sink_marks_streams FOREIGN KEY(stream) REFERENCES streams (full_name))"""
)

operations = _table(
    """CREATE TABLE operations (
        id VARCHAR NOT NULL, stream VARCHAR NOT NULL, goal VARCHAR NOT NULL, status VARCHAR NOT NULL,
        started_ms BIGINT NOT NULL, ended_ms BIGINT, summary TEXT NOT NULL,
        CONSTRAINT pk_operations PRIMARY KEY (id),
        CONSTRAINT fk_operations_streams FOREIGN KEY(stream) REFERENCES streams (full_name))"""
)

operation_files = _table(
    """CREATE TABLE operation_files (
        operation VARCHAR NOT NULL, home VARCHAR NOT NULL, stream_id VARCHAR NOT NULL, plan TEXT NOT NULL,
        journal TEXT NOT NULL, CONSTRAINT pk_operation_files PRIMARY KEY (operation))"""
)

# No foreign key: a lease is taken before a new stream is registered.
leases = _table(
    """CREATE TABLE leases (
        stream VARCHAR NOT NULL, fence BIGINT NOT NULL, host VARCHAR, pid BIGINT, pid_started BIGINT, jvm_pid BIGINT,
        jvm_started BIGINT, pid_space VARCHAR, purpose VARCHAR NOT NULL, acquired_ms BIGINT NOT NULL,
        heartbeat_ms BIGINT NOT NULL, CONSTRAINT pk_leases PRIMARY KEY (stream))"""
)

TABLES = (
    versions,
    streams,
    generations,
    runs,
    batches,
    log_lines,
    replaced_lines,
    sink_marks,
    operations,
    operation_files,
    leases,
)
INDEXES = (
    "CREATE INDEX ix_runs_stream_id ON runs (stream, id)",
    "CREATE INDEX ix_operations_stream_started_ms ON operations (stream, started_ms)",
)
