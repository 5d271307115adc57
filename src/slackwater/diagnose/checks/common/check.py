"""The type of a check: a known problem, and the function that looks for it and explains it."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import Enum, auto
from itertools import pairwise
from typing import Any, Generic, Literal, NamedTuple, TypeAlias, TypeVar

from slackwater.core.commands import command, rebuild_command
from slackwater.core.escaping import quoted
from slackwater.core.facts import CheckpointSeen, Facts, Finding, Risk, Severity, SourceFacts, Unknown
from slackwater.core.records import BatchRecord
from slackwater.core.snapshot import Snapshot
from slackwater.diagnose.checks.common.snapshot import as_possible
from slackwater.sources import kind_of
from slackwater.sources.common.contract import SourceRange

DAMAGED = 3
REFUSED = 5
FAILED = 7

HEADINGS = ("Condition", "Effect", "How to confirm", "Remedy", "Safety", "References")
"""The page of a check has them after its first paragraph, each at the start of a line and with a colon."""

_HEADING = re.compile(rf"^({'|'.join(HEADINGS)}): ", re.MULTILINE)

Certainty = Literal["certain", "likely", "possible"]
Need = Literal[
    "sink", "history", "code", "source-files", "read-files", "source-shapes", "positions", "renames", "settings"
]
Goal = Literal["resume", "rebuild", "replay", "backfill", "reset"]
About = Literal["operation", "identity", "marker", "stream", "last-run", "query"]
"""The subject of a finding, for callers that refuse or leave out only one subject."""

_SHAPES = Unknown("the query's sources are recorded by a run only, and none has recorded them")

CODE = re.compile(r"SW-([A-Z]+)-([0-9]{3})")

Subject = TypeVar("Subject")


class When(Enum):
    """Whether a number line check can compare.

    ``ALWAYS``: it compares no marks. ``COMPARABLE``: it compares marks or files, which change while a process writes,
    and are wrong after a lost marker. ``IN_ORDER``: it reports how the stream continues, if no check found a stop or
    failure.
    """

    ALWAYS = auto()
    COMPARABLE = auto()
    IN_ORDER = auto()


class Found(NamedTuple):
    """What a check yields, without empty fields.

    ``next`` is a command of ``core/commands``. ``damage`` has paths that the finding explains: if it has all,
    ``checkpoint-damaged`` is left out. ``facts`` are for JSON. ``code``, ``risk`` and ``goal`` are set if they depend
    on what was found.
    """

    text: str
    next: str | None = None
    advice: str | None = None
    where: str | None = None
    expected: str | None = None
    found: str | None = None
    at_stake: str | None = None
    damage: Iterable[str] = ()
    facts: Mapping[str, Any] | None = None
    code: str | None = None
    risk: Risk | None = None
    goal: str | None = None


Findings: TypeAlias = Iterator[Found]


class Diagnosed(NamedTuple):
    finding: Finding
    certainty: Certainty
    at_stake: str | None
    facts: dict[str, Any]
    covers: tuple[str, ...]
    damage: frozenset[str] = frozenset()


class NotChecked(NamedTuple):
    """A check without its facts: nothing is known, neither good nor bad."""

    code: str
    meaning: str
    reason: str
    how: str | None


def _nothing(_: object) -> Findings:
    return iter(())


@dataclass(frozen=True)
class Check(Generic[Subject]):
    """A known problem, and the decorator of its function on a snapshot or all facts.

    ``also`` are further codes of failures. ``ends_with`` is the exit code of ``status``, by default ``REFUSED`` for a
    stop.

    Of the number line: ``order`` is lowest for the most urgent. ``from_plan``: it rests on the last run's recorded
    plan; others rest on files and ids. ``on_output``: it compares the output.

    Of all facts: without ``needs`` nothing can be said. ``explains``: codes of the number line's findings that it says
    more exactly. ``at_start``: a start looks for it, and is refused by a stop; it needs only facts of
    ``facts_of_start``.
    """

    code: str
    severity: Severity
    risk: Risk = "none"
    goal: Goal | None = None
    certainty: Certainty = "certain"
    also: tuple[str, ...] = ()
    ends_with: int | None = None
    order: int = 0
    when: When = When.COMPARABLE
    about: About = "stream"
    from_plan: bool = False
    on_output: bool = False
    needs: tuple[Need, ...] = ()
    explains: tuple[str, ...] = ()
    at_start: bool = False
    find: Callable[[Subject], Findings] = _nothing
    page: str = ""

    def __call__(self, find: Callable[[Subject], Findings]) -> Check[Subject]:
        """The function's docstring is the page."""
        return replace(self, find=find, page=inspect.getdoc(find) or "")

    @property
    def exit_code(self) -> int:
        if self.ends_with is not None:
            return self.ends_with
        return REFUSED if self.severity is Severity.STOP else 0

    @property
    def covers(self) -> tuple[str, ...]:
        """Codes of failures: ``LOG-06`` of ``SW-LOG-006``, and others."""
        match = CODE.fullmatch(self.code)
        return self.also if match is None else (f"{match[1]}-{int(match[2]):02}", *self.also)

    @property
    def meaning(self) -> str:
        return " ".join(self.page.partition("\n\n")[0].split())

    @property
    def sections(self) -> dict[str, str]:
        """The sections by heading, each as one paragraph."""
        parts = _HEADING.split(self.page)[1:]
        return {heading: " ".join(text.split()) for heading, text in zip(parts[::2], parts[1::2], strict=True)}

    def finding(self, found: Found) -> Finding:
        return Finding(
            found.code or self.code,
            self.severity,
            found.text,
            risk=found.risk or self.risk,
            goal=found.goal or self.goal,
            next=found.next or None,
            advice=found.advice or None,
            where=found.where or None,
            expected=found.expected or None,
            found=found.found or None,
            exit_code=self.exit_code,
        )

    def findings(self, subject: Subject) -> Iterator[Finding]:
        return map(self.finding, self.find(subject))


