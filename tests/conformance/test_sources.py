"""Every option of the guide's file source."""

from __future__ import annotations

from pathlib import Path

import pytest

from scripts.conformance import expected, streams
from tests.conformance.matrix import Area, measured

pytestmark = [pytest.mark.spark, pytest.mark.timeout(1200)]


def test_sources(tmp_path: Path) -> None:
    assert measured(Area("sources", streams("sources"), {}), tmp_path) == expected("sources")
