"""Outputs that others write to as well: a swap, a cut and their undo leave rows of others, or are refused."""

import json
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import psycopg
import pyarrow as pa
import pyarrow.parquet
import pytest
from deltalake import write_deltalake

from tests.restart.scenario import CONF
from tests.restart.small import SmallWorkspace, error_code, printed_commands
from tests.sinks import delta_logs, iceberg_tables
from tests.support.postgres_server import PostgresServer

pytestmark = [pytest.mark.spark, pytest.mark.timeout(1200)]
HEADER = """
import slackwater as sw

pipeline = sw.Pipeline("web")


def numbers(spark):
    rows = spark.readStream.schema("ts timestamp, page string, n long").option("maxFilesPerTrigger", 1).json("landing")
    return rows.selectExpr("n AS b")
"""
STREAM = """

@pipeline.stream(sink=sw.sinks.SINK)
def NAME(spark):
    return numbers(spark)
"""
SINKS = {
    "files": 'files("parquet", "files")',
    "delta": 'delta("delta")',
    "iceberg": 'iceberg("./iceberg")',
    "postgres": 'postgres("URL", "numbers", create=True, keep_batch_id=True)',
}
LATER = """

@pipeline.stream(sink=sw.sinks.delta("later"))
def later(spark, context):
    return spark.readStream.format("delta").load(context.output("delta"))
"""
ALL = tuple(SINKS)
Numbers = Counter[int]


class Shared(SmallWorkspace):
    """A workspace with a stream into each kind of output; each file of the input is one number."""

    def __init__(self, folder: Path, url: str = "", kinds: Sequence[str] = ALL, more: str = "") -> None:
        streams = [STREAM.replace("NAME", kind).replace("SINK", SINKS[kind]) for kind in kinds]
        super().__init__(folder, "".join([HEADER, *streams, more]).replace("URL", url))
        self._url = url
        self.numbers = 0

    def arrive(self, count: int) -> None:
        for number in range(self.numbers, self.numbers + count):
            self.add(f"{number:03}", [number], n=number)
        self.numbers += count
        self.caught_up()

    def sql(self, statement: str) -> list[Any]:
        with psycopg.connect(self._url, autocommit=True) as connection:
            found = connection.execute(statement.encode())
            return found.fetchall() if found.description else []

    def write_as_another(self, kind: str, number: int) -> None:
        table = self.folder / kind
        rows = pa.table({"b": pa.array([number], pa.int64())})
        if kind == "files":
            pyarrow.parquet.write_table(rows, table / f"other{number}.parquet")
        elif kind == "delta":
            write_deltalake(table, rows, mode="append")
        elif kind == "iceberg":
            iceberg_tables.commit(table, [iceberg_tables.data_file(table, f"other{number}.parquet", [number])])
        else:
            self.sql("ALTER TABLE numbers ALTER _slackwater_batch DROP NOT NULL")
            self.sql(f"INSERT INTO numbers (b) VALUES ({number})")

    def found(self, kind: str) -> Numbers:
        """The rows that readers of an output see; of files those that a reader without the manifest sees."""
        table = self.folder / kind
        if kind == "postgres":
            return Counter(row[0] for row in self.sql("SELECT b FROM numbers"))
        if kind == "files":
            names = sorted(str(path) for path in table.glob("*.parquet"))
        else:
            names = list(delta_logs.live_files(table) if kind != "iceberg" else iceberg_tables.live_files(table))
        return Counter(
            value
            for name in names
            for value in pyarrow.parquet.ParquetFile(table / name).read().column("b").to_pylist()
        )

    def expected(self, *others: int) -> Numbers:
        """All numbers once, with those of others."""
        return Counter([*range(self.numbers), *others])

    def plan(self, goal: str, stream: str, *arguments: str) -> dict[str, Any]:
        self.slackwater("plan", goal, stream, "--out", "plan.json", "--force", *arguments, *CONF)
        plan: dict[str, Any] = json.loads((self.folder / "plan.json").read_text())
        return plan

    def apply(self, *arguments: str, code: int = 0) -> Any:
        return self.slackwater("apply", "plan.json", "--yes", *arguments, *CONF, code=code)

    def swap(self, stream: str, *arguments: str) -> str:
        """All batches are processed again into a new output; the operation's id."""
        made = self.plan("replay", stream, "--from", "batch:0", "--output", "swap", *arguments)
        self.apply()
        return str(made["id"])

    def undo(self, operation: str, code: int = 0) -> Any:
        return self.slackwater("undo", operation, "--yes", code=code)


