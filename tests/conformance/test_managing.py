"""Managing and monitoring queries: several in one session, a listener of the user's own, spark.streams."""

from pathlib import Path

import pytest

from scripts.conformance import expected
from tests.conformance.matrix import Area, measured

pytestmark = [pytest.mark.spark, pytest.mark.timeout(1200)]
STREAMS = ("several_queries", "listener", "watching", "metrics")
FILES = 6


def test_managing(tmp_path: Path) -> None:
    found = measured(Area("managing", STREAMS, {}, more=["hourly"]), tmp_path)

    assert found.pop("hourly") == found["several_queries"]
    assert found == {name: outcome for name, outcome in expected("managing").items() if name in STREAMS}
    output = tmp_path / "whole" / "out"
    events = (output / "listener.events").read_text().splitlines()
    assert [one for one in events if one.startswith("batch managing/listener")] == [
        f"batch managing/listener {batch} 27" for batch in range(FILES)
    ]
    assert events.count("ended well") >= 1
    seen = [line.split(" ", 3) for line in (output / "watching.seen").read_text().splitlines()]
    assert {name for name, *_ in seen} >= {f"managing/{name}" for name in STREAMS}
    assert {(active, rest.endswith("None")) for _, active, _, rest in seen if active == "True"} == {("True", True)}
