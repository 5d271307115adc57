"""``slackwater ledger``: what is recorded."""

from __future__ import annotations

from pathlib import Path

import pytest
from syrupy.assertion import SnapshotAssertion

from tests.cli.conftest import Slackwater
from tests.support.homes import HomeSpec, make_home


def test_all_streams_as_text(slackwater: Slackwater, tmp_path: Path, snapshot: SnapshotAssertion) -> None:
    make_home(tmp_path, HomeSpec(run="failed"))

    assert slackwater("ledger").out == snapshot


def test_one_stream_as_json(slackwater: Slackwater, tmp_path: Path, snapshot: SnapshotAssertion) -> None:
    make_home(tmp_path)

    assert slackwater("ledger", "per_page", "--batches", "4..5", "--format", "json").document == snapshot


def test_a_batch_without_progress_shows_its_recorded_range(slackwater: Slackwater, tmp_path: Path) -> None:
    make_home(tmp_path, HomeSpec(planned=6))

    batches = slackwater("ledger", "per_page", "--batches", "6", "--format", "json").document["streams"][0]["batches"]

    assert [batch["batch"] for batch in batches] == [6]
    assert batches[0]["progress"] is None
    assert batches[0]["sources"] == [{"source": "0", "start": '{"logOffset":5}', "end": '{"logOffset":6}'}]


@pytest.mark.parametrize(
    ("wanted", "expected"),
    [("3..4", [3, 4]), ("4..", [4, 5]), ("..1", [0, 1]), ("2", [2]), ("..", [0, 1, 2, 3, 4, 5]), ("9..", [])],
)
def test_ranges(slackwater: Slackwater, tmp_path: Path, wanted: str, expected: list[int]) -> None:
    make_home(tmp_path)

    document = slackwater("ledger", "per_page", "--batches", wanted, "--format", "json").document

    assert [batch["batch"] for batch in document["streams"][0]["batches"]] == expected
    assert document["streams"][0]["batches_recorded"] == 6


def test_batches_of_all_streams_are_not_shown(slackwater: Slackwater) -> None:
    assert slackwater("ledger", "--batches", "1..2").code == 2


def test_a_home_without_a_ledger(slackwater: Slackwater) -> None:
    done = slackwater("ledger", "--format", "json")

    assert (done.code, done.error["code"]) == (4, "ledger-missing")
