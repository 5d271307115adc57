"""Every operation of the guide on one stream."""

from pathlib import Path

import pytest

from scripts.conformance import expected, streams
from tests.conformance.matrix import IN_PARTS, Area, measured

pytestmark = [pytest.mark.spark, pytest.mark.timeout(1200)]


@IN_PARTS
def test_operations(part: str, tmp_path: Path) -> None:
    names = streams("operations", part)
    assert measured(Area("operations", names, {}), tmp_path) == expected("operations", names)
