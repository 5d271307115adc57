"""The checkpoint of a LOCATION or STREAM: gathers and diagnoses facts, with a failure's text. Nothing is written."""

import re
import sys
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import replace
from io import TextIOWrapper
from pathlib import Path
from typing import TextIO

from slackwater.checkpoint.identify import require_checkpoint
from slackwater.cli.common.arguments import shortened
from slackwater.cli.common.console import parse_conf, say
from slackwater.core.checkpoint import Depth
from slackwater.core.commands import command
from slackwater.core.errors import NotFound, SlackwaterError, UsageError, unreachable
from slackwater.core.escaping import one_line
from slackwater.core.facts import Fact, Unknown
from slackwater.core.masking import mask
from slackwater.core.records import GenerationRecord
from slackwater.core.settings import Settings, load
from slackwater.core.sink import Identity
from slackwater.diagnose.catalogue import error_codes
from slackwater.diagnose.doctor import Diagnosis, diagnose
from slackwater.diagnose.error_texts import explained, recognise
from slackwater.facts.collect import facts_of_location, facts_of_stream
from slackwater.ledger.workspace import Workspace, generation_in_use, open_workspace, stream_at
from slackwater.sinks.common.registry import identity_at
from slackwater.storage.local import exists
from slackwater.storage.open import is_uri, open_read_store, resolved
from slackwater.storage.protocols import ReadStore

HEALTHY, FOUND, NOT_ALL_CHECKED = 0, 1, 5
PIECE = 1 << 16
_OWN = re.compile(r"(?:error |\S+: failed: )?(?P<code>[a-z][a-z0-9]*(?:-[a-z0-9]+)+): ")
"""A line that prints or records an error of Slackwater's own starts with its code."""
_READ = {
    "spark": re.compile(
        r"(?:\b[Ss]park(?: version)? |\bspark-(?:core|sql)_[\d.]{1,9}-)v?(\d{1,3}\.\d{1,3}\.\d{1,3})\b"
    ),
    "batch": re.compile(r"\b[Bb]atch(?:[ _]?[Ii]d)?[ =:]{1,3}(\d{1,18})\b"),
    "location": re.compile(
        r"[Cc]heckpoint ?(?:[Ll]ocation|root)?[ =:'\"]{1,4}((?:[a-z][a-z0-9+.-]{0,30}:)?/[^\s,;'\"()\[\]<>]+)"
    ),
}
"""Facts of the failed query in any text; a later line is of the newer failure."""


def resolve(target: str, settings: Settings) -> str | GenerationRecord | None:
    """A LOCATION as given, the generation in use of a STREAM, or ``None`` for neither.

    A location is a URI, or an existing path that names no stream; the path of a deleted checkpoint is its stream. A
    name without ``./`` that is both is the stream. With an unreadable ledger it is the path. Raises ``UsageError`` if
    several streams have the name.
    """
    is_there = _is_there(target)
    if is_there and (is_uri(target) or _is_path(target)):
        return target
    try:
        found = generation_in_use(settings, target)
    except UsageError:
        raise
    except SlackwaterError:
        if not is_there:
            raise
        return target
    if is_there:
        if found is None or resolved(found.location) == resolved(target):
            return target
        say(f"{target} is a stream of this home; the path of this name is ./{target}")
    return found


def location_of(target: str, home: str | None) -> str:
    """The location, or the stream's checkpoint in use. Raises ``NotFound``."""
    found = resolve(target, load(home=home))
    if found is None:
        raise _nothing(target)
    return found if isinstance(found, str) else found.location


def _is_there(target: str) -> bool:
    return is_uri(target) or exists(target)


def _is_path(target: str) -> bool:
    return target.startswith(("/", "./", "../", "~"))


def _nothing(target: str) -> NotFound:
    return NotFound(
        "no-checkpoint",
        "There is no path or stream with this name",
        where=target,
        hint=f"{command('status')} shows the streams of this home",
    )


