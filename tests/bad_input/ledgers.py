"""Ledgers: files that are none, and rows that Slackwater did not write."""

from collections.abc import Iterator

from tests.bad_input.case import BINARY, CHECKPOINT, DEEP, LEDGER, Case, cut, env, fifo, forbid, remove, sql, write

WAL, SHM = f"{LEDGER}-wal", f"{LEDGER}-shm"


ROWS_OF_THE_PAST = ("DELETE FROM batches", "DELETE FROM runs", "DELETE FROM log_lines")


def _no_database(command: str, *given: str | bytes) -> Case:
    return Case(command, 3, "ledger-unreadable", remove(WAL), remove(SHM), *(write(LEDGER, data) for data in given))


def _rows(command: str, *statements: str) -> Case:
    return Case(command, 3, "ledger-unreadable", sql(*statements))


def _each_row(command: str, *statements: str) -> Iterator[Case]:
    return (_rows(command, statement) for statement in statements)


def _lease(fence: int) -> str:
    return f"INSERT INTO leases VALUES ('clicks/per_page', {fence}, NULL, NULL, NULL, NULL, NULL, NULL, 'run', 0, 0)"


def _view(name: str) -> str:
    endless = "WITH RECURSIVE r(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM r)"
    return f"CREATE VIEW {name} AS {endless} SELECT n AS full_name, 'x' AS version_num FROM r"


