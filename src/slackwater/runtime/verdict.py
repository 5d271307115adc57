"""Compares a query with the program that made its kept state, before anything is started or written.

State has the meaning that its code gave it. A change that alters the meaning is refused; the user can accept some
changes, which join the state with the next committed batch.
"""

from __future__ import annotations

import getpass
import json
import os
import platform
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import structlog

from slackwater.checkpoint.logs import read_logs
from slackwater.core.commands import command
from slackwater.core.errors import StreamFailed, UsageError
from slackwater.core.program import Program, digest_of, program_of_batch, with_started
from slackwater.core.records import WATCHED, GenerationRecord
from slackwater.core.verdict import StreamVerdict, Verdict
from slackwater.diagnose.checkpoint_changes import checkpoint_changes
from slackwater.diagnose.function_changes import not_repeatable
from slackwater.diagnose.program_changes import verdict
from slackwater.diagnose.refusal import Ways, program_refusal, ways_with
from slackwater.facts.served import record_ids
from slackwater.ledger.home import Home
from slackwater.ledger.ledger import Ledger
from slackwater.ledger.recording.checkpoint_shape import shape_of
from slackwater.ledger.recording.history import settings_of_state
from slackwater.ledger.recording.stream_files import write_stream_file_of
from slackwater.runtime.pipeline import StreamDefinition
from slackwater.runtime.query import BuiltStream
from slackwater.runtime.sql_settings import BuildAgain, only_settings
from slackwater.storage.open import open_read_store

Accepted = dict[str, dict[str, object]]
"""The changes that the user accepted and the run records, by stream."""

log = structlog.get_logger(__name__)


@dataclass(slots=True)
class StartGate:
    """Starts only streams that fit their state, or whose changes are ``accepted``.

    ``found`` are all changes' codes; ``words`` are Spark's start options (``session_words``).
    """

    ledger: Ledger
    reference: str
    say: Callable[[str], None]
    accepted: frozenset[str] = frozenset()
    words: tuple[str, ...] = ()
    found: set[str] = field(default_factory=set)
    recorded: Accepted = field(default_factory=dict)

    def check(self, built: BuiltStream, build_again: BuildAgain | None = None) -> None:
        """Raises Refused if the query changes the state's meaning. ``build_again`` as in ``judge``."""
        stream = self.ledger.find_stream(built.definition.full_name)
        generation = self.ledger.generation(stream.full_name, stream.current_generation)
        judged = judge(built, generation, settings_of_state(self.ledger, stream.full_name), build_again)
        codes = {change.code for change in judged.verdict.changes}
        self.found |= codes
        refused = judged.verdict.unaccepted(self.accepted)
        if refused:
            raise program_refusal(ways_of(built.definition, self.reference, self.words), judged, refused)
        for change in judged.verdict.changes:
            if change.said:
                self.say(f"{judged.stream}: {change.code}: {change.text}")
        if codes & self.accepted:
            self.recorded[judged.stream] = {"codes": sorted(codes & self.accepted), "by": _user()}

    def require_found(self) -> None:
        unknown = sorted(self.accepted - self.found)
        if unknown:
            raise _not_found(unknown, sorted(self.found))


def ways_of(definition: StreamDefinition, reference: str, words: tuple[str, ...] = ()) -> Ways:
    watched = definition.pipeline == WATCHED
    return ways_with(definition.full_name, reference, definition.sink.traits, is_watched=watched, session=words)


def judge(
    built: BuiltStream,
    generation: GenerationRecord | None,
    recorded: Mapping[str, str] | None = None,
    build_again: BuildAgain | None = None,
) -> StreamVerdict:
    """Compare the query with its state. A stream without ``generation`` has no checkpoint yet.

    ``recorded`` are the settings of the state's run; ``build_again`` rebuilds the query. Raises StreamFailed for an
    unreadable checkpoint.
    """
    name, now = built.definition.full_name, built.program
    notes = Verdict(not_repeatable(None, now)) if now is not None else Verdict()
    if generation is None:
        return StreamVerdict(name, -1, "nothing", notes)
    store = open_read_store(generation.location)
    try:
        logs = read_logs(store)
        if logs.planned < 0:
            return StreamVerdict(name, logs.committed, "nothing", notes)
        if now is None:
            return StreamVerdict(name, logs.committed, "unreadable")
        kept = _recorded(generation, logs.committed)
        if kept is not None:
            found = verdict(kept, now)
            settings = () if found.starts else only_settings(built, kept, recorded, build_again)
            return StreamVerdict(name, logs.committed, "recorded", found, settings)
        shape = shape_of(store, generation)
    except OSError as error:
        raise StreamFailed(
            "store-unreadable",
            f"The checkpoint of stream {name} cannot be read: {error}",
            where=generation.location,
            hint="make the store reachable with the permissions of this user, then repeat the command",
        ) from error
    found = checkpoint_changes(shape, now, ran=logs.committed >= 0)
    return StreamVerdict(name, logs.committed, "checkpoint", Verdict((*found.changes, *notes.changes)))


def record_program(home: Home, ledger: Ledger, generation: GenerationRecord, built: BuiltStream) -> None:
    """The program continues after the newest committed batch; recorded before state can change.

    An unreadable program is recorded as unknown: its commits are not the previous program's.
    """
    logs = read_logs(open_read_store(generation.location))
    known = ledger.generation(generation.stream, generation.number).programs
    started = with_started(known, program_json(built.program), logs.committed)
    if started != list(known or ()):
        ledger.update_generation(generation.stream, generation.number, programs=started)
        write_stream_file_of(home, ledger, generation.stream)
    if built.program is not None:
        record_ids(ledger, generation, built.program.sources, logs, built.sources)


def program_json(program: Program | None) -> dict[str, Any] | None:
    if program is None:
        return None
    plain: dict[str, Any] = json.loads(json.dumps(program.as_json()))
    return plain


def program_digest(program: Program | None) -> str | None:
    return None if program is None else digest_of(program.as_json())


def _recorded(generation: GenerationRecord, committed: int) -> Program | None:
    recorded: Mapping[str, object] | None = program_of_batch(generation.programs, committed)
    if recorded is None:
        return None
    try:
        return Program.from_json(recorded)
    except (LookupError, ValueError, TypeError, AttributeError) as error:
        log.warning("the recorded program cannot be parsed", stream=generation.stream, error=str(error))
        return None


def _user() -> str:
    try:
        name = getpass.getuser()
    except (KeyError, OSError, ImportError):
        # A container may run as a user id that has no name.
        name = str(os.geteuid())
    return f"{name}@{platform.node()}"


def _not_found(unknown: Sequence[str], known: Sequence[str]) -> UsageError:
    return UsageError(
        "accept-unknown",
        "A change that is to be accepted was not found: --accept takes the code of a change that there is now",
        expected=", ".join(known) or "no --accept: there is no change",
        found=", ".join(unknown),
        hint=f"the changes and their codes: {command('check', 'FILE')}",
    )
