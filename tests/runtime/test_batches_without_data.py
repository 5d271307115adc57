"""Spark runs a batch without data for exactly the queries whose profile says so."""

import json
from pathlib import Path

import pytest

from tests.support.warm_jvm import output_of

PROGRAM = Path(__file__).with_name("programs") / "batches_without_data.py"
SILENT = {
    "a limit (append)",
    "applyInPandasWithState, no timeout (append)",
    "join of one watermark (append)",
    "join without bound (append)",
    "no state (append)",
}


@pytest.mark.spark
@pytest.mark.thorough
@pytest.mark.timeout(900)
def test_the_batches_of_each_query_are_those_that_spark_runs(tmp_path: Path) -> None:
    printed = json.loads(output_of(PROGRAM, tmp_path))

    assert printed["expected"] == {case: number == 1 for case, number in printed["ran"].items()}
    assert {case for case, number in printed["ran"].items() if case.endswith("(append)") and not number} >= SILENT
