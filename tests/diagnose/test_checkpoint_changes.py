import shutil
from dataclasses import replace
from pathlib import Path

import pytest

from slackwater.core.checkpoint import CheckpointShape, SourceEvidence
from slackwater.core.program import OperatorShape, Program, QueryProfile, SourceShape, Traced, Window
from slackwater.core.units import is_same_zone, process_zone
from slackwater.core.verdict import Effect
from slackwater.diagnose.checkpoint_changes import checkpoint_changes

FILES = SourceEvidence("file", ("file:///data/landing", "file:///data/landing/day%3D1"))
KEPT = CheckpointShape((FILES,), (("stateStoreSave", ("window", "page")),))
HOUR = Window("tumbling", "ts", 3_600_000, 3_600_000)
AGGREGATE = OperatorShape(
    "aggregate", keys=(Traced("window", "window(ts, 1 hour)"), Traced("page", "page")), windows=(HOUR,)
)
NOW = Program(sources=(SourceShape("json", "/data/landing"),), operators=(AGGREGATE,))
JSON, KAFKA = SourceShape("json", "/data/landing"), SourceShape("kafka", "clicks")


def _reading(location: str) -> Program:
    return replace(NOW, sources=(SourceShape("json", location),))


def _codes(kept: CheckpointShape, now: Program, *, ran: bool = True) -> list[str]:
    return [change.code for change in checkpoint_changes(kept, now, ran=ran).changes]


@pytest.mark.parametrize(
    "location",
    [
        "/data/landing",
        "file:///data/landing/",
        "file:/data/landing",
        "/data/landing/day=*",
        "/data/*/x",
        "/data",
        "/data/landing/day=1/one.json",
        "",
    ],
)
def test_a_query_that_the_checkpoint_fits_has_no_change(location: str) -> None:
    assert _codes(KEPT, _reading(location)) == []


@pytest.mark.parametrize("location", ["/data/landing2", "/data/other", "s3a://data/landing", "/data/other/*"])
def test_files_from_another_place_are_another_source(location: str) -> None:
    (change,) = checkpoint_changes(KEPT, _reading(location), ran=True).changes

    assert (change.code, change.effect, change.acceptable) == ("sources-changed", Effect.NOT_RESTORABLE, False)
    assert location in change.text


def test_the_name_of_a_table_is_no_place_of_files() -> None:
    assert _codes(KEPT, replace(NOW, sources=(SourceShape("my.own.format", "Rows"),))) == []


def test_the_number_of_sources_is_compared_before_their_kinds() -> None:
    two = replace(NOW, sources=(JSON, KAFKA))

    (change,) = checkpoint_changes(KEPT, two, ran=True).changes
    assert (change.before, change.after) == ("1 source", "2 sources")
    assert "2 sources" in change.text


@pytest.mark.parametrize(
    ("kind", "format_now", "changed"),
    [
        ("file", "kafka", True),
        ("kafka", "parquet", True),
        ("kafka", "delta", True),
        ("kafka", "kafka", False),
        ("unknown", "kafka", False),
        ("file", "my.own.format", False),
        ("file", "rate", True),
        ("rate", "rate", False),
        ("socket, memory or rate", "json", True),
        ("socket, memory or rate", "rate", False),
    ],
)
def test_kinds_are_compared_where_both_are_known(kind: str, format_now: str, changed: bool) -> None:
    kept = KEPT._replace(sources=(SourceEvidence(kind),))

    assert _codes(kept, replace(NOW, sources=(SourceShape(format_now),))) == ["sources-changed"] * changed


@pytest.mark.parametrize(
    ("operators", "text"),
    [
        ((), "an aggregation was removed"),
        ((AGGREGATE, OperatorShape("deduplicate")), "a deduplication was added"),
        ((AGGREGATE, AGGREGATE), "an aggregation was added"),
    ],
)
def test_operators_that_were_added_or_removed(operators: tuple[OperatorShape, ...], text: str) -> None:
    (change,) = checkpoint_changes(KEPT, replace(NOW, operators=operators), ran=True).changes

    assert (change.code, change.text, change.acceptable) == ("operators-changed", text, False)


