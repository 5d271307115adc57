"""The popular manual restart after an upgrade, on a copy: new checkpoint at the saved offsets, same output."""

from __future__ import annotations

import shutil
from collections import Counter
from dataclasses import dataclass
from pathlib import Path

from examples.demo.commands import Commands
from examples.demo.compare import Row, committed_files, compare, rows_of
from examples.demo.places import GOLD, Workplace
from examples.demo.result import ManualRestart
from examples.demo.source_files import files_taken
from slackwater.cli.verbs.init import read_example
from slackwater.formats.compactible import SINK_LOG


@dataclass(frozen=True, slots=True)
class GoldCopy:
    """Copies of the gold stage as the kill left it."""

    folder: Path

    @property
    def old_checkpoint(self) -> Path:
        """The checkpoint; it is only read."""
        return self.folder / "checkpoint"

    @property
    def output(self) -> Path:
        """The output; the restart writes to it."""
        return self.folder / "gold"


def keep(workplace: Workplace, folder: Path) -> GoldCopy:
    """Copy the gold stage."""
    copied_stage = GoldCopy(folder)
    shutil.copytree(workplace.checkpoint(GOLD, 1), copied_stage.old_checkpoint)
    shutil.copytree(workplace.output(GOLD), copied_stage.output)
    return copied_stage


def try_manual_restart(
    commands: Commands, copied_stage: GoldCopy, workplace: Workplace, expected: Counter[Row], *, committed: int
) -> ManualRestart:
    """Run the upgraded code on the old checkpoint, then by a manual restart; count the rows that this lost.

    ``workplace`` is the one that was killed and has been finished since: its readings are all there, and those that
    batch ``committed`` had not read are what is left to read at the saved offsets.
    """
    folder, written = copied_stage.folder, _batches(copied_stage.output / SINK_LOG)
    readings = workplace.output("sensor-deserialize")
    _copy_unread(readings, files_taken(copied_stage.old_checkpoint, -1, committed), folder / "unread")
    shutil.copy2(workplace.pipeline_file, folder / "weather.py")
    (folder / "manual_restart.py").write_text(read_example("manual_restart.py"), encoding="utf-8")
    for copied, copy in ((copied_stage.old_checkpoint, "checkpoint-tried"), (copied_stage.output, "gold-tried")):
        shutil.copytree(copied, folder / copy)
    upgrade = ["checkpoint-tried", "gold-tried", str(readings)]
    fresh = ["checkpoint-new", "gold", "unread"]
    refused, _ = commands.run("manual-restart", ["manual_restart.py", *upgrade, *fresh], folder).split()
    ran = _batches(folder / "checkpoint-new" / "commits")
    outcome = compare(GOLD, expected, rows_of(copied_stage.output))
    return ManualRestart(
        refused=refused,
        rows=outcome.rows,
        expected_rows=outcome.expected_rows,
        lost=outcome.missing,
        wrong=outcome.extra,
        batches=len(ran),
        skipped=len([batch for batch in ran if batch <= max(written)]),
    )


def _copy_unread(readings: Path, read: list[Path], unread: Path) -> None:
    """The files that are left, with their times of modification: a file source takes them in that order."""
    unread.mkdir()
    done = {path.name for path in read}
    for name in committed_files(readings):
        if name not in done:
            shutil.copy2(readings / name, unread / name)


def _batches(log: Path) -> set[int]:
    stems = (path.name.removesuffix(".compact") for path in log.iterdir())
    return {int(stem) for stem in stems if stem.isdigit()}
