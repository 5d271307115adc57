"""Where Spark cannot start on a damaged checkpoint, ``doctor --verify`` finds something: damages by a drawn seed."""

import random

import pytest

from tests.diagnose.live.frame import FILES, READ, Scene, Stream
from tests.diagnose.random_damage import damage

pytestmark = pytest.mark.spark

DRAWN, ALL = 3, 40
HEALTHY = 0


def doctor(scene: Scene) -> int:
    """The exit code of doctor about the stream."""
    return scene.type("slackwater doctor web/per_page --verify").returncode


def starts(scene: Scene) -> bool:
    """Whether Spark alone continues until the end of the input."""
    return scene.by_spark_alone(scene.checkpoint).returncode == 0


def test_without_damage_it_is_healthy_and_starts(totals: Stream) -> None:
    totals.saved.restore()
    totals.scene.arrive(READ, FILES)
    assert doctor(totals.scene) == HEALTHY
    assert starts(totals.scene)
    assert totals.scene.rows() == totals.rows


@pytest.mark.parametrize("count", [DRAWN, pytest.param(ALL, marks=pytest.mark.thorough)])
def test_what_does_not_start_is_not_healthy(totals: Stream, count: int) -> None:
    seed = random.SystemRandom().randrange(1_000_000)
    dice = random.Random(seed)
    for number in range(count):
        totals.saved.restore()
        totals.scene.arrive(READ, FILES)
        done = damage(totals.scene.checkpoint, dice)
        said = doctor(totals.scene)
        started = starts(totals.scene)
        assert started or said != HEALTHY, f"seed {seed}, damage {number}: {done}"
