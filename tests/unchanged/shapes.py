"""The applications as data: how each is started, which queries it has, and how their rows are read."""

import os
import shutil
import subprocess
import sys
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from deltalake import DeltaTable
from pyiceberg.table import StaticTable

from slackwater import connectors
from slackwater.connectors.cache import jars_of
from slackwater.core.errors import EnvironmentMissing
from slackwater.core.reference import reference_of
from slackwater.runtime.session import spark_version
from tests.support.outputs import row_text
from tests.support.standalone_cluster import JOB, SPARK_HOME
from tests.unchanged.scene import APPLICATIONS, Scene, listed_rows

Rows = Counter[str]
WORKERS_IMPORT = (sys.executable,)
"""A Python whose working directory its JVM and the workers share: they import a package from there."""
SUBMITTED = (str(SPARK_HOME / "bin" / "spark-submit"), "--master", "local[2]", "--py-files", "libs.zip")


def of_delta(table: str) -> Callable[[Path], Rows]:
    def rows(data: Path) -> Rows:
        found: list[dict[str, Any]] = DeltaTable(data / table).to_pyarrow_table().to_pylist()
        return Counter(map(row_text, found))

    return rows


def of_iceberg(table: str) -> Callable[[Path], Rows]:
    def rows(data: Path) -> Rows:
        folder = data / table / "metadata"
        version = (folder / "version-hint.text").read_text().strip()
        found = StaticTable.from_metadata(f"{folder}/v{version}.metadata.json").scan().to_arrow().to_pylist()
        return Counter(map(row_text, found))

    return rows


def of_files(output: str) -> Callable[[Path], Rows]:
    def rows(data: Path) -> Rows:
        return listed_rows(data / output)

    return rows


def by_batch(data: Path) -> Rows:
    """With the number of the batch, which names the folder."""
    files = (data / "batches").glob("*/part-*.json")
    return Counter(f"{file.parent.name}: {line}" for file in files for line in file.read_text().splitlines())


@dataclass(frozen=True)
class Query:
    """One query of an application. ``sink`` is what ``adopt`` is given, where a path shows the output."""

    name: str
    rows: Callable[[Path], Rows]
    checkpoint: str = "checkpoint"
    sink: str | None = None


@dataclass(frozen=True)
class Shape:
    """One application: its name, its queries, and what it is given. ``launcher`` is what starts Python for it."""

    name: str
    queries: tuple[Query, ...]
    words: Callable[[str, bool], tuple[str, ...]]
    environment: Callable[[Path, bool], Mapping[str, str]] = field(default=lambda _data, _end: {})
    connector: str | None = None
    launcher: tuple[str, ...] = ()
    module: str | None = None


def _arguments(data: str, end: bool) -> tuple[str, ...]:
    return (data, *(["--end"] if end else []))


def _table(kind: str) -> Callable[[str, bool], tuple[str, ...]]:
    return lambda data, _end: (data, kind)


def _folder(data: str, _end: bool) -> tuple[str, ...]:
    return (data,)


def _none(_data: str, _end: bool) -> tuple[str, ...]:
    return ()


def _variables(data: Path, end: bool) -> Mapping[str, str]:
    return {"CLICKS_DATA": str(data), "CLICKS_END": "yes" if end else ""}


