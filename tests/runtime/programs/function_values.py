"""function_values.py FOLDER: the programs of all ways of ``function_ways`` as JSON. Starts no query."""

import importlib
import json
import os
import sys
from collections.abc import Callable
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

from pyspark import cloudpickle
from pyspark.sql import SparkSession

from slackwater.runtime.application.queries import RecognisedSink
from slackwater.runtime.program.code_reach import reach_of
from slackwater.runtime.program.program import program_of, with_output_functions
from tests.runtime.function_ways import HARMLESS, HEAD, OTHER, RATE, STREAM, UNCOMPARED, WAYS

FOLDER = Path(sys.argv[1])
spark = SparkSession.builder.master("local[1]").config("spark.ui.enabled", "false").getOrCreate()
sys.dont_write_bytecode = True
sys.path.insert(0, str(FOLDER))
by_value: Callable[[ModuleType], None] = cloudpickle.register_pickle_by_value


def program(text: str, rate: int) -> dict[str, Any]:
    os.environ["RATE"] = str(rate)
    FOLDER.joinpath("other.py").write_text(OTHER)
    text = HEAD + text.replace("RATE", RATE)
    FOLDER.joinpath("way.py").write_text(text + ("" if "def stream(" in text else STREAM))
    for name in ("other", "way"):
        sys.modules.pop(name, None)
    importlib.invalidate_caches()
    module = importlib.import_module("way")
    by_value(module)
    frame = module.stream(spark)
    reach = reach_of(module.stream)
    found = program_of(frame, "complete", reach)
    if hasattr(module, "written_by"):
        start: Any = SimpleNamespace(function=None)
        sink = RecognisedSink(lambda: start, {"kind": module.written_by(spark)})
        found = with_output_functions(found, sink, reach, spark)
    return found.as_json()


ways = {name: [program(text, 2), program(text, 2), program(text, 3)] for name, (text, _) in WAYS.items()}
harmless = {name: [program(text, 2) for text in texts] for name, texts in HARMLESS.items()}
harmless |= {name: [program(text, 2), program(text, 3)] for name, text in UNCOMPARED.items()}
FOLDER.joinpath("programs.json").write_text(json.dumps({"ways": ways, "harmless": harmless}))
