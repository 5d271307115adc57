"""Finds other writers' rows in a Delta table, and those that survive a replacement of the stream's rows.

Files added by others survive while no commit mixed the rows. After updates or merges, or if the log forgot a file's
origin, they are indistinguishable.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from slackwater.core.errors import Refused
from slackwater.core.marks import NONE_YET
from slackwater.core.sink import NO_OTHERS, Others
from slackwater.sinks.delta import cutting
from slackwater.sinks.delta.log import Commit, DeltaLog
from slackwater.sinks.delta.span import Span, backwards, span_after, written_by
from slackwater.sinks.delta.table import DeltaVersion


@dataclass(frozen=True, slots=True)
class Base:
    """The start of a staged table: columns of ``table``, and ``files``.

    ``others`` is only in the real table.
    """

    table: DeltaVersion
    files: frozenset[str]
    others: Others = NO_OTHERS


def base_after(location: str, log: DeltaLog, app: str | None, written: int, after: int) -> Base:
    """The result of a cut after the batch. Raises Refused if unknown.

    Nothing is refused before all batches: lost rows are in ``others``.
    """
    newest = log.versions().newest
    if app is None or written <= after:
        now = DeltaVersion(location, newest)
        return Base(now, frozenset(now.sizes()))
    try:
        span = span_after(log, app, after)
        if not span.by_restore:
            cutting.check_files_removable(location, span)
    except Refused:
        if after > NONE_YET:
            raise
        return _mixed(location, log, app, newest)
    return _separate(location, span)


def state_of(log: DeltaLog) -> str:
    """The newest version with a change; compactions and undone changes do not count."""
    for commit in backwards(log, log.versions().newest):
        if commit.restores is None and commit.changes_table:
            return f"version {commit.version}"
    return "version -1"


def _separate(location: str, span: Span) -> Base:
    now = DeltaVersion(location, span.target if span.by_restore else span.newest)
    written = set() if span.by_restore else {file.path for file in span.files()}
    return Base(now, frozenset(now.sizes()) - written)


def _mixed(location: str, log: DeltaLog, app: str, newest: int) -> Base:
    now = DeltaVersion(location, newest)
    try:
        span = span_after(log, app, NONE_YET)
    except Refused:
        unknown = len(now.sizes().keys() - _known_files(log, app, newest))
        return Base(now, frozenset(), Others(None if unknown else 0, unknown, sure=False))
    others = [commit for commit in span.others if commit.changes_rows]
    if others or span.target < 0:
        return Base(now, frozenset(), written_by(others))
    before = DeltaVersion(location, span.target)
    return Base(before, frozenset(before.sizes()))


def _known_files(log: DeltaLog, app: str, newest: int) -> set[str]:
    commits: Iterable[Commit] = (one for one in backwards(log, newest) if app in one.batches)
    return {file.path for commit in commits for file in commit.adds}
