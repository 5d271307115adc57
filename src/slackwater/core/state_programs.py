"""Which program made which batches of a generation, as the ledger and ``stream.json`` keep it.

Each entry is ``{"after": N, "program": {...}}``: N was the newest committed batch when the program was started, -1 for
none. A program that was started and committed nothing made no state; the next start replaces its entry.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from hashlib import sha256

from slackwater.core.program import Program

Entry = Mapping[str, object]
AFTER, PROGRAM = "after", "program"

MOST = 20
"""Entries kept, the newest ones: a checkpoint keeps the state of about a hundred batches, not of its whole past."""


def digest_of(program: Mapping[str, object]) -> str:
    """The SHA-256 of a program, as the runs that had it record it."""
    return sha256(json.dumps(program, sort_keys=True).encode()).hexdigest()


def program_of_batch(entries: Sequence[Entry] | None, batch: int) -> Mapping[str, object] | None:
    """The program that made a committed batch and the state after it; ``None`` where it is not recorded."""
    made = entries_until(entries, batch)
    program = made[-1].get(PROGRAM) if made else None
    return program if isinstance(program, Mapping) else None


def parsed_program(entries: Sequence[Entry] | None, batch: int) -> Program | None:
    """``program_of_batch`` as a value; ``None`` also for one that cannot be parsed."""
    recorded = program_of_batch(entries, batch)
    try:
        return None if recorded is None else Program.from_json(recorded)
    except (LookupError, ValueError, TypeError, AttributeError):
        return None


def entries_until(entries: Sequence[Entry] | None, batch: int) -> list[Entry]:
    """The entries of the programs that made the batches up to ``batch``."""
    return [entry for entry in entries or () if _after(entry) < batch]


def with_started(entries: Sequence[Entry] | None, program: Mapping[str, object] | None, committed: int) -> list[Entry]:
    """The entries when ``program`` is started with ``committed`` as the newest committed batch; ``None``: unknown."""
    kept = entries_until(entries, committed)
    before = kept[-1].get(PROGRAM) if kept else None
    if before == program:
        return kept
    return [*kept, {AFTER: committed, PROGRAM: program}][-MOST:]


def made_by(program: Mapping[str, object] | None) -> list[Entry]:
    """The entries of a generation whose whole state one program has made; ``None``: an unknown one."""
    return [] if program is None else [{AFTER: -1, PROGRAM: program}]


def _after(entry: Entry) -> int:
    after = entry.get(AFTER)
    return after if isinstance(after, int) else -1
