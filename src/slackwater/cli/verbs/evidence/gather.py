"""Examines a stream or checkpoint as ``doctor`` does, and reads its ledger records. Writes nothing."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from slackwater.cli.common.examine import Examined, Failed, examine, with_compared_code, with_errors
from slackwater.core.commands import command
from slackwater.core.errors import SlackwaterError
from slackwater.core.facts import Facts, HistoryFacts, Unknown
from slackwater.core.records import NEWEST_BATCHES, BatchRecord, OperationRecord, RunRecord, StreamRecord
from slackwater.core.settings import Settings
from slackwater.diagnose.doctor import diagnose
from slackwater.facts.collect import facts_of_location
from slackwater.ledger.home import Home
from slackwater.ledger.lease.view import end_of, view_of
from slackwater.ledger.ledger import Ledger
from slackwater.ledger.located import find_filed
from slackwater.ledger.workspace import open_workspace
from slackwater.storage.open import open_read_store

LEDGER_ERRORS = frozenset(
    {
        "ledger-lost",
        "ledger-missing",
        "ledger-unreadable",
        "ledger-unreachable",
        "ledger-locked",
        "ledger-version",
        "ledger-wal-unread",
        "stream-unknown",
    }
)
"""Errors after which ``stream.json`` names checkpoint and sink."""


@dataclass(frozen=True, slots=True)
class EvidenceRequest:
    target: str
    sink: str | None = None
    verify: bool = False
    messages: bool = False
    pipeline: str | None = None
    master: str | None = None
    conf: Mapping[str, str] = field(default_factory=dict)
    failed: Failed | None = None


@dataclass(frozen=True, slots=True)
class Recorded:
    """The ledger's records; ``runs`` and ``operations`` are oldest first. ``holder``: who may write now."""

    stream: StreamRecord
    place: str
    runs: tuple[RunRecord, ...]
    operations: tuple[OperationRecord, ...]
    batches: tuple[BatchRecord, ...]
    holder: str | None


@dataclass(frozen=True, slots=True)
class Gathered:
    examined: Examined
    recorded: Recorded | Unknown
    home: str
    problem: SlackwaterError | None = None


def gather(settings: Settings, request: EvidenceRequest) -> Gathered:
    again, problem = command("evidence", request.target, "--out", "bundle.zip"), None
    try:
        examined = examine(settings, request.target, request.sink, again, verify=request.verify)[0]
    except SlackwaterError as error:
        if error.code not in LEDGER_ERRORS:
            raise
        examined, problem = _without_ledger(settings, request, error), error
    if request.pipeline is not None:
        examined = with_compared_code((examined,), request.pipeline, settings, request.master, request.conf)[0]
    examined = with_errors(examined, request.failed)
    if not request.messages:
        examined = _without_messages(examined)
    recorded = _recorded(settings, examined, problem)
    return Gathered(examined, recorded, str(Home(settings.home).location), problem or examined.error)


def _without_ledger(settings: Settings, request: EvidenceRequest, error: SlackwaterError) -> Examined:
    filed = find_filed(Home(settings.home), request.target)
    if filed is None:
        raise error
    facts = facts_of_location(open_read_store(filed.location), filed.file.sink, thorough=request.verify)
    unknown = Unknown(f"the ledger cannot be read: {error.message}", error.hint)
    facts = facts._replace(name=filed.full_name, history=unknown)
    return Examined(facts.name, facts, diagnose(facts))


def _without_messages(examined: Examined) -> Examined:
    """Error messages of runs and outputs can have rows in them."""
    facts = examined.facts
    if facts is None:
        return examined
    last, history = facts.snapshot.last_run, facts.history
    silent = last._replace(reason=None) if last is not None else None
    refusal = facts.snapshot.last_refusal
    refused = refusal._replace(reason=None) if refusal is not None else None
    output, problem = facts.snapshot.output, facts.snapshot.output.unreadable
    unread = output._replace(unreadable=replace(problem, found=None)) if problem is not None else output
    blank: Facts = facts._replace(
        snapshot=facts.snapshot._replace(last_run=silent, last_refusal=refused, output=unread)
    )
    if isinstance(history, HistoryFacts):
        blank = blank._replace(history=history._replace(runs=tuple(run._replace(reason=None) for run in history.runs)))
    return replace(examined, facts=blank, diagnosis=diagnose(blank))


def _recorded(settings: Settings, examined: Examined, problem: SlackwaterError | None) -> Recorded | Unknown:
    facts = examined.facts
    if problem is not None:
        return Unknown(f"the ledger cannot be read: {problem.message}", problem.hint)
    if facts is not None and not facts.recorded:
        return facts.history if isinstance(facts.history, Unknown) else Unknown("the stream is not recorded")
    try:
        with open_workspace(settings) as workspace:
            return _read(workspace.ledger, examined.name)
    except SlackwaterError as error:
        return Unknown(f"the ledger cannot be read: {error.message}", error.hint)


def _read(ledger: Ledger, name: str) -> Recorded:
    lease = view_of(ledger.lease(name), ledger.now_ms())
    planned = max(ledger.newest_entry(name, "offsets"), 0)
    return Recorded(
        stream=ledger.stream(name),
        place=ledger.place,
        runs=tuple(run._replace(end=end_of(run, lease)) for run in ledger.runs(name)),
        operations=tuple(ledger.operations(name)),
        batches=tuple(ledger.batches(name, first=max(planned - NEWEST_BATCHES, 0))),
        holder=lease.record.purpose if lease.state in {"held", "only-jvm"} and lease.record is not None else None,
    )
