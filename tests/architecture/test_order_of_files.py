"""Side by side, the tests that take longest start first."""

from __future__ import annotations

from pathlib import Path

from tests.conftest import LONGEST_FIRST


def test_the_files_exist(root: Path) -> None:
    assert [name for name in LONGEST_FIRST if not (root / "tests" / name).is_file()] == []
