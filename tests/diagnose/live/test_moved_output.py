"""The output of a program that Slackwater never ran is moved: its manifest has the old addresses."""

import json
from pathlib import Path

import pytest

from tests.diagnose.live.frame import COMPACTING, COPIED, FILES, OWN, READ, Scene, uninterrupted
from tests.restart.small import Saved
from tests.support.outputs import manifest_ids, rows_of

pytestmark = pytest.mark.spark


def files_that_readers_see(output: Path) -> int:
    """The files below the output in its newest entries; Spark's reader leaves out all others, silently."""
    entries = [path for path in (output / "_spark_metadata").iterdir() if path.name[0] != "."]
    paths = {json.loads(line)["path"] for entry in entries for line in entry.read_text().splitlines()[1:]}
    return sum(path.startswith(f"{output.as_uri()}/") for path in paths)


def address_replaced(old: Path, new: Path) -> None:
    """What doctor's advice asks for, with the checksums that a local disk has."""
    for entry in (new / "_spark_metadata").iterdir():
        if entry.name.endswith(".crc"):
            entry.unlink()
        else:
            entry.write_text(entry.read_text().replace(f"{old.as_uri()}/", f"{new.as_uri()}/"))


def test_move_03_a_moved_output_is_complete_again(tmp_path: Path) -> None:
    expected = uninterrupted(tmp_path / "whole", COPIED, COMPACTING)
    scene = Scene(tmp_path / "scene", COPIED, COMPACTING)
    checkpoint, moved = scene.folder / "checkpoint", scene.folder / "moved"
    scene.arrive(0, READ)
    assert scene.by_spark_alone(checkpoint).returncode == 0
    scene.output.rename(moved)
    program = scene.folder / OWN.name
    program.write_text(program.read_text().replace('"out"', '"moved"'))
    scene.arrive(READ, FILES)
    with_damage = Saved(scene, tmp_path / "damaged")

    assert scene.by_spark_alone(checkpoint).returncode == 0, "Spark reports nothing"
    assert (files_that_readers_see(moved), sum(expected.values())) == (FILES - READ, 4 * FILES)
    with_damage.restore()

    shown = scene.type(f"slackwater doctor {checkpoint} --sink {moved} --format json")
    first = json.loads(shown.stdout)["streams"][0]["findings"][0]
    assert (first["code"], first["risk"], first["at_stake"]) == ("SW-MOVE-003", "loss", f"the rows of {READ} files")
    assert f"replace {scene.output.as_uri()} by the address of {moved}" in first["advice"]
    address_replaced(scene.output, moved)

    assert scene.by_spark_alone(checkpoint).returncode == 0
    assert rows_of(moved) == expected
    assert manifest_ids(moved)[-1] == FILES - 1
    assert "SW-MOVE-003" not in scene.type(f"slackwater doctor {checkpoint} --sink {moved}").stdout
