"""The batch without data that Spark owes after a restart, by output mode and operators."""

from __future__ import annotations

from pathlib import Path

import pytest

from slackwater.checkpoint.logs import read_logs
from slackwater.checkpoint.owed import owed_entry
from slackwater.model.profile import QueryProfile
from slackwater.storage.local import LocalStore
from tests.support.homes import make_home, watermark_ms


@pytest.mark.parametrize(
    ("mode", "operators", "owed"),
    [
        ("append", ("Aggregate",), True),
        ("update", ("Aggregate",), True),
        ("complete", ("Aggregate",), False),
        ("complete", ("Aggregate", "Deduplicate"), True),
        ("append", ("GlobalLimit",), False),
        ("append", (), False),
        ("append", None, True),
        ("complete", None, False),
    ],
)
def test_by_mode_and_operators(tmp_path: Path, mode: str, operators: tuple[str, ...] | None, *, owed: bool) -> None:
    home = make_home(tmp_path)
    logs = read_logs(LocalStore(home / "streams/clicks/per_page/checkpoints/0001"))
    profile = None if operators is None else QueryProfile(operators, (600_000,), (), None, ("files",))

    entry = owed_entry(logs, profile, mode, enabled=True, now_ms=1)

    assert (entry is not None) == owed
    if entry is not None:
        assert entry.metadata is not None
        assert entry.metadata.batch_watermark_ms == watermark_ms(6)
    assert owed_entry(logs, profile, mode, enabled=False, now_ms=1) is None
