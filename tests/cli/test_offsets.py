"""``slackwater offsets``: positions, and what a manual restart would do."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest
from syrupy.assertion import SnapshotAssertion

from tests.cli.conftest import Slackwater
from tests.support.homes import STATELESS, HomeSpec, make_home


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


def test_an_unreadable_sink_is_an_error_here(slackwater: Slackwater, tmp_path: Path) -> None:
    make_home(tmp_path)
    (tmp_path / "out" / "_spark_metadata" / "5").write_text("torn")

    done = slackwater("offsets", "per_page", "--format", "json")

    assert (done.code, done.error["code"]) == (3, "sink-unreadable")
