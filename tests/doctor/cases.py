"""A case of a check: a checkpoint that Spark wrote, an edit of it, and whether the check fires then."""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from slackwater.core.facts import Facts
from slackwater.facts.collect import facts_of_location
from slackwater.sinks.common.registry import identity_at
from slackwater.storage.open import open_read_store
from tests.doctor import edits
from tests.support.corpus import corpus_case

AGGREGATION = "agg_window_append_hdfs"
FILES = "file_json_to_parquet_filesink"


def nothing(case: Path) -> None:
    """No edit: the checkpoint as Spark wrote it."""


@dataclass(frozen=True, slots=True)
class Case:
    """``fires``: whether the check finds something after ``edit``. ``says`` are parts of what it says then.

    ``edit`` changes the folder of a copy of the corpus case: ``checkpoint/``, ``input/``, ``sink/``. ``with_sink``
    gives the output. A neighbour, which differs in the one thing that matters, has ``fires`` false.
    """

    name: str
    code: str
    edit: Callable[[Path], None]
    corpus: str = FILES
    version: str = "4.3.0"
    with_sink: bool = False
    fires: bool = True
    says: tuple[str, ...] = ()

    def facts(self, folder: Path) -> Facts:
        """The facts after the edit, on a copy below ``folder``."""
        copy = corpus_case(self.version, self.corpus, folder)
        self.edit(copy)
        sink = identity_at(str(copy / "sink")) if self.with_sink else None
        return facts_of_location(open_read_store(str(copy / "checkpoint")), sink)


def all_cases() -> Iterator[Case]:
    """The cases of all areas."""
    for module in pkgutil.iter_modules(edits.__path__):
        yield from importlib.import_module(f"{edits.__name__}.{module.name}").CASES


def remove(*names: str) -> Callable[[Path], None]:
    """An edit that deletes files, and Hadoop's checksums of them; names are relative to the case."""

    def edit(case: Path) -> None:
        for name in names:
            file = case / name
            file.unlink()
            file.with_name(f".{file.name}.crc").unlink(missing_ok=True)

    return edit


def write(name: str, text: str | bytes) -> Callable[[Path], None]:
    """An edit that writes a file and deletes Hadoop's checksum of it."""

    def edit(case: Path) -> None:
        file = case / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(text if isinstance(text, bytes) else text.encode())
        file.with_name(f".{file.name}.crc").unlink(missing_ok=True)

    return edit


def both(*edits_in_order: Callable[[Path], None]) -> Callable[[Path], None]:
    """Several edits, one after another."""

    def edit(case: Path) -> None:
        for one in edits_in_order:
            one(case)

    return edit
