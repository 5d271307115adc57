"""Gathers and diagnoses the facts of streams or of one checkpoint. Nothing is written."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from slackwater.cli.common.console import say
from slackwater.cli.common.targets import is_location, is_there, require_no_path, require_reachable
from slackwater.core.commands import command
from slackwater.core.errors import NotFound, SlackwaterError, UsageError, unreachable
from slackwater.core.facts import Fact, Facts, Unknown
from slackwater.core.masking import mask
from slackwater.core.settings import Settings
from slackwater.diagnose.causes import ExplainedError
from slackwater.diagnose.doctor import Diagnosis, diagnose
from slackwater.facts.collect import facts_of_location, facts_of_stream
from slackwater.ledger.located import stream_at
from slackwater.ledger.workspace import Workspace, open_workspace
from slackwater.sinks.common.registry import Identity, identity_at
from slackwater.storage.open import open_read_store

HEALTHY, FOUND, NOT_ALL_CHECKED = 0, 1, 5


@dataclass(frozen=True, slots=True)
class Examined:
    """A stream or checkpoint with its diagnosis, or the error why it could not be read.

    ``errors`` are causes of the given failure text, or of the last run's failure; ``own_codes`` are Slackwater's errors
    in that text. ``unrecognised``: it has no known failure; ``read`` is what it says of the query.
    """

    name: str
    facts: Facts | None = None
    diagnosis: Diagnosis | None = None
    error: SlackwaterError | None = None
    errors: tuple[ExplainedError, ...] = ()
    own_codes: tuple[str, ...] = ()
    unrecognised: bool = False
    read: Mapping[str, str] = field(default_factory=dict, hash=False)

    @property
    def exit_code(self) -> int:
        """A stream that cannot be read has not been checked."""
        if self.errors or self.own_codes:
            return FOUND
        if self.diagnosis is None:
            return NOT_ALL_CHECKED
        if self.diagnosis.problems:
            return FOUND
        return NOT_ALL_CHECKED if self.diagnosis.not_checked else HEALTHY


def exit_code(examined: Sequence[Examined]) -> int:
    """Findings take precedence over what could not be checked."""
    codes = {one.exit_code for one in examined}
    return next((code for code in (FOUND, NOT_ALL_CHECKED) if code in codes), HEALTHY)


def examine(
    settings: Settings, target: str | None, sink: str | None, again: str, *, verify: bool = False
) -> tuple[Examined, ...]:
    """Diagnose a checkpoint or stream, or all streams.

    ``again`` is the command without ``--sink``. Raises NotFound for an unknown target, UsageError for a ``sink`` of a
    stream, whose output is recorded.
    """
    if target is not None and (is_there(target) if sink is not None else is_location(target, settings)):
        return (_location(target, sink, settings, verify=verify),)
    if sink is not None:
        raise UsageError(
            "sink-of-stream",
            "--sink is for a checkpoint that Slackwater has not recorded: of a stream the output is recorded",
            found=target or "no LOCATION",
            hint=f"leave --sink out: {again}",
        )
    if target is not None:
        deleted = _recorded_at(target, settings, verify=verify)
        if deleted is not None:
            return (deleted,)
        require_no_path(target)
    with open_workspace(settings) as workspace:
        if target is not None:
            return (_examined(workspace, target, verify=verify),)
        found = tuple(_examined(workspace, name, verify=verify) for name in workspace.ledger.stream_names())
    if not found:
        raise NotFound(
            "no-stream",
            "No stream has run in this home yet",
            where=str(settings.home),
            hint=f"{command('doctor', 'LOCATION')} examines any checkpoint",
        )
    return found


def with_compared_code(
    examined: Sequence[Examined], pipeline: str, settings: Settings, master: str | None, spark: Mapping[str, str]
) -> tuple[Examined, ...]:
    """Adds the comparison of code. Raises PipelineError for a file that cannot be loaded."""
    from slackwater.cli.common.comparison import with_code  # noqa: PLC0415 - brings what starts Spark

    return with_code(examined, pipeline, settings, master, spark)


def _location(location: str, sink: str | None, settings: Settings, *, verify: bool) -> Examined:
    try:
        recorded = _recorded_at(location, settings, verify=verify) if sink is None else None
    except SlackwaterError as error:
        # It does not keep the files from being examined.
        say(f"the ledger of this home cannot be read, and the checkpoint is examined as not recorded: {error}")
        recorded = None
    if recorded is not None:
        return recorded
    store = open_read_store(location)
    require_reachable(store)
    facts = facts_of_location(store, named_sink(sink) if sink is not None else None, thorough=verify)
    return Examined(facts.name, facts, diagnose(facts))


def _recorded_at(location: str, settings: Settings, *, verify: bool) -> Examined | None:
    """The stream whose checkpoint in use is, or was, at the location."""
    try:
        with open_workspace(settings) as workspace:
            stream = stream_at(workspace.ledger, location)
            return None if stream is None else _examined(workspace, stream.full_name, verify=verify)
    except NotFound as error:
        if error.code == "ledger-lost":
            raise
        return None


def named_sink(sink: str) -> Fact[Identity]:
    """An unreachable output does not keep the checkpoint from being examined."""
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
            "There is no output of a known kind at this location",
            where=sink,
            expected="the log of Spark's file sink, of a Delta table or of an Iceberg table",
            found="none of these",
            hint=f"leave --sink out: what needs the output is then reported as {otherwise}",
        )
    return found


def _examined(workspace: Workspace, name: str, *, verify: bool = False) -> Examined:
    stream = workspace.ledger.find_stream(name)
    try:
        facts = facts_of_stream(workspace, stream, thorough=verify)
    except SlackwaterError as error:
        return Examined(stream.full_name, error=error)
    except OSError as error:
        return Examined(stream.full_name, error=unreachable(f"The checkpoint of stream {stream.full_name}", error))
    return Examined(stream.full_name, facts, diagnose(facts))
