"""Builds the query of each edit, and of its base, in one session of Spark, and prints the verdicts as JSON by name.

python -m tests.runtime.verdict.verdicts FOLDER [--applications] [NAME ...]

With ``--applications`` the queries are those of applications with the same code, which start them themselves.
"""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path

from pyspark.sql import SparkSession

from slackwater.core.program import Program
from slackwater.diagnose.program_changes import verdict
from slackwater.runtime.loader import load
from slackwater.runtime.run.query import BuiltStream
from tests.runtime.verdict.applications import application
from tests.runtime.verdict.edits import add_input, clear, edits, lay_down

FILE = Path("pipeline.py")


def _program(spark: SparkSession, *, applications: bool) -> Program:
    for name in [name for name in sys.modules if name in ("rules", "lib") or name.startswith("lib.")]:
        del sys.modules[name]
    if applications:
        FILE.write_text(application(FILE.read_text()))
    definition = next(iter(load(str(FILE)).pipeline.streams.values()))
    found = BuiltStream(definition, definition.function(spark), frozenset()).program
    assert found is not None
    return found


def main(folder: Path, names: list[str], *, applications: bool) -> None:
    os.chdir(folder)
    spark = SparkSession.builder.master("local[1]").config("spark.ui.enabled", "false").getOrCreate()
    found: dict[str, object] = {}
    for edit in edits():
        if names and edit.name not in names:
            continue
        clear(folder)
        lay_down(folder, edit.base)
        add_input(folder, 0, 1)
        kept = Program.from_json(json.loads(json.dumps(_program(spark, applications=applications).as_json())))
        edit.write(folder)
        result = verdict(kept, _program(spark, applications=applications))
        found[edit.name] = {
            "effect": result.effect.word,
            "starts": result.starts,
            "codes": [change.code for change in result.changes],
            "texts": [change.text for change in result.changes],
            "goal": result.goal,
        }
    sys.stdout.write(json.dumps(found))


if __name__ == "__main__":
    named = [word for word in sys.argv[2:] if word != "--applications"]
    main(Path(sys.argv[1]).resolve(), named, applications="--applications" in sys.argv)
