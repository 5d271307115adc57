"""``slackwater offsets``: positions, and what a manual restart would do."""

import json
import shutil
from pathlib import Path

import pytest
from syrupy.assertion import SnapshotAssertion

from slackwater.core.units import iso_text
from tests.cli.conftest import Slackwater
from tests.support.homes import RAN_MS, STATELESS, STREAM, HomeSpec, edit_ledger, make_home


def test_text_has_offsets_on_stdout_and_messages_on_stderr(
    slackwater: Slackwater, tmp_path: Path, snapshot: SnapshotAssertion
) -> None:
    make_home(tmp_path, HomeSpec(source="kafka"))

    done = slackwater("offsets", "per_page")

    assert json.loads(done.out) == {"clicks": {"0": 360, "1": 240}}
    assert done.err == snapshot


def test_json(slackwater: Slackwater, tmp_path: Path, snapshot: SnapshotAssertion) -> None:
    make_home(tmp_path)

    assert slackwater("offsets", "per_page", "--at", "contributing", "--format", "json").document == snapshot


@pytest.mark.parametrize(
    ("at", "expected"),
    [("last-written", {"0": 360, "1": 240}), ("batch:0", {"0": 60, "1": 40}), ("contributing", {"0": 180, "1": 120})],
)
def test_positions(slackwater: Slackwater, tmp_path: Path, at: str, expected: dict[str, int]) -> None:
    make_home(tmp_path, HomeSpec(source="kafka"))

    assert json.loads(slackwater("offsets", "per_page", "--at", at).out) == {"clicks": expected}


def test_where_everything_contributes_kafka_begins_at_its_initial_offsets(
    slackwater: Slackwater, tmp_path: Path
) -> None:
    unbounded: dict[str, object] = {"operators": ["Join"], "retention_ms": None}
    make_home(tmp_path, HomeSpec(source="kafka", layout={**STATELESS, **unbounded}))

    done = slackwater("offsets", "per_page", "--at", "contributing", "--format", "json").document

    assert (done["after_batch"], done["contributing"]) == (-1, 0)
    assert done["sources"][0]["starting_offsets"] == {"clicks": {"0": 0, "1": 0}}
    assert "no new input" in done["manual_restart"]["effects"][0]["text"]


def test_it_reads_the_ledger_where_the_checkpoint_does_not_exist(slackwater: Slackwater, tmp_path: Path) -> None:
    shutil.rmtree(make_home(tmp_path, HomeSpec(source="kafka")) / "streams" / "clicks" / "per_page" / "checkpoints")

    assert json.loads(slackwater("offsets", "per_page").out) == {"clicks": {"0": 360, "1": 240}}


def test_an_unwritten_batch_is_refused(slackwater: Slackwater, tmp_path: Path) -> None:
    make_home(tmp_path, HomeSpec(planned=6))

    done = slackwater("offsets", "per_page", "--at", "batch:6", "--format", "json")

    assert (done.code, done.error["code"]) == (5, "target-unwritten")


def test_files_that_were_read_and_those_to_come(slackwater: Slackwater, tmp_path: Path) -> None:
    make_home(tmp_path)

    source = slackwater("offsets", "per_page", "--at", "batch:3", "--format", "json").document["sources"][0]

    assert (source["log_offset"], source["files_read"]) == (3, 4)
    assert [file["log_offset"] for file in source["files_to_come"]] == [4, 5]


# The first batch of a replay by a time or a position: which one it is, and what is refused.


KAFKA = HomeSpec(source="kafka")
"""Batches 0 to 5, planned a second apart, of 60 and 40 offsets of two partitions each."""


def _time(batch: float) -> str:
    return f"time:{iso_text(RAN_MS + round(batch * 1000))}"


@pytest.mark.parametrize(
    ("spec", "target", "batch"),
    [
        (KAFKA, "time:2000-01-01T00:00Z", 0),
        (KAFKA, _time(3), 3),
        (KAFKA, _time(3.5), 4),
        (KAFKA, "by:P9999D", 0),
        (KAFKA, "shift:-1", 5),
        (KAFKA, "shift:-40", 5),
        (KAFKA, "shift:-61", 4),
        (KAFKA, "shift:-100000", 0),
        (KAFKA, 'offsets:{"0":{"clicks":{"0":0}}}', 0),
        (KAFKA, 'offsets:{"0":{"clicks":{"0":119}}}', 1),
        (KAFKA, 'offsets:{"0":{"clicks":{"0":120}}}', 2),
        (KAFKA, 'offsets:{"0":{"clicks":{"0":350,"1":80}}}', 2),
        (HomeSpec(), "shift:-1", 5),
        (HomeSpec(), "shift:-3", 3),
        (HomeSpec(), 'offsets:{"0":{"logOffset":3}}', 4),
        (HomeSpec(), 'offsets:{"0":{"logOffset":-1}}', 0),
        (HomeSpec(), _time(2), 2),
    ],
)
def test_the_first_batch_is_named(
    spec: HomeSpec, target: str, batch: int, slackwater: Slackwater, tmp_path: Path
) -> None:
    make_home(tmp_path, spec)

    done = slackwater("plan", "replay", STREAM, "--from", _typed(target, tmp_path), "--format", "json")

    assert done.code == 0, done.err
    assert done.document["request"]["target"] == f"batch:{batch}"
    assert done.document["facts"]["target"] == batch - 1
    assert f"batch {batch} is the first; it was planned at {iso_text(RAN_MS + batch * 1000)}" in done.err


