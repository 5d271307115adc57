"""program_cases.py FOLDER: the programs of all edits as JSON, and how long reading them took. Starts no query."""

import json
import sys
from dataclasses import asdict
from pathlib import Path
from typing import Any

from py4j.protocol import Py4JError
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from slackwater.runtime.program.code_reach import reach_of
from slackwater.runtime.program.program import plan_facts, program_of
from tests.runtime.program_cases import cases
from tests.runtime.program_queries import Build, Sources

ZONE = "spark.sql.session.timeZone"
sources = Sources(
    SparkSession.builder.master("local[1]").config("spark.ui.enabled", "false").config(ZONE, "UTC").getOrCreate(),
    Path(sys.argv[1]),
)
facts: list[Any] = []


def program(build: Build, mode: str) -> dict[str, Any]:
    reach = reach_of(build)
    frame = build(sources)
    found = program_of(frame, mode, reach).as_json()
    facts.append((asdict(plan_facts(frame)), found))
    return found


found: dict[str, Any] = {}
for case in cases():
    try:
        before = program(case.before, case.mode)
        if case.conf:
            sources.spark.conf.set(ZONE, case.conf)
        found[case.name] = [before, program(case.after, case.mode)]
    except (PySparkException, Py4JError, ValueError, LookupError) as error:
        found[case.name] = f"{type(error).__name__}: {error}"
    sources.spark.conf.set(ZONE, "UTC")
Path(sys.argv[1], "programs.json").write_text(json.dumps({"programs": found}))
Path(sys.argv[1], "facts.json").write_text(json.dumps(facts))
