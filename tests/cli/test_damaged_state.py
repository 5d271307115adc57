"""One damaged byte in a state file that is neither the newest nor the oldest: Spark would read it and fail."""

from __future__ import annotations

import struct
import zlib
from pathlib import Path

import pytest

from tests.cli.conftest import Slackwater
from tests.support.homes import EMPTY_DELTA, STREAM
from tests.support.rebuilds import Project, make_project

PIECE = 512


def _with_checksums(file: Path) -> None:
    """Hadoop's side file, as each write to a local disk leaves it."""
    data = file.read_bytes()
    sums = [zlib.crc32(data[start : start + PIECE]) for start in range(0, len(data), PIECE)]
    content = b"crc\0" + struct.pack(">i", PIECE) + struct.pack(f">{len(sums)}I", *sums)
    file.with_name(f".{file.name}.crc").write_bytes(content)


@pytest.fixture
def project(tmp_path: Path) -> Project:
    project = make_project(tmp_path)
    state = project.checkpoint(1) / "state" / "0" / "0"
    for file in state.glob("*.delta"):
        _with_checksums(file)
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
