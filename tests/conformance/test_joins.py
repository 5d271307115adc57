"""Every join of the guide: of a stream with a table, and of streams."""

from __future__ import annotations

from pathlib import Path

import pytest

from scripts.conformance import expected, streams
from tests.conformance.matrix import Area, measured

pytestmark = [pytest.mark.spark, pytest.mark.timeout(1200)]


def test_joins(tmp_path: Path) -> None:
    assert measured(Area("joins", streams("joins"), {}), tmp_path) == expected("joins")
