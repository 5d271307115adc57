"""Failures of state, and of what it is read with."""

import pytest

from tests.diagnose.live.damage import Damage, in_order, remove, replaced
from tests.diagnose.live.frame import FILES, READ, Failure, Scene, Silent, Stops, Stream, in_gate, prove

pytestmark = pytest.mark.spark


def newest_version_lost(scene: Scene) -> None:
    """All partitions lack the version that the newest batch left."""
    for partition in (0, 1):
        remove(scene.checkpoint / f"state/0/{partition}/{scene.newest + 1}.delta")


def rename_lost(scene: Scene) -> None:
    """A store has reported a rename that it did not make."""
    delta = scene.checkpoint / f"state/0/0/{scene.newest + 1}.delta"
    delta.rename(delta.with_name(f".{delta.name}.7a2c6b1e-0000-4000-8000-000000000001.TID7.tmp"))
    delta.with_name(f".{delta.name}.crc").unlink(missing_ok=True)


def edited_partitions(name: str) -> Damage:
    return replaced(name, 'shuffle.partitions":"2"', 'shuffle.partitions":"1"')


def all_in_one_batch(scene: Scene) -> None:
    """The rest of the input is read by a program that triggers once, which leaves out the batch without data."""
    scene.arrive(READ, FILES)
    ended = scene.by_spark_alone(scene.checkpoint, "once")
    assert ended.returncode == 0, ended.stderr


REBUILT = ("plan rebuild", "apply", "run")
FAILURES = [
    Failure(
        "STATE-01", "the newest version was deleted", newest_version_lost,
        spark=Stops("CANNOT_LOAD_STATE_STORE.CANNOT_READ_DELTA_FILE_NOT_EXISTS"),
        found="state-lost", risk="stuck", goal="rebuild", typed=REBUILT,
    ),
    Failure(
        "STORE-02", "a rename was reported and not made", rename_lost,
        spark=Stops("CANNOT_LOAD_STATE_STORE.CANNOT_READ_DELTA_FILE_NOT_EXISTS"),
        found="SW-STATE-009", risk="stuck", goal="rebuild", typed=REBUILT,
    ),
    Failure(
        "CHG-08", "fewer partitions were written into offsets/",
        in_order(edited_partitions("offsets/{n}"), edited_partitions("offsets/{p}")),
        spark=Silent(lacks=1, wrong=1),
        found="SW-CHG-008", risk="wrong", goal="rebuild", typed=REBUILT,
    ),
    Failure(
        "LOG-11", "the newest offsets were set back",
        in_order(*(replaced(f"offsets/{one}", '"logOffset":4', '"logOffset":3') for one in ("{n}", "{p}"))),
        spark=Silent(lacks=1, wrong=1),
        found="SW-LOG-011", risk="wrong", goal="rebuild", typed=REBUILT,
    ),
    Failure(
        "WM-02", "the last batch was triggered once", all_in_one_batch,
        spark=Silent(lacks=1),
        found="no-data-batch-pending", risk="none", goal=None, typed=("run",), all_arrived=True,
    ),
]  # fmt: skip


@pytest.mark.parametrize("failure", in_gate(FAILURES, "STATE-01", "LOG-11"))
def test_damaged_state(totals: Stream, failure: Failure) -> None:
    prove(totals, failure)
