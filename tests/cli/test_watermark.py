"""The watermark of the next batch: the rule, and that ``status`` and ``offsets`` follow it."""

from __future__ import annotations

from pathlib import Path

import pytest

from slackwater.cli.common.stream_status import next_watermark_ms
from slackwater.core.checkpoint import CommitEntry, OffsetEntry, OffsetMetadata
from tests.cli.conftest import Slackwater
from tests.support.homes import HomeSpec, make_home


def planned(watermark_ms: int) -> OffsetEntry:
    return OffsetEntry(1, OffsetMetadata(watermark_ms, 0, {}), ())


@pytest.mark.parametrize(
    ("entry", "before", "commit", "expected"),
    [
        (planned(500), planned(100), CommitEntry(1, 900), 500),
        (None, planned(100), CommitEntry(1, 900), 900),
        (None, planned(900), CommitEntry(1, 0), 900),
        (None, planned(900), None, 900),
        (None, None, None, 0),
    ],
)
def test_the_rule(
    entry: OffsetEntry | None, before: OffsetEntry | None, commit: CommitEntry | None, expected: int
) -> None:
    assert next_watermark_ms(entry, before, commit) == expected


@pytest.mark.parametrize("spec", [HomeSpec(), HomeSpec(planned=6, state=5)], ids=["committed", "planned"])
def test_status_and_offsets_show_the_same(slackwater: Slackwater, tmp_path: Path, spec: HomeSpec) -> None:
    make_home(tmp_path, spec)

    status = slackwater("status", "per_page").out
    offsets = slackwater("offsets", "per_page").err

    shown = next(line.split(maxsplit=1)[1] for line in status.splitlines() if line.startswith("  watermark"))
    assert shown in offsets
    assert shown != "-"