@pytest.fixture
def shared(tmp_path: Path, postgres: PostgresServer) -> Shared:
    return Shared(tmp_path / "w", postgres.url(postgres.new_database()))


def test_rows_of_others_stay_or_the_swap_is_refused_with_their_number(shared: Shared) -> None:
    shared.arrive(2)
    for kind in ALL:
        shared.write_as_another(kind, -1)
    for kind in ("files", "delta", "postgres"):
        operation = shared.swap(kind)
        assert shared.found(kind) == shared.expected(-1), kind
        if kind == "files":
            shared.write_as_another(kind, -2)
            shared.undo(operation)
            assert shared.found(kind) == shared.expected(-1, -2), kind

    shared.plan("replay", "iceberg", "--from", "batch:0", "--output", "swap")
    refused = shared.apply(code=5)
    assert error_code(refused) == "rows-of-others"
    assert "1 row" in refused.stderr
    assert shared.found("iceberg") == shared.expected(-1)
    (command,) = printed_commands(refused.stderr)
    shared.slackwater(*command, *CONF)
    assert shared.found("iceberg") == shared.expected()


@pytest.mark.thorough
def test_whoever_writes_while_the_output_is_built_or_after_the_swap_keeps_the_rows(shared: Shared) -> None:
    shared.arrive(2)
    for kind in ("delta", "iceberg", "postgres"):
        shared.plan("replay", kind, "--from", "batch:0", "--output", "swap")
        shared.write_as_another(kind, -1)
        assert error_code(shared.apply(code=5)) == "moved-others", kind
        assert shared.found(kind) == shared.expected(-1)

    for kind in ("delta", "postgres"):
        operation = shared.swap(kind)
        shared.write_as_another(kind, -2)
        (stream,) = shared.folder.rglob(f"web/{kind}/stream.json")
        before = stream.read_bytes()
        assert error_code(shared.undo(operation, code=5)) == "restore-conflict", kind
        assert stream.read_bytes() == before, "refused before the generation is switched back"
        assert shared.found(kind) == shared.expected(-1, -2)


@pytest.mark.thorough
def test_a_delta_table_and_its_reader_are_swapped_again(tmp_path: Path) -> None:
    shared = Shared(tmp_path / "w", kinds=["delta"], more=LATER)
    shared.arrive(2)
    shared.swap("delta", "--downstream")
    shared.arrive(1)
    operation = shared.swap("delta", "--downstream")
    assert shared.found("delta") == shared.found("later") == shared.expected()
    shared.undo(operation)
    assert shared.found("delta") == shared.found("later") == shared.expected()
    shared.plan("replay", "delta", "--from", "batch:1", "--output", "swap", "--downstream")
    shared.apply()
    shared.arrive(1)
    assert shared.found("delta") == shared.found("later") == shared.expected()


@pytest.mark.thorough
def test_swapped_again_cut_and_undone_in_turn(shared: Shared) -> None:
    shared.arrive(2)
    first = {kind: shared.swap(kind) for kind in ALL}
    shared.arrive(1)
    second, third = ({kind: shared.swap(kind) for kind in ALL} for _ in range(2))
    for kind in ALL:
        shared.plan("rebuild", kind, "--at", "batch:0")
        cut = str(json.loads((shared.folder / "plan.json").read_text())["id"])
        shared.apply()
        assert shared.found(kind) == Counter([0]), kind
        for operation in (cut, third[kind], second[kind]):
            shared.undo(operation)
            assert shared.found(kind) == shared.expected(), kind
        assert error_code(shared.undo(first[kind], code=5)) == "undo-late"
        shared.plan("reset", kind, "--output", "clear")
        shared.slackwater("apply", "plan.json", "--confirm", kind, *CONF)
        assert not shared.found(kind), kind
    shared.arrive(1)
    assert all(shared.found(kind) == shared.expected() for kind in ALL)
