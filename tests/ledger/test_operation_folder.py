"""An operation's folder, from which a lost ledger is restored: values that no database can hold are left out."""

import json
from pathlib import Path

import pytest

from slackwater.ledger.home import JOURNAL, PLAN_FILE, read_operation

PLAN = '{"goal": "rebuild"}'


@pytest.mark.parametrize(
    ("plan", "journal"),
    [
        (PLAN, '{"at_ms": Infinity}'),
        (PLAN, '{"at_ms": NaN}'),
        (PLAN, '{"at_ms": 9223372036854775808}'),
        (PLAN, "[" * 100_000),
        ("[" * 100_000, ""),
        (PLAN, '{"at_ms": 1, "end": "\\ud800"}'),
        ('{"goal": "\\ud800"}', '{"at_ms": 1}'),
    ],
    ids=range(7),
)
def test_an_operation_that_cannot_be_recorded_is_none(tmp_path: Path, plan: str, journal: str) -> None:
    """Restoring the ledger goes on without the operation."""
    (tmp_path / PLAN_FILE).write_text(plan)
    (tmp_path / JOURNAL).write_text(f"{journal}\n")

    assert read_operation("p/s", tmp_path) is None


def test_an_operation_is_read(tmp_path: Path) -> None:
    """The status is that of the journal's last line."""
    (tmp_path / PLAN_FILE).write_text(PLAN)
    (tmp_path / JOURNAL).write_text(json.dumps({"at_ms": 5, "state": "undoing"}) + "\n")

    found = read_operation("p/s", tmp_path)

    assert found is not None
    assert (found.status, found.started_ms, found.goal) == ("undoing", 5, "rebuild")
