"""``undo``, and operations whose folder, plan, journal or record is not as they were left."""

import os
import shutil
from pathlib import Path

from tests.bad_input.case import BINARY, DEEP, LONG, OPERATIONS, Case, Step, operation, refused, sql, write

UNDO = "undo OPERATION --yes"
ABSENT = "20260105T093000-1a2b3c"


def _file(name: str, content: str | bytes) -> Step:
    data = content.encode() if isinstance(content, str) else content

    def change(folder: Path, _: str) -> None:
        (folder / name).write_bytes(data)

    change.__name__ = f"with {name} = {content!r}"
    return operation(change)


def _plan(content: str | bytes) -> Step:
    return _file("plan.json", content)


def _journal(content: str | bytes) -> Step:
    return _file("journal.jsonl", content)


def folder_removed(folder: Path, _: str) -> None:
    shutil.rmtree(folder)


def plan_removed(folder: Path, _: str) -> None:
    (folder / "plan.json").unlink()


def plan_edited(folder: Path, _: str) -> None:
    plan = folder / "plan.json"
    plan.write_text(plan.read_text().replace('"target": 5', '"target": 4'))


def plan_is_a_folder(folder: Path, _: str) -> None:
    plan_removed(folder, _)
    (folder / "plan.json").mkdir()


def journal_is_a_folder(folder: Path, _: str) -> None:
    (folder / "journal.jsonl").mkdir()


def journal_is_a_fifo(folder: Path, _: str) -> None:
    (folder / "journal.jsonl").unlink(missing_ok=True)
    os.mkfifo(folder / "journal.jsonl")


def plan_is_a_fifo(folder: Path, _: str) -> None:
    plan_removed(folder, _)
    os.mkfifo(folder / "plan.json")


CASES = (
    Case("undo OPERATION-anything --yes", 4, "operation-unknown", operation()),
    Case("undo OPERATION-2 --yes", 4, "operation-unknown", operation()),
    Case(UNDO, 9, "file-inaccessible", operation(journal_is_a_fifo)),
    Case("apply plan.json --yes", 9, "file-inaccessible", operation(journal_is_a_fifo)),
    Case(UNDO, 9, "file-inaccessible", operation(plan_is_a_fifo)),
    *refused(2, "usage", "undo", ("undo", "")),
    *refused(4, "operation-unknown", f"undo {ABSENT}", f"undo {ABSENT} --yes", f"undo {ABSENT} --yes --format json"),
    *refused(4, "operation-unknown", "undo per_page --yes", "undo ../../../../x --yes", "undo . --yes"),
    *refused(4, "operation-unknown", f"undo {LONG} --yes"),
    Case(("undo", "a\0b"), 2, "argument-bytes"),
    Case("undo OPERATION", 2, "unconfirmed", operation()),
    Case("undo OPERATION --format json", 2, "unconfirmed", operation()),
    Case("undo OPERATION more", 2, "usage", operation()),
    Case(UNDO, 4, "operation-folder-missing", operation(folder_removed)),
    Case(UNDO, 4, "operation-folder-missing", operation(plan_removed)),
    Case(UNDO, 9, "file-inaccessible", operation(plan_is_a_folder)),
    Case(UNDO, 2, "plan-damaged", operation(plan_edited)),
    Case(UNDO, 2, "plan-unreadable", _plan("")),
    Case(UNDO, 2, "plan-unreadable", _plan(BINARY)),
    Case(UNDO, 2, "plan-unreadable", _plan(DEEP)),
    Case(UNDO, 2, "plan-schema", _plan("{}")),
    Case(UNDO, 3, "journal-damaged", _journal("x\n")),
    Case(UNDO, 3, "journal-damaged", _journal(BINARY + b"\n")),
    Case(UNDO, 3, "journal-damaged", _journal(DEEP + "\n")),
    Case(UNDO, 3, "journal-damaged", _journal("[]\n")),
    Case(UNDO, 3, "journal-damaged", _journal("{}\n")),
    Case(UNDO, 3, "journal-damaged", _journal('{"index": "x", "state": "started", "at_ms": 0}\n')),
    Case(UNDO, 3, "journal-damaged", _journal('{"index": 0, "state": "nope", "at_ms": 0}\n')),
    Case(UNDO, 3, "journal-damaged", _journal('{"index": 0, "state": "started", "at_ms": 0, "facts": [1]}\n')),
    Case(UNDO, 9, "file-inaccessible", operation(journal_is_a_folder)),
    Case("apply plan.json --yes", 3, "journal-damaged", _journal("x\n")),
    Case("undo ../x --yes", 3, "ledger-unreadable", operation(), sql("UPDATE operations SET id = '../x'")),
    Case(
        "undo ../x --yes",
        3,
        "ledger-unreadable",
        operation(),
        sql("UPDATE operations SET id = '../x'"),
        write(f"{OPERATIONS}/../x/plan.json", "{}"),
    ),
    Case(
        f"undo {ABSENT} --yes",
        4,
        "operation-folder-missing",
        operation(),
        sql(f"UPDATE operations SET id = '{ABSENT}'"),
    ),
)
