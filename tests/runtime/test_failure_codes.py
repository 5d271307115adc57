"""Each failure code is derived from the exceptions of the Spark at hand: real queries fail in each of these ways."""

import json
from pathlib import Path

import pytest

from slackwater.runtime.session import spark_version
from tests.support.warm_jvm import output_of

pytestmark = pytest.mark.spark

PROGRAM = Path(__file__).with_name("programs") / "failing.py"
EXPECTED = {
    "function": ("permanent", "user-function"),
    "batch-function": ("permanent", "user-function"),
    "batch-unreachable": ("transient", "user-function"),
    "state-value": ("permanent", "state-schema"),
    "state-key": ("permanent", "state-schema"),
    "operator-removed": ("permanent", "operator-changed"),
    "source-added": ("permanent", "source-added"),
    "source-removed": ("permanent", "source-removed"),
    "source-type": ("permanent", "source-changed"),
    "source-folder": ("permanent", "source-changed"),
    "socket": ("transient", "store-unreachable"),
    "expression": ("permanent", "unknown"),
    "query-refused": ("permanent", "query-refused"),
}


def test_codes_and_places(tmp_path: Path) -> None:
    found = json.loads(output_of(PROGRAM, tmp_path))

    added = found.pop("operator-added")
    expected = dict(EXPECTED)
    if spark_version().startswith("3."):
        # Spark 3.5 writes no operator metadata, so it does not notice that the operator was removed.
        assert found.pop("operator-removed") is None
        del expected["operator-removed"]
    codes = {
        name: (failure or {}).get("code") and (failure["kind"], failure["code"]) for name, failure in found.items()
    }
    assert codes == expected, json.dumps(found, indent=1)
    # Before Spark 4.3 an added operator and lost state have the same error.
    assert (added["kind"], added["code"] in ("state-missing", "operator-changed")) == ("permanent", True), added

    lines = PROGRAM.read_text().splitlines()
    for name in ("function", "batch-function", "batch-unreachable"):
        [number] = [number for number, line in enumerate(lines, 1) if line.endswith(f"# place of {name}")]
        assert found[name]["place"] == f"{PROGRAM}:{number}", found[name]
    assert found["batch-unreachable"]["reason"] == "RuntimeError: the write failed"
    assert found["source-added"]["place"] is None