check, rule = Check[Facts], Check[Snapshot]
"""Decorators. Rules are the checks of the number line."""


def diagnosed(one: Check[Facts], facts: Facts) -> Iterator[Diagnosed]:
    """Findings of a check with no ``missing`` facts."""
    for found in one.find(facts):
        finding = one.finding(found if facts.recorded else found._replace(next=None))
        yield Diagnosed(
            as_possible(finding, facts.snapshot),
            one.certainty,
            found.at_stake or None,
            dict(found.facts or {}),
            one.covers,
            frozenset(found.damage),
        )


def missing(one: Check[Facts], facts: Facts) -> Unknown | None:
    return next((unknown for need in one.needs if (unknown := _missing(need, facts))), None)


def _missing(need: Need, facts: Facts) -> Unknown | None:
    match need:
        case "sink":
            return _if_unknown(facts.sink)
        case "history":
            return _if_unknown(facts.history)
        case "code":
            return _if_unknown(facts.code)
        case "source-files" | "read-files" | "positions":
            of_sources = map(_OF_A_SOURCE[need], facts.sources)
            return next((one for fact in of_sources if (one := _if_unknown(fact))), None)
        case "settings":
            is_compared = facts.code is not None and not isinstance(facts.code, Unknown)
            return None if is_compared else _if_unknown(facts.history)
        case "renames":
            return None if facts.checkpoint.atomic_rename else _if_unknown(facts.history)
        case "source-shapes":
            return _SHAPES if any(source.shape is None for source in facts.sources) else None


_OF_A_SOURCE: Mapping[str, Callable[[SourceFacts], object]] = {
    "source-files": lambda source: source.missing_files,
    "read-files": lambda source: source.removed_files,
    "positions": lambda source: source.unserved,
}


def _if_unknown(fact: object) -> Unknown | None:
    return fact if isinstance(fact, Unknown) else None


_ID_CHECKSUM = ".metadata.crc"


def resume(facts: Facts) -> str:
    """Plans the least change after which a start is exact."""
    return command("plan", "resume", facts.name)


def rebuild(facts: Facts) -> str:
    return rebuild_command(facts.snapshot)


def replay_from(facts: Facts, batch: int) -> str:
    """Processes batches from this one on again; an output that cannot be cut keeps its rows."""
    kept = () if facts.snapshot.output.can_cut else ("--output", "keep")
    return command("plan", "replay", facts.name, "--from", f"batch:{batch}", *kept, *facts.snapshot.stream.session)


def move_away(checkpoint: CheckpointSeen, path: str) -> str:
    """Moves a log file with Hadoop's checksum out of the checkpoint; nothing is deleted."""
    folder, _, name = path.rpartition("/")
    root = checkpoint.location.rstrip("/")
    if "://" in root:
        return f"move {root}/{path} to a folder outside of the checkpoint"
    hidden = f"{folder}/.{name}.crc"
    names = [path, hidden] if checkpoint.has(hidden) else [path]
    files = " ".join(quoted(f"{root}/{one}") for one in names)
    removed = quoted(f"{root}.removed/{folder}")
    return f"mkdir -p {removed} && mv -n {files} {removed}/"


