"""What other writers have in a Delta table, and what of it stays when the stream's rows are replaced.

Files that others added stay as long as no commit mixed their rows with the stream's: then the table without the files
of the batches is theirs. Where rows were updated or merged, or the log no longer shows who added a file, they cannot be
distinguished.
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
    """What a staged table starts with: the columns of ``table``, and ``files``, as a version has them.

    ``others`` is what others have in the real table and not here.
    """

    table: DeltaVersion
    files: frozenset[str]
    others: Others = NO_OTHERS


def base_after(location: str, log: DeltaLog, app: str | None, written: int, after: int) -> Base:
    """What a table staged after a batch starts with: what a cut would leave. Raises Refused where that is unknown.

    Before all batches nothing is refused: what cannot be kept is in ``others``.
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
    """Names the newest version that changed the table, as it is now: compaction and what was undone do not count."""
    for commit in backwards(log, log.versions().newest):
        if commit.restores is None and commit.changes_table:
            return f"version {commit.version}"
    return "version -1"


def _separate(location: str, span: Span) -> Base:
    now = DeltaVersion(location, span.target if span.by_restore else span.newest)
    written = set() if span.by_restore else {file.path for file in span.files()}
    return Base(now, frozenset(now.sizes()) - written)


def _mixed(location: str, log: DeltaLog, app: str, newest: int) -> Base:
    """Nothing is kept."""
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
    """The files that commits of the stream have added, as far as the log has them."""
    commits: Iterable[Commit] = (one for one in backwards(log, newest) if app in one.batches)
    return {file.path for commit in commits for file in commit.adds}