ONE = Shape("one_query.py", (Query("out", of_files("out"), sink="out"),), _arguments)
# The uninterrupted run is recorded too, and its stream has the name ``out``.
WATCHED = Shape("watched_query.py", tuple(replace(one, name="data_out") for one in ONE.queries), _arguments)
SEVERAL = Shape(
    "several_queries.py",
    tuple(Query(name, of_files(name), f"checkpoints/{name}", name) for name in ("counts", "seen")),
    _arguments,
)
RESTARTED = Shape("restarted.py", (Query("counted", by_batch),), _arguments)
TO_TABLE = Shape(
    "to_table.py", (Query("lake.shop.counts", of_iceberg("lake/shop/counts")),), _arguments, connector="iceberg"
)
TO_ICEBERG_TABLE = Shape(
    "to_table.py",
    (Query("counted", of_iceberg("lake/shop/counts"), sink="lake/shop/counts"),),
    _arguments,
    connector="iceberg",
)
MERGING = Shape("merging.py", (Query("merged", of_delta("table")),), _none, _variables, "delta")
ADDING_ONCE = Shape("adding_once.py", (Query("added", of_delta("table")),), _none, _variables, "delta")
TO_DELTA = Shape(
    "to_path.py", (Query("counts", of_delta("shop/counts"), sink="shop/counts"),), _table("delta"), connector="delta"
)
TO_DELTA_TABLE = Shape(
    "to_path.py",
    (Query("counts", of_delta("shop/counts"), sink="shop/counts"),),
    _table("delta:counts"),
    connector="delta",
)
TO_ICEBERG = Shape(
    "to_path.py",
    (Query("counts", of_iceberg("shop/counts"), sink="shop/counts"),),
    _table("iceberg"),
    connector="iceberg",
)
PACKAGE = Shape(
    "shop",
    (
        Query("batches", by_batch, "checkpoints/batches"),
        Query("pages", of_files("pages"), "checkpoints/pages", "pages"),
    ),
    _none,
    lambda data, _end: {"SHOP_DATA": str(data)},
    launcher=WORKERS_IMPORT,
    module="shop.job",
)
PACKED = Shape("packed.py", (Query("pages", of_files("pages"), sink="pages"),), _folder, launcher=SUBMITTED)
PACKED_COUNTS = Shape(
    "packed_counts.py", (Query("counts", of_files("counts"), sink="counts"),), _folder, launcher=SUBMITTED
)
TO_FILE_TABLE = Shape("to_file_table.py", (Query("counts", of_files("shop/counts"), sink="shop/counts"),), _folder)


def runs_here(shape: Shape) -> bool:
    """Whether this Spark has the shape's connector: Delta and Iceberg have none for some."""
    try:
        return shape.connector is None or bool(jars_of(shape.connector, spark_version()))
    except EnvironmentMissing:
        return False


class Shaped(Scene):
    def __init__(self, folder: Path, shape: Shape) -> None:
        jars = connectors.resolve([shape.connector], spark_version()) if shape.connector else []
        super().__init__(folder, shape.name, {"CLICKS_JARS": ",".join(map(str, jars))})
        self.shape = shape
        if shape.launcher == SUBMITTED:
            shutil.make_archive(str(folder / "libs"), "zip", APPLICATIONS, "shop")
            (folder / "slackwater-job.py").write_text(JOB)

    @property
    def code(self) -> str:
        return self.shape.module or self.program.name

    def given(self, data: str, *, end: bool) -> tuple[str, ...]:
        """The arguments for this data; the environment is set for it."""
        self.environment = {**self.environment, **self.shape.environment(self.folder / data, end)}
        return self.shape.words(data, end)

    def finish(self, data: str) -> None:
        """As plain Python, to the end of the input."""
        given = self.given(data, end=True)
        if not self.shape.launcher:
            self.plain(*given)
            return
        ended = self._launch([*self._started(), *given])
        assert ended.returncode == 0, ended.stdout

    def kill(self, data: str) -> None:
        """Run by plain Python, and killed with kill -9 once some batches of the last query are committed."""
        given = self.given(data, end=False)
        self.kill_once_committed([*self._started(), *given], f"{data}/{self.shape.queries[-1].checkpoint}")

    def type(self, *words: str, exit_code: int | None = 0) -> str:
        """A command of ``slackwater``, started as the application is."""
        if not self.shape.launcher:
            return super().type(*words, exit_code=exit_code)
        tool = ["slackwater-job.py"] if self.shape.launcher == SUBMITTED else ["-m", "slackwater"]
        ended = self._launch([*self.shape.launcher, *tool, *words])
        assert exit_code in (None, ended.returncode), ended.stdout
        return ended.stdout

    def reference(self, data: str) -> str:
        return reference_of(self.code, self.given(data, end=True))

    def rows_of(self, data: str) -> dict[str, Rows]:
        return {query.name: query.rows(self.folder / data) for query in self.shape.queries}

    def _started(self) -> list[str]:
        program = ["-m", self.shape.module] if self.shape.module else [self.program.name]
        return [*(self.shape.launcher or (sys.executable,)), *program]

    def _launch(self, words: list[str]) -> subprocess.CompletedProcess[str]:
        environment = {**os.environ, "PYSPARK_PYTHON": sys.executable, **self.environment}
        return subprocess.run(
            words, cwd=self.folder, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
            check=False,
        )  # fmt: skip
