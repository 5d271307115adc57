"""The zone of a process, whether ``TZ`` names it or the machine's file, and zones of several names."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from slackwater.core.units import is_same_zone, process_zone

TOKYO = Path("/usr/share/zoneinfo/Asia/Tokyo")
with_zones = pytest.mark.skipif(not TOKYO.exists(), reason="the machine has no files of time zones")


@pytest.mark.parametrize(
    ("value", "zone"),
    [("Asia/Tokyo", "Asia/Tokyo"), (":Asia/Tokyo", "Asia/Tokyo"), ("", "UTC"), ("JST-9", "JST-9")],
)
def test_tz_names_the_zone(value: str, zone: str) -> None:
    assert process_zone(value) == zone


@with_zones
def test_a_path_is_the_zone_of_its_file() -> None:
    assert process_zone(str(TOKYO)) == "Asia/Tokyo"


@with_zones
@pytest.mark.parametrize("copied", [False, True])
def test_without_tz_it_is_the_zone_of_the_machine(copied: bool, tmp_path: Path) -> None:
    local_time = tmp_path / "localtime"
    if copied:
        shutil.copyfile(TOKYO, local_time)
    else:
        local_time.symlink_to(TOKYO)
    assert is_same_zone(process_zone(None, local_time), "Asia/Tokyo")


def test_a_machine_without_a_zone_has_utc(tmp_path: Path) -> None:
    assert process_zone(None, tmp_path / "localtime") == "UTC"


def test_a_file_of_no_known_zone_is_named_with_its_digest(tmp_path: Path) -> None:
    (tmp_path / "localtime").write_text("of no zone")
    zone = process_zone(None, tmp_path / "localtime")
    assert zone.startswith(str(tmp_path / "localtime "))
    assert not is_same_zone(zone, "UTC")


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [
        ("UTC", "Etc/UTC", True),
        ("UTC", "Zulu", True),
        ("Asia/Calcutta", "Asia/Kolkata", True),
        ("UTC", "Asia/Tokyo", False),
        ("Europe/London", "UTC", False),
        ("JST-9", "JST-9", True),
        ("JST-9", "Asia/Tokyo", False),
        ("../etc/passwd", "UTC", False),
    ],
)
def test_zones_of_several_names(one: str, other: str, same: bool) -> None:
    assert is_same_zone(one, other) is same
