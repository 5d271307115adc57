"""faulty_rebuild.py FAULT ...: the ``slackwater`` command with one fault in how it rebuilds."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from typing import Any
from unittest.mock import patch

from slackwater.checkpoint.layout import offset_path
from slackwater.checkpoint.logs import read_logs
from slackwater.cli.main import main
from slackwater.operations.actions import generations
from slackwater.operations.goals import rebuild
from slackwater.operations.plan.contributing import first_contributing
from slackwater.runtime.replay.replay import SparkReplayer
from slackwater.storage.open import open_write_store


def one_batch_late() -> None:
    """The replay starts with the batch after the first one that contributes."""

    def late(*arguments: Any) -> int:
        return first_contributing(*arguments) + 1

    for module in (rebuild, generations):
        patch.object(module, "first_contributing", late).start()


def drops_watermark() -> None:
    """Each batch runs without the watermark that it had."""

    def edit(lines: list[str]) -> list[str]:
        return [lines[0], json.dumps({**json.loads(lines[1]), "batchWatermarkMs": 0}), *lines[2:]]

    _before_each_batch(edit)


def merges() -> None:
    """Each batch reads the range of the next one, too."""

    def edit(lines: list[str]) -> list[str]:
        return [*lines[:2], *(json.dumps({"logOffset": json.loads(one)["logOffset"] + 1}) for one in lines[2:])]

    _before_each_batch(edit)


def one_trigger_more() -> None:
    """The query is started a second time after each batch, so that it plans one of its own."""
    run = SparkReplayer.run_pending

    def twice(self: SparkReplayer, checkpoint: str, *, changelog: bool, **how: Any) -> tuple[int, int]:
        replayed = run(self, checkpoint, changelog=changelog, **how)
        if changelog:
            run(self, checkpoint, changelog=changelog, **how)
        return replayed

    patch.object(SparkReplayer, "run_pending", twice).start()


def counts_twice() -> None:
    """The first replay of each batch counts a row twice, as where an executor is lost."""
    run = SparkReplayer.run_pending

    def counted(
        self: SparkReplayer, checkpoint: str, *, changelog: bool, again: bool = False, **how: Any
    ) -> tuple[int, int]:
        batch, rows = run(self, checkpoint, changelog=changelog, again=again, **how)
        return batch, rows + 1 if changelog and not again else rows

    patch.object(SparkReplayer, "run_pending", counted).start()


def _before_each_batch(edit: Callable[[list[str]], list[str]]) -> None:
    run = SparkReplayer.run_pending

    def edited(self: SparkReplayer, checkpoint: str, *, changelog: bool, **how: Any) -> tuple[int, int]:
        if changelog:
            store = open_write_store(checkpoint)
            path = offset_path(read_logs(store).planned)
            store.write(path, "\n".join(edit(store.read(path).decode().split("\n"))).encode())
        return run(self, checkpoint, changelog=changelog, **how)

    patch.object(SparkReplayer, "run_pending", edited).start()


FAULTS = {one.__name__: one for one in (one_batch_late, drops_watermark, merges, one_trigger_more, counts_twice)}

if __name__ == "__main__":
    fault, sys.argv[1:] = sys.argv[1], sys.argv[2:]
    FAULTS[fault]()
    sys.exit(main())
