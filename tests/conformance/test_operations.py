"""Every operation of the guide on one stream."""

from __future__ import annotations

from pathlib import Path

import pytest

from scripts.conformance import expected, streams
from tests.conformance.matrix import Area, measured

pytestmark = [pytest.mark.spark, pytest.mark.timeout(1200)]


def test_operations(tmp_path: Path) -> None:
    assert measured(Area("operations", streams("operations"), {}), tmp_path) == expected("operations")
