"""Which commits of a Delta table wrote the batches after a given one, and how they can be taken out."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import chain

from slackwater.errors import Refused
from slackwater.sinks.delta.log import Commit, DataFile, DeltaLog


@dataclass(frozen=True, slots=True)
class Span:
    """The commits that wrote the batches after one batch, newest first, and others among them.

    ``target`` is the version before the first of them, -1 if the table did not exist then. ``others`` are the commits
    of other writers that changed the table meanwhile.
    """

    newest: int
    target: int
    own: tuple[Commit, ...]
    others: tuple[Commit, ...]
    all: tuple[Commit, ...]

    @property
    def by_restore(self) -> bool:
        """Whether the table as it was at ``target`` is what the cut must leave."""
        return not self.others and self.target >= 0

    def files(self) -> tuple[DataFile, ...]:
        """The files that the batches wrote and that the table still has, in the order they were written."""
        live: dict[str, DataFile] = {}
        for commit in reversed(self.all if self.by_restore else self.own):
            for path in commit.removes:
                live.pop(path, None)
            live.update((file.path, file) for file in commit.adds)
        return tuple(live.values())

    def rows(self) -> int | None:
        """The rows of these files, ``None`` if the batches also replaced rows, or if a file's rows are not recorded."""
        added = {file.path for commit in self.all for file in commit.adds}
        if any(path not in added for commit in self.all for path in commit.removes):
            return None
        counts = [file.rows for file in self.files()]
        known = [count for count in counts if count is not None]
        return sum(known) if len(known) == len(counts) else None

    def in_the_way(self) -> Commit | None:
        """The commit because of which the batches' files cannot be removed one by one; ``None`` if they can."""
        written = {file.path for commit in self.own for file in commit.adds}
        replaces = (commit for commit in self.own if commit.removes)
        took = (commit for commit in self.all if commit not in self.own and written & set(commit.removes))
        return next(chain(replaces, took), None)


def span_after(log: DeltaLog, app: str, batch: int) -> Span:
    """The commits of batches above ``batch``. Raises Refused where the log no longer has them."""
    newest = target = log.versions().newest
    own, others, seen = list[Commit](), list[Commit](), list[Commit]()
    for commit in _backwards(log, newest):
        written = commit.batches.get(app)
        if (written is not None and written <= batch) or _complete(own, app, batch):
            target = commit.version
            break
        if written is not None and "swap" in commit.note:
            raise _swapped_in(commit, batch)
        target = commit.version - 1
        if commit.restores is not None:
            continue
        seen.append(commit)
        if written is not None and not commit.note:
            own.append(commit)
        elif commit.changes_table:
            others.append(commit)
    else:
        if target >= 0 and not _complete(own, app, batch):
            raise _cleaned(target)
    return Span(newest, target, tuple(own), tuple(others), tuple(seen))


def _complete(own: list[Commit], app: str, batch: int) -> bool:
    return bool(own) and own[-1].batches[app] == batch + 1


def _backwards(log: DeltaLog, newest: int) -> Iterator[Commit]:
    """The commits that made the table what it is, newest first; what was undone since is left out."""
    version = newest
    while version >= 0:
        try:
            commit = log.commit(version)
        except FileNotFoundError:
            return
        yield commit
        version = version - 1 if commit.restores is None else commit.restores


def _swapped_in(commit: Commit, batch: int) -> Refused:
    operation = commit.note["swap"]
    return Refused(
        "sink-uncuttable",
        "The batches cannot be cut out of the Delta table: they were put in place by a swap, as one commit",
        where=f"version {commit.version}",
        expected=f"a commit of batch {batch + 1}",
        found=f"the swap of operation {operation}",
        hint=f"rebuild at the last written batch, which removes nothing, or undo: slackwater undo {operation}",
    )


def _cleaned(version: int) -> Refused:
    return Refused(
        "delta-log-cleaned",
        "The log of the Delta table no longer has the commits of all batches that would be cut",
        where=f"version {version}",
        hint="cut at a later batch; the table's property delta.logRetentionDuration decides how long commits are kept",
    )