def move_checkpoint_away(checkpoint: CheckpointSeen) -> str:
    """Moves the checkpoint next to itself, so that its query starts with a new one."""
    root = checkpoint.location.rstrip("/")
    if "://" in root:
        return f"move {root} to a different place"
    return f"mv -n {quoted(root)} {quoted(root + '.removed')}"


def write_query_id(checkpoint: CheckpointSeen, query_id: str | None) -> str:
    """Writes ``metadata`` as Spark does, or where to find the id. Hadoop's checksum is removed first: its local file
    system refuses other bytes.
    """
    root = checkpoint.location.rstrip("/")
    checksum = f"{root}/{_ID_CHECKSUM}" if checkpoint.has(_ID_CHECKSUM) else None
    if query_id is None or "://" in root:
        known = query_id or "the id of the query, which its driver log and its progress events have as id"
        delete = f"delete {checksum}, the checksum of the file before, and " if checksum else ""
        return f'{delete}write {{"id":"<id>"}} into {root}/metadata, without a line break; the id is {known}'
    content = f'{{"id":"{query_id}"}}'
    delete = f"rm -f {quoted(checksum)} && " if checksum else ""
    return f"{delete}printf %s {quoted(content)} > {quoted(root + '/metadata')}"


UNPARSED = frozenset({"empty", "torn", "foreign", "unreadable"})
"""Damage of an entry that no Spark can parse."""


def has_gaps_by_design(checkpoint: CheckpointSeen) -> bool:
    """Whether both logs lack the same batches, as asynchronous progress tracking leaves them (performance tips)."""
    offsets, commits = set(checkpoint.offset_ids), set(checkpoint.commit_ids)
    # The newest planned batch may not be committed yet.
    if not commits or (offsets ^ commits) - {max(offsets, default=-1)}:
        return False
    return len(commits) < max(commits) - min(commits) + 1


def unplanned_commits(checkpoint: CheckpointSeen) -> tuple[int, ...]:
    """Batches in ``commits/`` newer than all of ``offsets/``, without strays."""
    strays = {number for folder, number in strays_in_logs(checkpoint) if folder == "commits"}
    return tuple(one for one in checkpoint.commit_ids if one > checkpoint.planned and one not in strays)


def strays_in_logs(checkpoint: CheckpointSeen) -> Iterator[tuple[str, int]]:
    """A newest entry far behind all others of both logs: no query has written it."""
    if has_gaps_by_design(checkpoint):
        return
    for folder, ids, others in (
        ("offsets", checkpoint.offset_ids, checkpoint.commit_ids),
        ("commits", checkpoint.commit_ids, checkpoint.offset_ids),
    ):
        if len(ids) > 1 and others and ids[-1] - 1 > max(ids[-2], others[-1] + 1):
            yield folder, ids[-1]


def strays_in_sources(facts: Facts) -> Iterator[tuple[str, int]]:
    """The newest entry of a source's log, behind a gap, that no batch has read."""
    for source in facts.sources:
        last = kind_of(source.end, {}).cut_entry(source.end)
        if last is not None and len(source.entries) > 1 and source.entries[-1] - 1 > max(source.entries[-2], last):
            yield f"sources/{source.name}", source.entries[-1]


def with_rows(facts: Facts, most: int) -> tuple[BatchRecord, ...]:
    """Returns at most so many newest batches that read rows."""
    batches = [one for one in facts.batches if one.input_rows][-most:]
    return tuple(batches) if len(batches) == most else ()


def lag_of(batch: BatchRecord) -> int | None:
    """Rows beyond the batch's end; ``None`` where no source reports them (file sources do not)."""
    known = [rows for rows in rows_ahead(batch) if rows is not None]
    return sum(known) if known else None


def rows_ahead(batch: BatchRecord) -> Sequence[int | None]:
    """The rows by source; ``None`` where offsets do not determine them."""
    return [
        kind_of(source.end, {}).rows(SourceRange(str(index), source.end, source.latest))
        for index, source in enumerate(batch.sources)
    ]


def never_falls(numbers: list[int]) -> bool:
    return all(before <= after for before, after in pairwise(numbers))