def test_an_operator_of_an_unknown_kind_is_no_evidence() -> None:
    kept = KEPT._replace(operators=(("ofALaterSpark", ()),))

    assert _codes(kept, replace(NOW, operators=())) == []


def test_before_the_first_commit_only_sources_are_compared() -> None:
    kept = CheckpointShape((FILES,))

    assert _codes(kept, NOW, ran=False) == []
    assert _codes(kept, NOW) == ["operators-changed"]
    assert _codes(kept, _reading("/other"), ran=False) == ["sources-changed"]


def test_the_number_of_key_columns_is_in_the_schema_of_the_state() -> None:
    one_more = replace(AGGREGATE, keys=(*AGGREGATE.keys, Traced("user", "user")))

    assert _codes(KEPT, replace(NOW, operators=(one_more,))) == ["keys-changed"]


def test_window_lengths_are_compared_where_an_earlier_version_recorded_them() -> None:
    profile = QueryProfile(("Aggregate",), (600_000,), (1_800_000,), 1_800_000, ("FileSource[landing]",))

    (change,) = checkpoint_changes(KEPT._replace(profile=profile), NOW, ran=True).changes
    assert (change.code, change.text) == ("window-changed", "window length was 30.0 min, is 1.0 h")
    same = replace(profile, windows_ms=(3_600_000,))
    assert _codes(KEPT._replace(profile=same), NOW) == []


LEFT, RIGHT = SourceEvidence("file", ("file:///data/left",)), SourceEvidence("file", ("file:///data/right",))
TOPICS = SourceEvidence("kafka", location="topics a,b")


def test_sources_in_another_order_are_seen_by_what_they_have_read() -> None:
    kept = CheckpointShape((LEFT, RIGHT))
    swapped = Program(sources=(SourceShape("json", "/data/right"), SourceShape("json", "/data/left")))

    (change,) = checkpoint_changes(kept, swapped, ran=True).changes

    assert (change.code, change.effect) == ("sources-reordered", Effect.NOT_RESTORABLE)
    assert (change.before, change.after) == (
        "files in file:///data/left, files in file:///data/right",
        "/data/right, /data/left",
    )


def test_another_source_beside_one_in_place_is_no_other_order() -> None:
    now = Program(sources=(SourceShape("json", "/data/left"), SourceShape("json", "/data/other")))

    assert _codes(CheckpointShape((LEFT, RIGHT)), now) == ["sources-changed"]


@pytest.mark.parametrize(
    ("location", "effect"),
    [
        ("topics a,b", None),
        ("topics a,b,c", Effect.CHANGES_ROWS),
        ("topics a", Effect.NOT_RESTORABLE),
        ("topics c", Effect.NOT_RESTORABLE),
        ("subscribepattern .*", None),
        ("", None),
    ],
)
def test_topics_are_compared_with_those_of_the_offsets(location: str, effect: Effect | None) -> None:
    changes = checkpoint_changes(
        CheckpointShape((TOPICS,)), Program(sources=(SourceShape("kafka", location),)), ran=True
    ).changes

    assert [change.effect for change in changes] == ([] if effect is None else [effect])


# The zone of a process, whether ``TZ`` names it or the machine's file, and zones of several names.


TOKYO = Path("/usr/share/zoneinfo/Asia/Tokyo")
with_zones = pytest.mark.skipif(not TOKYO.exists(), reason="the machine has no files of time zones")


@pytest.mark.parametrize(
    ("value", "zone"), [("Asia/Tokyo", "Asia/Tokyo"), (":Asia/Tokyo", "Asia/Tokyo"), ("", "UTC"), ("JST-9", "JST-9")]
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
