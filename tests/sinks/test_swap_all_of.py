"""Several outputs swapped together, one after the other: killed in between, refused by one of them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from slackwater import sinks
from slackwater.core.sink import Others, Swap, others_of
from slackwater.sinks.all_of import AllOfOutput
from slackwater.sinks.common.registry import open_output
from tests.sinks.manifests import data_file
from tests.sinks.swap_scene import SwapScene
from tests.sinks.test_swap_files import LAST, OPERATION, OWNER, STAGED, Scene, bytes_below, refused
from tests.support.kill_points import kill_points

ALL_OF: Any = sinks.all_of


class Both(SwapScene):
    """Two outputs with a staged one each."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.scenes = [Scene(folder / name) for name in ("first", "second")]
        self.swap = self.output.swap_of(OPERATION, OWNER.stream_id)

    @property
    def output(self) -> AllOfOutput:
        return AllOfOutput([scene.output for scene in self.scenes])

    def below(self) -> list[dict[str, bytes]]:
        return [bytes_below(scene.out) for scene in self.scenes]


def test_swapped_and_swapped_back_and_killed_in_between(tmp_path: Path) -> None:
    both = Both(tmp_path)
    assert both.output.traits.swaps
    assert both.swap.replaced == LAST
    whole = both.below()
    both.make()
    swapped = both.below()
    assert [scene.output.last_written() for scene in both.scenes] == [STAGED, STAGED]
    both.undo()
    assert both.below() == whole
    points = 0
    for points in kill_points(both.make, tmp_path, both.undo):
        both.make()
        assert both.below() == swapped, f"killed before change {points}"
    for point in kill_points(both.undo, tmp_path, both.make):
        both.undo()
        assert both.below() == whole, f"killed before change {point}"
    assert points > STAGED


def test_none_is_swapped_where_one_of_them_refuses(tmp_path: Path) -> None:
    both = Both(tmp_path)
    data_file(both.scenes[1].staging, 4, partitioned=True).unlink()
    refused(tmp_path, "staged-damaged", both.make)


def test_staged_and_discarded_together(tmp_path: Path) -> None:
    both = Both(tmp_path)
    for scene in both.scenes:
        scene.output.discard_staged(OPERATION)
    for _ in range(2):
        both.output.stage(OPERATION, LAST - 1, {})
        assert both.output.staged(OPERATION).last_written() == LAST - 1
    both.output.staged(OPERATION).claim(OWNER)
    both.make()
    both.output.discard_staged(OPERATION)
    both.output.discard_replaced(OPERATION)
    assert [list(scene.out.parent.iterdir()) for scene in both.scenes] == [[scene.out] for scene in both.scenes]
    assert both.output.last_written() == LAST - 1


def test_sinks_that_can_and_cannot_be_staged(tmp_path: Path) -> None:
    delta = sinks.delta(tmp_path / "out")
    able = ALL_OF(delta, sinks.postgres("postgresql://user@host/db", "out", keep_batch_id=True))
    assert able.traits.swaps
    staged, output = open_output(able.staged(OPERATION).identity()), open_output(able.identity())
    assert staged.location == output.staged(OPERATION).location
    unable = ALL_OF(delta, sinks.jdbc("sqlite:///out.db", "out"))
    assert not unable.traits.swaps
    output_of_it: Any = open_output(unable.identity())
    for act in (lambda: unable.staged(OPERATION), lambda: output_of_it.stage(OPERATION, -1, {})):
        refused(tmp_path, "swap-unsupported", act)


def test_what_others_have_in_all_of_them_is_counted_together() -> None:
    parts = (
        Swap("x", "id", 1, others=Others(2, 1, 1)),
        Swap("x", "id", 1, others=Others(3, sure=False)),
        Swap("x", "id", 1),
    )
    assert others_of(Swap("x", "id", 1, parts)) == Others(5, 1, 1, sure=False)
    assert others_of(Swap("x", "id", 1, (*parts, Swap("x", "id", 1, others=Others(None))))).rows is None
    assert not others_of(Swap("x", "id", 1)).any
    assert Others(1_000).text == "1,000 rows"
