"""Workspaces whose output is a Delta table, read by its log and its Parquet files without the code under test.

The checks serve tables of Iceberg, too.
"""

from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pyarrow.parquet

from tests.restart.scenario import CONF
from tests.restart.small import HEADER, SOURCE, SmallWorkspace, error_code
from tests.sinks import delta_logs
from tests.support.outputs import Rows

APPEND = f"""
@pipeline.stream(sink=sw.sinks.delta("out"))
def per_page(spark):
    marked = {SOURCE}.withWatermark("ts", "10 minutes")
    return marked.groupBy(F.window("ts", "30 minutes"), "page").agg(F.sum("n").alias("n"))
"""
UPDATE = f"""
@pipeline.stream(sink=sw.sinks.delta("out", keys=["start", "page"]), output_mode="update")
def per_page(spark):
    marked = {SOURCE}.withWatermark("ts", "10 minutes")
    summed = marked.groupBy(F.window("ts", "30 minutes"), "page").agg(F.sum("n").alias("n"))
    return summed.select(F.col("window.start").alias("start"), "page", "n")
"""
COMPLETE = f"""
@pipeline.stream(sink=sw.sinks.delta("out"), output_mode="complete")
def per_page(spark):
    marked = {SOURCE}.withWatermark("ts", "10 minutes")
    return marked.groupBy(F.window("ts", "30 minutes"), "page").agg(F.sum("n").alias("n"))
"""
BATCHES = 6
WINDOW_MINUTES = 30
CLOSED = range(BATCHES - 1)
"""The windows that are behind the last watermark, by number."""


TWO_STAGES = f"""
@pipeline.stream(sink=sw.sinks.delta("first"), partition_by="page")
def first(spark):
    return {SOURCE}.withWatermark("ts", "10 minutes")


@pipeline.stream(sink=sw.sinks.delta("out"))
def per_page(spark, context):
    marked = spark.readStream.format("delta").load(context.output("first")).withWatermark("ts", "10 minutes")
    return marked.groupBy(F.window("ts", "30 minutes"), "page").agg(F.sum("n").alias("n"))
"""


def page_of(batch: int) -> str:
    """All rows of a batch are of one page."""
    return "ab"[batch % 2]


def minutes_of(batch: int) -> range:
    """The minutes with a row: each batch closes the window of the one before and has late rows of it."""
    return range(batch * WINDOW_MINUTES - min(batch, 5), batch * WINDOW_MINUTES + 20)


def sums() -> Counter[tuple[int, str]]:
    """The rows of each window, by its number, and page."""
    return Counter(
        (minute // WINDOW_MINUTES, page_of(batch)) for batch in range(BATCHES) for minute in minutes_of(batch)
    )


class DeltaWorkspace(SmallWorkspace):
    """A workspace with a file of rows for each batch and one Delta table."""

    def __init__(self, folder: Path, body: str) -> None:
        super().__init__(folder, HEADER + body)
        for batch in range(BATCHES):
            self.add(f"{batch:02}", minutes_of(batch), page=page_of(batch))

    def rows(self, first: int = 0, last: int | None = None) -> Rows:
        """The rows of the table's newest version; batches cannot be distinguished."""
        if (first, last) != (0, None):
            raise NotImplementedError
        return Counter(repr(sorted((column, str(value)) for column, value in row.items())) for row in self.values())

    def written(self) -> int:
        return max(delta_logs.transactions(self.output).values(), default=-1)

    def values(self, table: str = "out") -> list[dict[str, Any]]:
        """The rows of a table's newest version, without those of its partition columns."""
        found: list[dict[str, Any]] = []
        for name in self.live_files(self.folder / table):
            found += pyarrow.parquet.ParquetFile(self.folder / table / name).read().to_pylist()
        return found

    def live_files(self, table: Path) -> Iterable[str]:
        return delta_logs.live_files(table)

    def window_sums(self) -> list[tuple[int, str, int]]:
        """Number of the window, page and sum of each row, sorted: a row written twice is there twice."""
        found = []
        for row in self.values():
            start = row["window"]["start"] if "window" in row else row["start"]
            found.append(((start.hour * 60 + start.minute) // WINDOW_MINUTES, row["page"], row["n"]))
        return sorted(found)


def closed_sums() -> list[tuple[int, str, int]]:
    """What append mode has written at the end."""
    return sorted((window, page, n) for (window, page), n in sums().items() if window in CLOSED)


def all_sums() -> list[tuple[int, str, int]]:
    """What update and complete mode have written at the end."""
    return sorted((window, page, n) for (window, page), n in sums().items())


def status_written(workspace: DeltaWorkspace) -> int:
    written: int = workspace.status()["marks"]["written"]
    return written


def check_cut_and_undone(workspace: DeltaWorkspace, batch: int) -> None:
    """A rebuild at an older batch takes the later ones out of the table, and undo puts them back."""
    whole, last = workspace.rows(), workspace.written()
    operation = workspace.rebuild("--at", f"batch:{batch}")["id"]
    assert workspace.written() == batch
    workspace.slackwater("undo", operation, "--yes")
    assert workspace.rows() == whole
    assert workspace.written() == last


def check_append_finished(workspace: DeltaWorkspace, batch: int) -> None:
    """What was killed in append mode is finished, cut back to ``batch``, undone, cut again and finished again."""
    workspace.caught_up()
    assert workspace.window_sums() == closed_sums()
    whole, last = workspace.rows(), workspace.written()
    assert status_written(workspace) == last == BATCHES

    check_cut_and_undone(workspace, batch)

    workspace.rebuild("--at", f"batch:{batch}")
    assert workspace.rows() < whole
    workspace.caught_up()
    assert workspace.window_sums() == closed_sums()
    assert workspace.written() == last


def check_replaced_rows(workspace: DeltaWorkspace, body: str) -> None:
    """What was killed in update or complete mode is rebuilt and finished, cut back to batch 1, and undone."""
    plan = workspace.rebuild()
    workspace.caught_up()
    assert (plan["facts"]["contributing"] == 0) is (body == COMPLETE)
    assert workspace.window_sums() == all_sums()

    check_cut_and_undone(workspace, 1)


def check_second_stage(workspace: DeltaWorkspace) -> None:
    """A stream that reads the table of another one has every row once, and its input cannot be cut any more."""
    workspace.caught_up()

    assert workspace.window_sums() == closed_sums()
    assert len(workspace.values("first")) == sum(n for _, _, n in all_sums())

    refused = workspace.slackwater("plan", "rebuild", "first", "--at", "batch:1", "--out", "plan.json", code=5)
    assert error_code(refused) == "cut-was-read"


def check_both_stages_replaced(workspace: DeltaWorkspace) -> None:
    """Both tables are built again and replaced, by one plan; a cut of what was read by version is refused."""
    cut = ("plan", "rebuild", "first", "--at", "batch:1", "--downstream", "--out", "plan.json")
    assert error_code(workspace.slackwater(*cut, code=5)) == "cut-was-read-by-version"

    swap = ("plan", "replay", "first", "--from", "batch:2", "--output", "swap", "--downstream", "--out", "plan.json")
    workspace.slackwater(*swap, *CONF)
    workspace.slackwater("apply", "plan.json", "--yes", *CONF)
    workspace.caught_up()
    assert workspace.window_sums() == closed_sums()
    assert len(workspace.values("first")) == sum(n for _, _, n in all_sums())
