"""The pending no-data batch, by output mode and operators."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from slackwater.checkpoint.logs import no_data_entry, read_logs
from slackwater.core.program import QueryProfile
from slackwater.storage.local import LocalStore
from tests.support.homes import make_home, watermark_ms


@pytest.mark.parametrize(
    ("mode", "operators", "pending"),
    [
        ("append", ("Aggregate",), True),
        ("update", ("Aggregate",), True),
        ("append", ("Join",), True),
        ("append", (), False),
        ("append", None, True),
        ("complete", None, False),
    ],
)
def test_by_mode_and_operators(tmp_path: Path, mode: str, operators: tuple[str, ...] | None, *, pending: bool) -> None:
    home = make_home(tmp_path)
    logs = read_logs(LocalStore(home / "streams/clicks/per_page/checkpoints/0001"))
    profile = None if operators is None else QueryProfile(operators, (600_000,), (), None, ("files",))
    if profile is not None:
        silent = replace(profile, asks_for_batches=False)
        assert no_data_entry(logs, silent, mode, enabled=True, now_ms=1) is None

    entry = no_data_entry(logs, profile, mode, enabled=True, now_ms=1)

    assert (entry is not None) == pending
    if entry is not None:
        assert entry.metadata is not None
        assert entry.metadata.batch_watermark_ms == watermark_ms(6)
    assert no_data_entry(logs, profile, mode, enabled=False, now_ms=1) is None
