"""Failures of ``offsets/``, ``commits/`` and ``metadata``."""

import pytest

from tests.diagnose.live.damage import (
    archived_input,
    in_order,
    removed,
    replaced,
    restored_checkpoint,
    restored_commits_and_output,
)
from tests.diagnose.live.frame import Failure, Silent, Stops, Stream, in_gate, prove

pytestmark = pytest.mark.spark

REBUILT = ("plan rebuild", "apply", "run")
FAILURES = [
    Failure(
        "LOG-06", "the entry before the newest was deleted", removed("offsets/{p}"),
        spark=Stops("batch 3 doesn't exist"),
        found="SW-LOG-006", risk="stuck", goal="resume", typed=("plan resume", "apply", "run"),
    ),
    Failure(
        "LOG-07", "the newest entry was deleted", removed("offsets/{n}"),
        spark=Stops("CONCURRENT_STREAM_LOG_UPDATE"),
        found="SW-LOG-007", risk="duplicate", goal="resume", typed=("plan resume", "apply", "run"),
    ),
    Failure(
        "LOG-09", "commits and output are of an older backup", restored_commits_and_output,
        spark=Silent(lacks=4),
        found="sink-behind", risk="loss", goal="rebuild", typed=REBUILT,
    ),
    Failure(
        "LOG-11", "the newest offset was set back",
        replaced("offsets/{n}", '"logOffset":4', '"logOffset":3'),
        spark=Silent(wrong=4),
        found="SW-LOG-011", risk="wrong", goal="rebuild", typed=REBUILT,
    ),
    Failure(
        "LOG-12", "the query id was deleted", removed("metadata"),
        spark=Silent(),
        found="SW-LOG-012", risk="duplicate", goal="resume", typed=("printf", "run"),
    ),
    Failure(
        "LOG-15", "all but the query id was deleted",
        in_order(removed("offsets", "commits", "sources"), archived_input),
        spark=Silent(lacks=12),
        found="checkpoint-lost", risk="skip", goal="rebuild", typed=REBUILT,
    ),
    Failure(
        "FSINK-04", "the checkpoint is of an older backup, the output is not",
        in_order(restored_checkpoint, archived_input),
        spark=Silent(lacks=8),
        found="sink-ahead", risk="skip", goal="rebuild", typed=REBUILT,
    ),
]  # fmt: skip


@pytest.mark.parametrize("failure", in_gate(FAILURES, "LOG-06"))
def test_damaged_logs(copied: Stream, failure: Failure) -> None:
    prove(copied, failure)
