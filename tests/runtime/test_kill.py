"""After ``kill -9`` at any time the ledger lacks at most the newest batches, and the next run continues exactly."""

import os
import random
import time
from functools import partial

import pytest

from tests.runtime.project import Project, copying

KILLS = 3
LATE_S = 3.0
"""Less than a third of what the batches of a run take."""
FILES = 60

PIPELINE = copying('sw.sinks.files("json", "out")')


@pytest.mark.spark
def test_the_ledger_knows_all_but_the_newest_batches(project: Project) -> None:
    seed = int(os.environ.get("SLACKWATER_TEST_SEED", time.time_ns() % 1_000_000))
    chance = random.Random(seed)
    project.write(PIPELINE)
    project.add_files(FILES)
    for number in range(KILLS):
        # A point of the work, and from there a time within the time of a batch or two.
        target = project.committed("rows") + chance.randint(2, 12)
        command = project.start("run", "pipeline.py", "--until-caught-up")
        when = f"seed {seed}, kill {number} after batch {target}"
        command.wait_for(partial(_has_committed, project, target), when)
        deadline = time.monotonic() + chance.uniform(0, 0.5)
        while time.monotonic() < deadline:
            pass
        killed_at = time.time()
        command.kill()
        _compare(project, when, killed_at - LATE_S)
    project.run("--until-caught-up")
    _compare(project, f"seed {seed}, at the end", time.time())
    assert project.ids("out") == list(range(FILES)), f"seed {seed}"


def _has_committed(project: Project, batch: int) -> bool:
    return project.committed("rows") >= batch


def _compare(project: Project, when: str, known_until: float) -> None:
    checkpoint = project.checkpoint("rows")
    with project.ledger() as ledger:
        recorded = {log: ledger.lines("work/rows", log) for log in ("offsets", "sources/0")}
    for log, known in recorded.items():
        files = {int(file.name): file for file in (checkpoint / log).iterdir() if file.name.isdigit()}
        written = {entry: file.read_text() for entry, file in files.items()}
        missing = sorted(written.keys() - known.keys())
        assert missing == sorted(written)[len(written) - len(missing) :], f"{when}: {log} {missing}"
        # The watcher looks ten times a second; on a machine that others use, too, its turn comes later.
        late = [entry for entry in missing if files[entry].stat().st_mtime < known_until]
        assert not late, f"{when}: {log} {late}"
        different = [entry for entry in written.keys() & known.keys() if written[entry] != known[entry]]
        assert not different, f"{when}: {log} {different}"
