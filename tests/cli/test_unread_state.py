"""State files that are not read without ``--verify`` are named, and nothing is called healthy for them."""

from __future__ import annotations

from pathlib import Path

import pytest
from fsspec.core import url_to_fs

from slackwater.core.checkpoint import Depth, UnreadState
from slackwater.diagnose.doctor import Diagnosis, diagnose
from slackwater.facts.collect import facts_of_location
from slackwater.storage.open import open_read_store
from tests.cli.conftest import Slackwater
from tests.support.corpus import corpus_case
from tests.support.homes import STREAM
from tests.support.rebuilds import make_project
from tests.support.sabotage import without_checksums

STATEFUL = "agg_window_append_rocksdb"


def diagnosed(location: str, depth: Depth = "start") -> Diagnosis:
    """The diagnosis of a checkpoint that is not recorded."""
    return diagnose(facts_of_location(open_read_store(location), None, depth))


def unread(diagnosis: Diagnosis) -> list[str]:
    """Why state was not checked."""
    return [one.reason for one in diagnosis.not_checked if one.code == "checkpoint-damaged"]


def test_a_large_checkpoint_without_checksums_is_not_healthy_until_it_is_verified(
    slackwater: Slackwater, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    make_project(tmp_path)
    assert slackwater("doctor").code == 0
    monkeypatch.setattr("slackwater.checkpoint.damage.SMALL", 0)

    done = slackwater("doctor")

    assert done.code == 5
    assert "nothing found, but 1 check could not be made" in done.out
    assert "state files without a checksum" in done.out
    assert "could not be checked without --verify: state/0/0/" in done.out
    assert f"run: slackwater doctor {STREAM} --verify" in done.out
    assert not slackwater("doctor", "--format", "json").document["healthy"]
    assert slackwater("doctor", STREAM, "--verify").code == 0


def test_tables_without_a_checksum_are_named(tmp_path: Path) -> None:
    case = corpus_case("4.3.0", STATEFUL, tmp_path)
    assert unread(diagnosed(str(case / "checkpoint"))) == []
    without_checksums(case / "checkpoint")

    [reason] = unread(diagnosed(str(case / "checkpoint")))

    assert ".sst" in reason
    assert unread(diagnosed(str(case / "checkpoint"), "all")) == []


def test_state_on_a_remote_store_is_named_and_does_not_count_as_missing(tmp_path: Path, s3_location: str) -> None:
    case = corpus_case("4.3.0", STATEFUL, tmp_path)
    without_checksums(case / "checkpoint")
    filesystem, path = url_to_fs(s3_location)
    filesystem.put(f"{case / 'checkpoint'}/", f"{path}/", recursive=True)

    found = diagnosed(s3_location)

    assert unread(found) == []
    assert found.unread is not None
    assert "on a remote store" in found.unread.reason
    assert found.unread.how == f"run: slackwater doctor {s3_location} --verify"
    assert diagnosed(s3_location, "all").unread is None


def test_few_of_many_files_are_named(tmp_path: Path) -> None:
    case = corpus_case("4.3.0", STATEFUL, tmp_path)
    facts = facts_of_location(open_read_store(str(case / "checkpoint")), None)
    many = UnreadState(tuple(f"state/0/{number}/1.delta" for number in range(4000)), 3 << 20)

    [reason] = unread(diagnose(facts._replace(snapshot=facts.snapshot._replace(unread_state=many))))

    assert reason == (
        "4,000 state files without a checksum (3 MiB) could not be checked without --verify: "
        "state/0/0/1.delta, state/0/1/1.delta, state/0/2/1.delta and 3,997 more"
    )
