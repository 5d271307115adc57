"""``slackwater audit`` before it starts anything: mistakes, and the targets that are to be confirmed."""

from pathlib import Path

import pytest

from tests.cli.conftest import Slackwater

PIPELINE = """
import slackwater as sw

pipeline = sw.Pipeline("shop")
pipeline.stream(sink=sw.sinks.foreach(print), name="orders")(lambda spark: None)


@pipeline.audit_reader("orders")
def written(spark):
    return []
"""


@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        ((), "unconfirmed"),
        (("--yes", "--drill", "often"), "usage"),
        (("--yes", "--drill", "task", "--drill", "line"), "audit-drill"),
        (("--yes", "--drill", "twice"), "audit-drill"),
        (("--yes", "--set", "topsecret"), "set-format"),
        (("--yes", "--folder", "."), "audit-folder"),
    ],
    ids=" ".join,
)
def test_what_is_refused_before_anything_is_started(
    slackwater: Slackwater, arguments: tuple[str, ...], code: str, tmp_path: Path
) -> None:
    (tmp_path / "shop.py").write_text(PIPELINE)
    done = slackwater("audit", "shop.py", *arguments)

    assert done.code == 2
    assert f"error {code}:" in done.err
    if code == "unconfirmed":
        assert "  orders: kind=foreach" in done.err
