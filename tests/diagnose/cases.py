"""A case of a check: a checkpoint that Spark wrote, an edit of it, and whether the check fires then."""

import importlib
import pkgutil
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from slackwater.core.facts import Facts, HistoryFacts
from slackwater.core.records import RunRecord
from slackwater.facts.collect import facts_of_location
from slackwater.formats.compactible import SINK_LOG
from slackwater.sinks.common.registry import identity_at
from slackwater.storage.open import open_read_store
from tests.diagnose import edits
from tests.support.corpus import corpus_case

AGGREGATION = "agg_window_append_hdfs"
FILES = "file_json_to_parquet_filesink"


def nothing(case: Path) -> None:
    """No edit: the checkpoint as Spark wrote it."""


@dataclass(frozen=True, slots=True)
class Case:
    """``fires``: whether the check finds something after ``edit``. ``says`` are parts of what it says then.

    ``edit`` changes the folder of a copy of the corpus case: ``checkpoint/``, ``input/``, ``sink/``. ``with_sink``
    gives the output, ``ledger`` what a recorded stream has besides. A neighbour, which differs in the one thing that
    matters, has ``fires`` false.
    """

    name: str
    code: str
    edit: Callable[[Path], None]
    corpus: str = FILES
    version: str = "4.3.0"
    with_sink: bool = False
    ledger: Callable[[Facts], Facts] | None = None
    fires: bool = True
    says: tuple[str, ...] = ()

    def facts(self, folder: Path) -> Facts:
        """The facts after the edit, on a copy below ``folder``."""
        copy = corpus_case(self.version, self.corpus, folder)
        self.edit(copy)
        sink = identity_at(str(copy / "sink")) if self.with_sink else None
        facts = facts_of_location(open_read_store(str(copy / "checkpoint")), sink)
        return facts if self.ledger is None else self.ledger(facts)


def all_cases() -> Iterator[Case]:
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
    def edit(case: Path) -> None:
        for one in edits_in_order:
            one(case)

    return edit


def last_run(spark: str) -> Callable[[Facts], Facts]:
    run = RunRecord(1, "orders/totals", 1, spark, started_ms=0, ended_ms=1, end="stopped")
    return lambda facts: facts._replace(recorded=True, history=HistoryFacts((run,)))


def output_in_place(case: Path) -> None:
    """An edit of a file sink's manifest: its files are where the copy of the case is."""
    for entry in (case / "sink" / SINK_LOG).iterdir():
        if not entry.name.startswith("."):
            text = re.sub(r'"path":"file:[^"]*/sink/', f'"path":"{(case / "sink").as_uri()}/', entry.read_text())
            write(f"sink/{SINK_LOG}/{entry.name}", text)(case)
