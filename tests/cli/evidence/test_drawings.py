"""What the drawings choose to show, for marks, files and times of any size."""

from collections.abc import Sequence
from typing import Any

import pytest

from slackwater.cli.verbs.evidence import columns, scale_of
from slackwater.cli.verbs.evidence.document import intervals

HUGE = 10**17
HOUR_MS = 3_600_000


@pytest.mark.parametrize(
    ("numbers", "found"),
    [
        ((), ()),
        ((4,), ((4, 4),)),
        ((0, 1, 2), ((0, 2),)),
        ((7, 2, 1, 9, 8, 2), ((1, 2), (7, 9))),
        ((0, HUGE), ((0, 0), (HUGE, HUGE))),
    ],
)
def test_runs_of_batches(numbers: tuple[int, ...], found: tuple[tuple[int, int], ...]) -> None:
    assert intervals(numbers) == found


def _lane(name: str, mark: int | None, kept: Sequence[Sequence[int]] = ()) -> dict[str, Any]:
    return {"name": name, "mark": mark, "kept": kept}


@pytest.mark.parametrize("room", [8, 22])
@pytest.mark.parametrize("far", [3, 500, HUGE])
def test_every_mark_has_a_column_and_there_are_never_too_many(room: int, far: int) -> None:
    lanes = (_lane("planned", far, [[0, far]]), _lane("committed", 2, [[0, 2]]), _lane("written", None))

    drawn = columns(lanes, far + 1, room)

    assert {2, far, far + 1} <= set(drawn)
    assert drawn == sorted(set(drawn))
    assert len(drawn) == min(room, far + 2)
    assert drawn[0] >= 0


def test_a_stream_without_a_batch_has_its_next_one() -> None:
    assert columns((_lane("planned", -1), _lane("committed", -1)), 0, 8) == [0]


def test_one_time_far_away_does_not_hide_all_others() -> None:
    times = [hour * HOUR_MS for hour in range(50_000, 50_020)]

    assert scale_of(times) == (times[0], times[-1])
    assert scale_of([*times, times[-1] + 10_000 * HOUR_MS, 1]) == (times[0], times[-1])
    assert scale_of([5]) == (5, 5)