def require_recorded(store: ReadStore, home: str | None) -> None:
    """Raises as ``require_reachable``; the hint names the stream."""
    try:
        require_reachable(store)
    except NotFound as error:
        with suppress(SlackwaterError):
            found = generation_in_use(load(home=home), store.location)
            if found is not None:
                error.hint = deleted_checkpoint_hint(found.stream)
        raise


def deleted_checkpoint_hint(stream: str) -> str:
    return f"the checkpoint of stream {stream} was here; what to do is shown by: {command('doctor', stream)}"


def require_reachable(store: ReadStore) -> None:
    """Read the root. Raises ``NotFound``, or ``EnvironmentMissing`` for an unreachable store."""
    try:
        require_checkpoint(store)
    except OSError as error:
        raise unreachable("The store", error, store.location) from error


def exit_code(examined: Sequence[Diagnosis]) -> int:
    """Findings take precedence over failed checks. A stream that cannot be read has not been checked."""
    if any(one.errors or one.own_codes or one.problems for one in examined):
        return FOUND
    missed = any(isinstance(one.facts, Unknown) or one.not_checked for one in examined)
    return NOT_ALL_CHECKED if missed else HEALTHY


def examine(
    settings: Settings, target: str | None, sink: str | None, again: str, depth: Depth = "start"
) -> tuple[Diagnosis, ...]:
    """Diagnose a checkpoint or stream, or all streams. ``again`` is the command without ``--sink``. Raises NotFound for
    an unknown target, UsageError for a ``sink`` of a stream, whose output is recorded.
    """
    if sink is not None:
        if target is None or not _is_there(target):
            raise UsageError(
                "sink-of-stream",
                "--sink is only for a checkpoint that is not recorded: the output of a stream is known",
                found=target or "no LOCATION",
                hint=f"leave --sink out: {again}",
            )
        return (_not_recorded(target, sink, depth),)
    if target is not None:
        place = resolve(target, settings)
        if isinstance(place, str):
            return (_recorded_at(place, settings, depth) or _not_recorded(place, None, depth),)
        if place is None and _is_path(target):
            raise _nothing(target)
        with open_workspace(settings) as workspace:
            return (_examined(workspace, target if place is None else place.stream, depth),)
    with open_workspace(settings) as workspace:
        found = tuple(_examined(workspace, name, depth) for name in workspace.ledger.stream_names())
    if not found:
        raise NotFound(
            "no-stream",
            "No stream has run in this home yet",
            where=str(settings.home),
            hint=f"{command('doctor', 'LOCATION')} examines any checkpoint",
        )
    return found


def with_compared_code(
    examined: tuple[Diagnosis, ...],
    pipeline: str | None,
    settings: Settings,
    master: str | None,
    conf: list[str] | None,
) -> tuple[Diagnosis, ...]:
    """Compares the code of a pipeline with the kept state, if one is given."""
    if pipeline is None:
        if master is not None or conf:
            hint = "add --pipeline"
            raise UsageError("usage", "--master and --conf are for --pipeline, which starts Spark", hint=hint)
        return examined
    from slackwater.cli.common.comparison import with_code  # noqa: PLC0415 - brings what starts Spark

    return with_code(examined, pipeline, settings, master, parse_conf(conf))


def _recorded_at(location: str, settings: Settings, depth: Depth) -> Diagnosis | None:
    try:
        with open_workspace(settings) as workspace:
            stream = stream_at(workspace.ledger, location)
            return None if stream is None else _examined(workspace, stream.full_name, depth)
    except SlackwaterError as error:
        if not isinstance(error, NotFound) or error.code == "ledger-lost":
            # It does not keep the files from being examined.
            say(f"the ledger of this home cannot be read, and the checkpoint is examined as not recorded: {error}")
        return None


def _not_recorded(location: str, sink: str | None, depth: Depth) -> Diagnosis:
    store = open_read_store(location)
    require_reachable(store)
    return diagnose(facts_of_location(store, named_sink(sink) if sink is not None else None, depth))


