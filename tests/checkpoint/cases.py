"""Every case of the corpus that is there, for parametrised tests, and how one is opened."""

import json
import re
from functools import cache
from pathlib import Path
from typing import Any

from slackwater.checkpoint.opened import OpenedCheckpoint, open_checkpoint
from slackwater.storage.local import LocalStore
from tests.support.corpus import VERSIONS, corpus_cases, corpus_folder

CASES = [(version, case) for version in VERSIONS for case in corpus_cases(version)]
NAMES = [f"{version}-{case}" for version, case in CASES]


@cache
def description(version: str, case: str) -> dict[str, Any]:
    """``case.json``: what Spark itself reported."""
    described: dict[str, Any] = json.loads((corpus_folder(version, case) / "case.json").read_text())
    return described


def checkpoint_folder(version: str, case: str, name: str = "checkpoint") -> Path:
    """A checkpoint of the corpus, not to be changed."""
    return corpus_folder(version, case) / name


def opened(version: str, case: str) -> OpenedCheckpoint:
    """The same, listed."""
    return open_checkpoint(LocalStore(checkpoint_folder(version, case)))


def cut_after(checkpoint: Path, batch: int) -> None:
    """Remove what later batches wrote: the checkpoint is as after a kill between the commit and the next plan."""
    for log in ("offsets", "commits"):
        remove_above(checkpoint / log, batch)
    for store in checkpoint.glob("state/*/*"):
        remove_above(store, batch + 1)


def remove_above(folder: Path, newest: int) -> None:
    """Remove the files of a folder that start with a higher number, with their checksums."""
    for file in folder.iterdir():
        number = re.match(r"\.?(\d+)[._]?", file.name)
        if file.is_file() and number is not None and int(number[1]) > newest:
            file.unlink()
