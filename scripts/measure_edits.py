"""What plain Spark does with each edit: continues the old checkpoint with the new code, and counts the rows.

    python -m scripts.measure_edits [NAME ...]

The rows of batches after the old code's last one are compared with those that the new code alone writes in the same
batches. Writes ``measured.toml``, with a line for each edit.
"""

from __future__ import annotations

import os
import shutil
import sys
import tempfile
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

from pyspark import cloudpickle
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession

from slackwater.runtime.loader import load
from tests.runtime.verdict.edits import ALL, FIRST, HERE, Edit, add_input, clear, edits, lay_down

Rows = dict[int, Counter[str]]
MEASURED = HERE / "measured.toml"
QUIET = {"spark.sql.shuffle.partitions": "2", "spark.ui.enabled": "false", "spark.sql.session.timeZone": "UTC"}


class Plain:
    """One session of plain PySpark, in a folder of its own that all edits use: logs of sources have its path."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.work = folder / "work"
        self.work.mkdir()
        os.chdir(self.work)
        builder = SparkSession.builder.master("local[2]")
        for key, value in QUIET.items():
            builder = builder.config(key, value)
        self.spark = builder.getOrCreate()
        self.spark.sparkContext.setLogLevel("OFF")
        self._bases: dict[str, tuple[Path, Rows]] = {}

    def run(self, checkpoint: str) -> Rows:
        """The rows by batch that the pipeline file, as it is now, writes until it has caught up."""
        for name in [name for name in sys.modules if name in ("rules", "lib") or name.startswith("lib.")]:
            del sys.modules[name]
        loaded = load(str(self.work / "pipeline.py"))
        # Python workers cannot import what only the driver has loaded.
        register: Callable[[ModuleType], None] = cloudpickle.register_pickle_by_value
        register(loaded.module)
        definition = next(iter(loaded.pipeline.streams.values()))
        rows: Rows = {}

        def collect(frame: DataFrame, batch: int) -> None:
            rows[batch] = Counter(frame.toJSON().collect())

        frame = definition.function(self.spark)
        writer: Any = frame.writeStream.outputMode(definition.output_mode).foreachBatch(collect)
        query = writer.option("checkpointLocation", str(self.work / checkpoint)).trigger(availableNow=True).start()
        query.awaitTermination()
        return rows

    def after_base(self, base: str) -> Rows:
        """Lay down what there is after the old code has read its part; its rows."""
        if base not in self._bases:
            clear(self.work)
            lay_down(self.work, base)
            add_input(self.work, 0, FIRST)
            rows = self.run("checkpoint")
            kept = self.folder / base
            shutil.copytree(self.work, kept)
            self._bases[base] = kept, rows
        kept, rows = self._bases[base]
        clear(self.work)
        shutil.copytree(kept, self.work, dirs_exist_ok=True)
        return rows

    def alone(self, edit: Edit) -> Rows:
        """The rows of the new code that never had another one's state."""
        clear(self.work)
        lay_down(self.work, edit.base)
        edit.write(self.work)
        add_input(self.work, 0, FIRST)
        rows = self.run("checkpoint")
        add_input(self.work, FIRST, ALL)
        return rows | self.run("checkpoint")

    def measure(self, edit: Edit) -> str:
        """What Spark does with an edit, in a few words."""
        before = self.after_base(edit.base)
        edit.write(self.work)
        add_input(self.work, FIRST, ALL)
        try:
            found = self.run("checkpoint")
        except PySparkException as error:
            return f"refuses: {_reason(error).replace(str(self.work), '...')}"
        alone = self.alone(edit)
        last = max(before)
        expected: Counter[str] = sum((rows for batch, rows in alone.items() if batch > last), Counter())
        there: Counter[str] = sum(found.values(), Counter())
        missing, extra = (expected - there).total(), (there - expected).total()
        if not missing and not extra:
            return "the rows of the new code"
        return f"other rows: {missing} of {expected.total()} missing, {extra} not expected"


def _reason(error: Exception) -> str:
    """The innermost Java exception, else the first line, without ids and long texts."""
    lines = [" ".join(line.split()) for line in str(error).splitlines() if line.strip()]
    causes = [line.removeprefix("Caused by: ") for line in lines if line.startswith("Caused by: ")]
    chosen = causes[-1] if causes else lines[0].partition("terminated with exception: ")[2] or lines[0]
    return chosen.partition(" SQLSTATE")[0][:160].replace('"', "'").replace("\\", "/")


def main(names: list[str]) -> None:
    """Measure all edits, or those with these names."""
    with tempfile.TemporaryDirectory() as folder:
        plain = Plain(Path(folder).resolve())
        for edit in edits():
            if edit.name not in names if names else edit.verdict == "harmless":
                continue
            line = f'"{edit.name}" = "{plain.measure(edit)}"'
            sys.stdout.write(line + "\n")
            sys.stdout.flush()


if __name__ == "__main__":
    main(sys.argv[1:])