def named_sink(sink: str) -> Fact[Identity]:
    """An unreachable output does not prevent the examination of the checkpoint."""
    try:
        return require_output(sink, "not checked")
    except OSError as error:
        return Unknown(
            f"the output at {sink} cannot be listed: {mask(str(error))}",
            "check its address, the network and the credentials of this user",
        )


def require_output(sink: str, otherwise: str) -> Identity:
    """The output at a location. Raises OSError, and NotFound with ``otherwise`` in its hint."""
    found = identity_at(sink)
    if found is None:
        raise NotFound(
            "no-output",
            "No known kind of output is at this location",
            where=sink,
            expected="the log of Spark's file sink, of a Delta table or of an Iceberg table",
            found="none of these",
            hint=f"leave --sink out: what needs the output is then reported as {otherwise}",
        )
    return found


def _examined(workspace: Workspace, name: str, depth: Depth) -> Diagnosis:
    stream = workspace.ledger.find_stream(name)
    try:
        return diagnose(facts_of_stream(workspace, stream, depth))
    except SlackwaterError as error:
        problem = error
    except OSError as error:
        problem = unreachable(f"The checkpoint of stream {stream.full_name}", error)
    return Diagnosis(stream.full_name, Unknown(str(problem), problem.hint, problem))


def read_failed(file: str) -> Diagnosis:
    """The text of a failure. ``-`` is stdin. Raises NotFound for a file that cannot be read."""
    if file == "-":
        if isinstance(sys.stdin, TextIOWrapper):
            # A log can have any bytes, as a file has them below.
            sys.stdin.reconfigure(encoding="utf-8", errors="replace")
        return _failed(file, _pieces(sys.stdin))
    try:
        with Path(file).open(encoding="utf-8", errors="replace") as text:
            return _failed(file, _pieces(text))
    except OSError as error:
        raise NotFound(
            "error-file",
            "The file with the text of a failure cannot be read",
            where=shortened(file),
            found=str(error.strerror or error),
            hint="give the log of the driver, or - and the text on stdin",
        ) from error


def with_errors(examined: Diagnosis, given: Diagnosis | None) -> Diagnosis:
    """Adds the causes of the ``given`` failure, or else of the last run's."""
    failed = given
    if failed is None:
        run = None if isinstance(examined.facts, Unknown) else examined.facts.snapshot.last_run
        if run is None or run.end != "failed" or not run.reason:
            return examined
        failed = _failed(examined.name, (run.reason,))
    return replace(
        examined,
        errors=explained(failed.errors, None if isinstance(examined.facts, Unknown) else examined),
        own_codes=failed.own_codes,
        unrecognised=given is not None and given.unrecognised,
        read=failed.read,
    )


def _failed(name: str, lines: Iterable[str]) -> Diagnosis:
    """Separates errors of Slackwater's own, whose codes have the meaning of their words."""
    codes: dict[str, None] = {}
    read: dict[str, str] = {}

    def others() -> Iterator[str]:
        """The other lines, and an empty line for each of the rest, so that line numbers stay."""
        is_own = False
        for line in lines:
            match = _OWN.match(line)
            if match is not None and match["code"] in error_codes():
                codes[match["code"]], is_own = None, True
            else:
                # A line that is too long comes in pieces; the hint of an error follows it.
                is_own = is_own and line.startswith("hint: ")
            found = {name: pattern.search(line) for name, pattern in _READ.items()}
            read.update({name: one_line(mask(one[1].rstrip(".:"))) for name, one in found.items() if one})
            yield "\n" if is_own else line

    errors, facts = recognise(others()), Unknown("no checkpoint and no stream was given")
    return Diagnosis(name, facts, errors=errors, own_codes=tuple(codes), unrecognised=not (errors or codes), read=read)


def _pieces(text: TextIO) -> Iterator[str]:
    while piece := text.readline(PIECE):
        yield piece
