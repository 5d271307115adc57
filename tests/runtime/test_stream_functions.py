"""A stream's function is the user's own code: whatever it raises becomes one message. No Spark is needed for that."""

from pathlib import Path
from typing import Any, cast

import pytest

from slackwater.core.errors import PipelineError
from slackwater.runtime.loader import load
from slackwater.runtime.run.query import build
from tests.support.errors import raises_code

PIPELINE = """import sys
import slackwater as sw
p = sw.Pipeline("x")
@p.stream(sink=sw.sinks.files("json", "out"))
def a(spark):
    {body}
"""


@pytest.mark.parametrize(
    "body",
    [
        "sys.exit(0)",
        "sys.exit(3)",
        "raise SystemExit",
        "exit()",
        "raise GeneratorExit",
        "raise type('Odd', (BaseException,), {})",
        "raise ValueError('one\\ntwo')",
        "spark.readStream",
    ],
)
def test_whatever_it_raises_is_a_pipeline_error(tmp_path: Path, body: str) -> None:
    file = tmp_path / "p.py"
    file.write_text(PIPELINE.replace("{body}", body.replace("\n", "\\n")))
    loaded = load(str(file))

    with raises_code(PipelineError, "stream-fails", exit_code=2, where=f"{file}:6"):
        build(cast("Any", None), loaded, loaded.pipeline.streams["a"], tmp_path)


def test_an_interrupt_stays_one(tmp_path: Path) -> None:
    file = tmp_path / "p.py"
    file.write_text(PIPELINE.replace("{body}", "raise KeyboardInterrupt"))
    loaded = load(str(file))

    with pytest.raises(KeyboardInterrupt):
        build(cast("Any", None), loaded, loaded.pipeline.streams["a"], tmp_path)