CASES = (
    _no_database("status", "this is no database, whatever its name says"),
    _no_database("status", BINARY),
    _no_database("ledger", BINARY),
    _no_database("offsets per_page", BINARY),
    _no_database("stop per_page", BINARY),
    _no_database("plan rebuild per_page", BINARY),
    _no_database("apply plan.json --yes", BINARY),
    _no_database("inspect per_page", BINARY),
    _no_database("status", b"SQLite format 3\0" + BINARY),
    Case("status", 3, "ledger-unreadable", remove(WAL), remove(SHM), cut(LEDGER, 5000)),
    Case("ledger per_page", 3, "ledger-unreadable", remove(WAL), remove(SHM), cut(LEDGER, 30_000)),
    Case("status", 0, None, remove(WAL), remove(SHM), write(LEDGER)),
    Case("ledger", 4, "ledger-missing", remove(WAL), remove(SHM), write(LEDGER)),
    Case("status", 9, "ledger-unreachable", remove(WAL), remove(SHM), fifo(LEDGER)),
    Case("status", 9, "ledger-unreachable", forbid(LEDGER)),
    Case("status", 3, "ledger-version", sql("UPDATE slackwater_version SET version_num = '9999'")),
    Case("status", 3, "ledger-version", sql("UPDATE slackwater_version SET version_num = 'x'")),
    Case("status", 3, "ledger-version", sql("UPDATE slackwater_version SET version_num = ''")),
    # Rows that are no JSON, or JSON of another kind
    *_each_row("status", "UPDATE streams SET sink = 'x'", "UPDATE streams SET sink = ''"),
    *_each_row("status", "UPDATE streams SET sink = '[]'", "UPDATE streams SET sink = '5'"),
    *_each_row("status", "UPDATE streams SET sink = 'null'", "UPDATE streams SET sink = x'ff00'"),
    *_each_row("status", 'UPDATE streams SET sink = \'{"kind": "files"}\''),
    *_each_row("status", 'UPDATE streams SET sink = \'{"kind": "files", "path": 5}\''),
    *_each_row("status", f"UPDATE streams SET sink = '{DEEP}'"),
    _rows("ledger", "UPDATE streams SET sink = '{'"),
    _rows("stop per_page", "UPDATE streams SET sink = '{'"),
    _rows("offsets per_page", "UPDATE streams SET sink = '{'"),
    _rows("plan rebuild per_page", "UPDATE streams SET sink = '{'"),
    _rows("apply plan.json --yes", "UPDATE streams SET sink = '{'"),
    _rows("inspect per_page", "UPDATE streams SET sink = '{'"),
    *_each_row("status", "UPDATE generations SET layout = 'x'", "UPDATE generations SET layout = '[]'"),
    *_each_row("status", "UPDATE generations SET layout = '{\"x\": 1}'"),
    *_each_row("status", "UPDATE generations SET layout = '{\"operators\": 5}'"),
    *_each_row("status", "UPDATE generations SET layout = '{\"operators\": [1]}'"),
    *_each_row("status", 'UPDATE generations SET layout = \'{"operators": ["Aggregate"]}\''),
    _rows("offsets per_page", "UPDATE generations SET layout = json_set(layout, '$.retention_ms', 'x')"),
    _rows("plan rebuild per_page", "UPDATE generations SET layout = json_set(layout, '$.windows_ms', 5)"),
    *_each_row("status", "UPDATE generations SET source_cut = 'x'", "UPDATE generations SET source_cut = '[1]'"),
    *_each_row("status", "UPDATE batches SET sources = 'x'", "UPDATE batches SET sources = '{}'"),
    *_each_row("status", "UPDATE batches SET sources = '[5]'", "UPDATE batches SET sources = '[{}]'"),
    *_each_row("ledger per_page", "UPDATE batches SET sources = '[{\"nope\": 1}]'"),
    *_each_row("ledger per_page", "UPDATE batches SET durations_ms = 'x'", "UPDATE batches SET durations_ms = '[]'"),
    _rows("offsets per_page", "UPDATE batches SET durations_ms = 'x'"),
    _rows("ledger", "UPDATE runs SET settings = 'x'"),
    # Columns of other types: SQLite keeps anything anywhere
    *_each_row("status", "UPDATE batches SET watermark_ms = 'x'", "UPDATE batches SET watermark_ms = 1.5"),
    *_each_row("status", "UPDATE batches SET input_rows = x'ff'"),
    *_each_row("ledger per_page", "UPDATE batches SET timestamp_ms = 'noon'", "UPDATE runs SET started_ms = 'noon'"),
    _rows("ledger", "UPDATE runs SET ended_ms = 'noon'"),
    *_each_row("status", "UPDATE streams SET pipeline_file = x'ff'", "UPDATE streams SET current_generation = 'x'"),
    *_each_row("status", "UPDATE generations SET location = x'ff'"),
    *_each_row("offsets per_page", "UPDATE log_lines SET text = 5", "UPDATE log_lines SET text = 'a string'"),
    _rows("ledger per_page", "UPDATE batches SET batch_id = 'x' WHERE batch_id = 5"),
    # Lines that are damaged are kept as they are
    Case("ledger per_page", 0, None, sql("UPDATE log_lines SET text = x'ff00' WHERE log = 'offsets'")),
    # Numbers that cannot grow by one, and texts that no file system takes
    _rows("run clicks.py", _lease(2**63 - 1)),
    _rows("status", _lease(2**63 - 1)),
    _rows("plan rebuild per_page", _lease(-1)),
    _rows("status", "UPDATE generations SET location = 'a' || char(0)"),
    _rows("status", """UPDATE streams SET sink = '{"kind": "files", "path": "a\\u0000"}'"""),
    _rows("status", """UPDATE streams SET sink = '{"kind": "files", "path": "\\ud800"}'"""),
    # A view in the place of a table: its rows have no end
    *(_rows("status", f"DROP TABLE {table}", _view(table)) for table in ("streams", "batches", "slackwater_version")),
    _rows("run clicks.py", "DROP TABLE streams", _view("streams")),
    Case("status", 2, "ledger-url", env(SLACKWATER_LEDGER="d/" * 400 + "ledger.db"), says="at most 500 bytes"),
    # Tables and columns that are missing
    *_each_row("status", "DROP TABLE streams", "DROP TABLE batches", "DROP TABLE sink_marks"),
    *_each_row("status", "ALTER TABLE streams DROP COLUMN output_mode"),
    _rows("ledger", "ALTER TABLE streams DROP COLUMN output_mode"),
    _rows("ledger per_page", "DROP TABLE log_lines"),
    _rows("offsets per_page", "DROP TABLE log_lines"),
    _rows("plan rebuild per_page", "DROP TABLE streams"),
    _rows("apply plan.json --yes", "DROP TABLE operations"),
    _rows("stop per_page", "DROP TABLE leases"),
    _rows("run clicks.py", "DROP TABLE generations"),
    # Rows that are missing
    Case("status", 4, "generation-unknown", sql("UPDATE streams SET current_generation = 9")),
    # Checkpoint and sink alone decide whether a start is safe, and they agree: "clean" is right without these rows. The
    # next start copies the ranges again. What only the ledger had, which code made a batch and when its events were,
    # is missed by a rebuild, which then reads all batches and says so.
    *(
        Case("status", 0, None, sql(*rows), says="clean: checkpoint and sink agree")
        for rows in (*((row,) for row in ROWS_OF_THE_PAST), ROWS_OF_THE_PAST)
    ),
    Case(
        "plan rebuild per_page",
        0,
        None,
        sql(*ROWS_OF_THE_PAST),
        env(JAVA_HOME="/nonexistent"),
        creates=(LEDGER,),
        says="replay batches 0..5",
    ),
    Case(
        "plan rebuild per_page",
        0,
        None,
        sql("DELETE FROM runs"),
        env(JAVA_HOME="/nonexistent"),
        says="all batches count",
    ),
    # The sink's newest batch is one of which nothing is left: not even the ranges that the ledger had can be rebuilt.
    Case("status", 5, None, sql(*ROWS_OF_THE_PAST), remove(CHECKPOINT), says="of which this stream has no record"),
)
