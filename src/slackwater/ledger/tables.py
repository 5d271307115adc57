"""The ledger's tables and column types; ``schema`` builds them, a test compares both.

Times are epoch milliseconds. Streams are identified by full name, ``pipeline/stream``.
"""

from __future__ import annotations

import json
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
        "The ledger is not as Slackwater wrote it",
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
        return json.dumps(value) if self.is_json and value is not None else value


@dataclass(frozen=True, eq=False)
class Table:
    name: str
    key: tuple[str, ...]
    columns: Mapping[str, Kind]


versions = Table("slackwater_version", ("version_num",), {"version_num": Kind.STRING})
"""The schema's version, in one row. On PostgreSQL other programs in the database may have such a table, too."""

streams = Table(
    "streams",
    ("full_name",),
    {
        "full_name": Kind.STRING,
        "pipeline": Kind.STRING,
        "name": Kind.STRING,
        "sink": Kind.OBJECT,
        "output_mode": Kind.STRING,
        "pipeline_file": Kind.STRING,
        "current_generation": Kind.INTEGER,
        "id": Kind.STRING,
        "session": Kind.LIST,
    },
)

generations = Table(
    "generations",
    ("stream", "number"),
    {
        "stream": Kind.STRING,
        "number": Kind.INTEGER,
        "location": Kind.STRING,
        "query_id": Kind.STRING,
        "based_at": Kind.INTEGER,
        "parent": Kind.INTEGER,
        "source_cut": Kind.OBJECT,
        "layout": Kind.OBJECT,
        "begins": Kind.INTEGER,
        "programs": Kind.LIST,
    },
)

runs = Table(
    "runs",
    ("id",),
    {
        "id": Kind.INTEGER,
        "stream": Kind.STRING,
        "generation": Kind.INTEGER,
        "spark_version": Kind.STRING,
        "started_ms": Kind.INTEGER,
        "ended_ms": Kind.INTEGER,
        "end": Kind.STRING,
        "reason": Kind.STRING,
        "stop_requested_ms": Kind.INTEGER,
        "settings": Kind.OBJECT,
        "code": Kind.STRING,
        "failure": Kind.STRING,
        "failure_code": Kind.STRING,
        "rows_digest": Kind.STRING,
        "program": Kind.STRING,
        "accepted": Kind.OBJECT,
        "trigger_ms": Kind.INTEGER,
    },
)

batches = Table(
    "batches",
    ("stream", "generation", "batch_id"),
    {
        "stream": Kind.STRING,
        "generation": Kind.INTEGER,
        "batch_id": Kind.INTEGER,
        "timestamp_ms": Kind.INTEGER,
        "input_rows": Kind.INTEGER,
        "sources": Kind.LIST,
        "watermark_ms": Kind.INTEGER,
        "event_time_min_ms": Kind.INTEGER,
        "event_time_max_ms": Kind.INTEGER,
        "late_rows": Kind.INTEGER,
        "state_rows": Kind.INTEGER,
        "output_rows": Kind.INTEGER,
        "durations_ms": Kind.OBJECT,
        "run": Kind.INTEGER,
        "state_bytes": Kind.INTEGER,
    },
)

_ENTRY_OF_A_LOG = {"stream": Kind.STRING, "generation": Kind.INTEGER, "log": Kind.STRING, "entry": Kind.INTEGER}

log_lines = Table("log_lines", tuple(_ENTRY_OF_A_LOG), {**_ENTRY_OF_A_LOG, "text": Kind.BYTES})

replaced_lines = Table(
    "replaced_lines",
    (*_ENTRY_OF_A_LOG, "seen_ms"),
    {**_ENTRY_OF_A_LOG, "seen_ms": Kind.INTEGER, "text": Kind.BYTES},
)

sink_marks = Table(
    "sink_marks",
    ("stream", "seen_ms"),
    {"stream": Kind.STRING, "seen_ms": Kind.INTEGER, "written": Kind.INTEGER, "committed": Kind.INTEGER},
)

operations = Table(
    "operations",
    ("id",),
    {
        "id": Kind.STRING,
        "stream": Kind.STRING,
        "goal": Kind.STRING,
        "status": Kind.STRING,
        "started_ms": Kind.INTEGER,
        "ended_ms": Kind.INTEGER,
        "summary": Kind.STRING,
    },
)

operation_files = Table(
    "operation_files",
    ("operation",),
    dict.fromkeys(("operation", "home", "stream_id", "plan", "journal"), Kind.STRING),
)

leases = Table(
    "leases",
    ("stream",),
    {
        "stream": Kind.STRING,
        "fence": Kind.INTEGER,
        "host": Kind.STRING,
        "pid": Kind.INTEGER,
        "pid_started": Kind.INTEGER,
        "jvm_pid": Kind.INTEGER,
        "jvm_started": Kind.INTEGER,
        "pid_space": Kind.STRING,
        "purpose": Kind.STRING,
        "acquired_ms": Kind.INTEGER,
        "heartbeat_ms": Kind.INTEGER,
    },
)