@pytest.mark.parametrize(
    ("target", "code", "expected"),
    [
        ("latest", "target", "last-written, earliest"),
        ("shift:+5", "target", "last-written, earliest"),
        (_time(5.5), "target-out-of-range", f"up to {iso_text(RAN_MS + 5000)}, when batch 5 was planned"),
        ("time:2999-01-01T00:00Z", "target-out-of-range", "up to 20"),
        ('offsets:{"0":{"clicks":{"0":360,"1":240}}}', "target-out-of-range", "clicks-0: 360, clicks-1: 240"),
        ('offsets:{"0":{"clicks":{"0":361}}}', "target-out-of-range", "clicks-0: 360, clicks-1: 240"),
        ('offsets:{"0":{"clicks":{"7":1}}}', "target-out-of-range", "clicks-0: 360, clicks-1: 240"),
        ('offsets:{"0":{"logOffset":1}}', "target", '{"topic": {"0": 123}}'),
        ('offsets:{"0":{"clicks":{"0":"119"}}}', "target", '{"topic": {"0": 123}}'),
        ('offsets:{"0":{"clicks":{"0":1e2}}}', "target", '{"topic": {"0": 123}}'),
        ('offsets:{"0":{"clicks":{"0":-1}}}', "target", '{"topic": {"0": 123}}'),
        ('offsets:{"0":{"clicks":{}}}', "target", '{"topic": {"0": 123}}'),
        ('offsets:{"0":{}}', "target", '{"topic": {"0": 123}}'),
        ('offsets:{"1":{"clicks":{"0":1}}}', "target", "0"),
    ],
)
def test_a_target_without_a_batch_is_refused(
    target: str, code: str, expected: str, slackwater: Slackwater, tmp_path: Path
) -> None:
    make_home(tmp_path, KAFKA)

    done = slackwater("plan", "replay", STREAM, "--from", _typed(target, tmp_path), "--format", "json")

    assert (done.code, done.error["code"]) == (2 if code == "target" else 5, code)
    assert expected in f"{done.error.get('expected')} {done.error['hint']}"


@pytest.mark.parametrize(
    "offset", ['"2"', "1e3", "2.0", "true", "null", "[2]", "{}", "1" + "0" * 20, "-2", '{"logOffset":2}', '2,"more":1']
)
def test_what_is_no_offset_of_a_file_source_is_not_the_beginning(
    offset: str, slackwater: Slackwater, tmp_path: Path
) -> None:
    make_home(tmp_path, HomeSpec())

    target = _typed(f'offsets:{{"0":{{"logOffset":{offset}}}}}', tmp_path)
    done = slackwater("plan", "replay", STREAM, "--from", target, "--format", "json")

    assert (done.code, done.error["code"]) == (2, "target")
    assert '{"logOffset": 5}' in done.error["expected"]


def test_an_older_batch_that_is_not_recorded_may_be_the_first(slackwater: Slackwater, tmp_path: Path) -> None:
    home = make_home(tmp_path, KAFKA)
    for batch in (0, 1):
        (home / f"streams/{STREAM}/checkpoints/0001/offsets/{batch}").unlink()
        edit_ledger(home, "DELETE FROM log_lines WHERE log = 'offsets' AND entry = ?", values=(batch,))

    refused = slackwater("plan", "replay", STREAM, "--from", _time(1), "--format", "json")

    assert (refused.code, refused.error["code"]) == (5, "target-out-of-range")
    assert refused.error["expected"] == "batch:3 or later"
    assert slackwater("plan", "replay", STREAM, "--from", _time(4)).code == 0


def _typed(target: str, folder: Path) -> str:
    """Offsets are put into a file."""
    if not target.startswith("offsets:"):
        return target
    file = folder / "positions.json"
    file.write_text(target.removeprefix("offsets:"))
    return f"offsets:{file}"
