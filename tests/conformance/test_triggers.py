"""Every trigger of the guide, run as the example says, without ``--until-caught-up``."""

import shutil
from pathlib import Path

import pytest

from scripts.conformance import expected
from tests.conformance.matrix import Area, before_commit, compared, rebuilt_from

pytestmark = [pytest.mark.spark, pytest.mark.timeout(1200)]
TRIGGERS = ("default_trigger", "processing_time", "once", "available_now")
"""The triggers of micro-batches."""


def test_triggers(tmp_path: Path) -> None:
    area = Area("triggers", TRIGGERS, {}, holds_at=before_commit, held={"once": 0})
    whole, killed = area.lay_down(tmp_path / "whole"), area.lay_down(tmp_path / "killed")
    whole.run()
    rows = {name: whole.rows(name) for name in TRIGGERS}
    killed.kill_in_batch()
    shutil.copytree(killed.folder, tmp_path / "saved", symlinks=True)

    killed.run_until(lambda: all(killed.rows(name).total() >= rows[name].total() for name in TRIGGERS))

    after_kill = {name: compared(killed.rows(name), rows[name]) for name in TRIGGERS}
    refused = rebuilt_from(tmp_path / "saved", killed)
    found = {name: (after_kill[name], refused[name] or compared(killed.rows(name), rows[name])) for name in TRIGGERS}
    assert found == {name: outcome for name, outcome in expected("triggers").items() if name in TRIGGERS}
