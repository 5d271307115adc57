"""State files that are not read without ``--verify`` are named, and nothing is called healthy for them."""

import struct
import zlib
from pathlib import Path

import pytest
from fsspec.core import url_to_fs

from slackwater.core.checkpoint import Depth, UnreadState
from slackwater.diagnose.doctor import Diagnosis, diagnose
from slackwater.facts.collect import facts_of_location
from slackwater.storage.open import open_read_store
from tests.cli.conftest import Slackwater
from tests.support.corpus import corpus_case
from tests.support.homes import EMPTY_DELTA, STREAM
from tests.support.rebuilds import Project, make_project
from tests.support.sabotage import without_checksums

STATEFUL = "agg_window_append_rocksdb"


def diagnosed(location: str, depth: Depth = "start") -> Diagnosis:
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


# One damaged byte in a state file that is neither the newest nor the oldest: Spark would read it and fail.


PIECE = 512


@pytest.fixture
def project(tmp_path: Path) -> Project:
    project = make_project(tmp_path)
    state = project.checkpoint(1) / "state" / "0" / "0"
    for file in state.glob("*.delta"):
        # Hadoop's side file, as each write to a local disk leaves it.
        data = file.read_bytes()
        sums = [zlib.crc32(data[start : start + PIECE]) for start in range(0, len(data), PIECE)]
        content = b"crc\0" + struct.pack(">i", PIECE) + struct.pack(f">{len(sums)}I", *sums)
        file.with_name(f".{file.name}.crc").write_bytes(content)
    (state / "3.delta").write_bytes(EMPTY_DELTA[:-30] + b"\x01" + EMPTY_DELTA[-29:])
    return project


def test_status_and_plan_see_it_and_name_the_rebuild(slackwater: Slackwater, project: Project) -> None:
    done = slackwater("status", "--format", "json")

    verdict = done.document["streams"][0]["verdict"]
    assert (done.code, verdict["code"]) == (3, "checkpoint-damaged")
    assert "state/0/0/3.delta does not have its checksum" in verdict["text"]
    assert done.document["streams"][0]["next"] == f"slackwater plan rebuild {STREAM}"

    refused = slackwater("plan", "resume", STREAM, "--format", "json")
    assert (refused.code, refused.error["code"]) == (5, "state-not-kept")
    assert f"slackwater plan rebuild {STREAM}" in refused.error["hint"]
    assert slackwater("plan", "rebuild", STREAM).code == 0
    project.apply(project.plan())
    assert slackwater("status").code == 0


@pytest.mark.usefixtures("project")
def test_a_state_too_large_for_status_is_read_by_a_plan(
    slackwater: Slackwater, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("slackwater.checkpoint.damage._MOST_STATE_FILES", 2)

    assert slackwater("status").code == 0
    assert slackwater("status", "--verify").code == 3
    assert slackwater("plan", "resume", STREAM).code == 5
