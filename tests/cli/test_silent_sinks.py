"""Every command on a stream whose sink does not show what it holds."""

import json
import shutil
from pathlib import Path

import pytest

from tests.cli.conftest import Slackwater
from tests.support.homes import HomeSpec, make_home

KAFKA = {"kind": "kafka", "topic": "copies"}
NOWHERE = {"kind": "foreach"}
UNKNOWN = {"kind": "nosuch", "table": "copies"}
SINKS = pytest.mark.parametrize("sink", [KAFKA, NOWHERE, UNKNOWN], ids=["kafka", "foreach", "unknown"])


@SINKS
def test_status(slackwater: Slackwater, tmp_path: Path, sink: dict[str, str]) -> None:
    make_home(tmp_path, HomeSpec(planned=6, sink=sink))

    done = slackwater("status", "--format", "json", "--verify")

    stream = done.document["streams"][0]
    assert done.code == 0
    assert stream["marks"]["written"] is None
    assert stream["delivery"]["guarantee"] == "at-least-once"
    assert [finding["code"] for finding in stream["findings"]] == ["sink-silent", "at-least-once"]
    assert "batch 6 was interrupted and will run again" in stream["verdict"]["text"]
    assert "writes at least once" in slackwater("status").out


@SINKS
@pytest.mark.parametrize("lost", [False, True], ids=["checkpoint", "ledger"])
def test_a_rebuild_continues_after_the_newest_committed_batch(
    slackwater: Slackwater, tmp_path: Path, sink: dict[str, str], *, lost: bool
) -> None:
    home = make_home(tmp_path, HomeSpec(planned=6, sink=sink))
    if lost:
        shutil.rmtree(home / "streams/clicks/per_page/checkpoints/0001")
        assert slackwater("status").code == 5

    done = slackwater("plan", "rebuild", "per_page", "--out", "plan.json")

    assert done.code == 0, done.err
    plan = json.loads((tmp_path / "plan.json").read_text())
    assert (plan["facts"]["target"], plan["facts"]["pending"], plan["facts"]["written"]) == (5, 6, None)
    assert "cut-sink" not in [action["kind"] for action in plan["actions"]]
    assert any("rows of batch 6 that were written before may be written twice" in risk for risk in plan["risks"])
    assert "may be written twice" in done.out + done.err


@pytest.mark.parametrize("mode", ["append", "update", "complete"])
@pytest.mark.parametrize("at", ["batch:2", "earliest"])
def test_a_rebuild_at_an_older_batch_is_refused_with_the_reason(
    slackwater: Slackwater, tmp_path: Path, mode: str, at: str
) -> None:
    make_home(tmp_path, HomeSpec(sink=NOWHERE, output_mode=mode))

    done = slackwater("plan", "rebuild", "per_page", "--at", at, "--format", "json")

    assert (done.code, done.error["code"]) == (5, "sink-uncuttable")
    assert ("cannot remove" in done.error["message"]) == (mode == "append")
    assert (f"in {mode} mode" in done.error["message"]) == (mode != "append")


@SINKS
def test_offsets_ledger_and_inspect(slackwater: Slackwater, tmp_path: Path, sink: dict[str, str]) -> None:
    make_home(tmp_path, HomeSpec(planned=6, sink=sink))

    position = slackwater("offsets", "per_page", "--format", "json").document
    assert (position["after_batch"], position["written"]) == (5, 5)
    assert "skip" not in [effect["risk"] for effect in position["manual_restart"]["effects"]]
    assert slackwater("ledger", "per_page", "--format", "json").document["streams"][0]["sink"] == sink
    assert slackwater("ledger", "per_page").code == 0
    assert slackwater("inspect", "per_page").code == 0


def test_the_list_of_sinks(slackwater: Slackwater) -> None:
    document = slackwater("sinks", "--format", "json").document

    kafka = next(sink for sink in document["sinks"] if sink["call"] == "kafka(topic, bootstrap_servers=...)")
    assert kafka["delivery"]["guarantee"] == "at-least-once"
    assert kafka["output_modes"] == ["append", "update", "complete"]
    page = slackwater("sinks").out
    assert all(f"sinks.{sink['call']}  {sink['delivery']['guarantee']}" in page for sink in document["sinks"])
