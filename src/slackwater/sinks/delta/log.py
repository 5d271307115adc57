"""A Delta table's log, from JSON entries only: versions, commits, and how to remove the commits of batches.

Format: Delta Lake's PROTOCOL.md, sections "Delta Log Entries", "Checkpoints" and "Actions". A cut or swap ends the
effect of older commits of its batches. Swapped-in batches are a single commit, whose note has each batch's files.
Files added again under new names belong to their original commits.
"""

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain
from typing import Any
from urllib.parse import unquote

from slackwater.core.commands import command
from slackwater.core.errors import FormatError, Refused
from slackwater.core.sink import Others
from slackwater.sinks.common.contract import WITHOUT_CUT, uncuttable
from slackwater.storage.protocols import ReadStore

FOLDER = "_delta_log"
NOTE = "slackwater"
"""The key in ``commitInfo`` of Slackwater's note about its own commit, as a JSON string."""
KEPT = "kept"
"""The key in a note for files that the commit added again under other names, with rows that the table had before."""

_COMMIT = re.compile(r"(\d{20})\.json")
_CHECKPOINT = re.compile(r"(\d{20})\.checkpoint\..*parquet|(\d{20})\.checkpoint\..*json")
_COPIED = ("numCopiedRows", "numTargetRowsCopied", "num_copied_rows", "num_target_rows_copied")
_TXN = b'{"txn"'


@dataclass(frozen=True, slots=True)
class DataFile:
    """A data file. ``rows`` is ``None`` if the commit does not show it.

    ``path`` is decoded; ``partition`` has values as in the log. ``statistics`` are JSON; they and ``modified_ms`` are
    only of files of a ``DeltaVersion``.
    """

    path: str
    size: int
    rows: int | None
    partition: Mapping[str, str | None] = field(default_factory=dict)
    modified_ms: int = 0
    statistics: str = ""


@dataclass(frozen=True, slots=True)
class Commit:
    """A commit. ``batches`` are its transactions: application id to batch.

    ``changes_table``: rows, schema, properties or protocol, unlike compaction. ``changes_rows``: it added or removed
    rows. ``copied`` are rows only copied from removed to added files.
    """

    version: int
    batches: Mapping[str, int] = field(default_factory=dict)
    adds: tuple[DataFile, ...] = ()
    removes: tuple[str, ...] = ()
    changes_table: bool = False
    changes_rows: bool = False
    copied: int = 0
    note: Mapping[str, object] = field(default_factory=dict)

    @property
    def rows(self) -> int | None:
        counts = [file.rows for file in self.adds]
        known = [count for count in counts if count is not None]
        return max(sum(known) - self.copied, 0) if len(known) == len(counts) else None

    @property
    def restores(self) -> int | None:
        version = self.note.get("restores")
        return version if isinstance(version, int) else None


@dataclass(frozen=True, slots=True)
class Versions:
    """Versions with an entry, in order, and the newest checkpoint; -1 for none."""

    commits: tuple[int, ...]
    checkpoint: int

    @property
    def newest(self) -> int:
        return max(self.checkpoint, self.commits[-1] if self.commits else -1)

    def missing(self) -> tuple[int, ...]:
        """Missing entries without which the table cannot be read."""
        known = set(self.commits)
        return tuple(one for one in range(self.checkpoint + 1, self.newest + 1) if one not in known)


class DeltaLog:
    def __init__(self, store: ReadStore) -> None:
        self._store = store

    def versions(self) -> Versions:
        names = [entry.name for entry in self._store.list(FOLDER)]
        commits = sorted(int(match[1]) for name in names if (match := _COMMIT.fullmatch(name)))
        checkpoints = (int(match[1] or match[2]) for name in names if (match := _CHECKPOINT.fullmatch(name)))
        return Versions(tuple(commits), max(checkpoints, default=-1))

    def batches(self, version: int) -> Mapping[str, int]:
        # Each line is one action and starts with its name, so that the lines of thousands of files need not be parsed.
        lines = [line for line in self._lines(version) if line.startswith(_TXN)]
        return _batches(version, (_action(version, line) for line in lines))

    def commit(self, version: int) -> Commit:
        actions = [_action(version, line) for line in self._lines(version)]
        if not actions:
            raise _malformed(version, "an empty file")
        try:
            adds = [action["add"] for action in actions if "add" in action]
            removes = [action["remove"] for action in actions if "remove" in action]
            info: Mapping[str, Any] = next((action["commitInfo"] for action in actions if "commitInfo" in action), {})
            note = json.loads(info[NOTE]) if isinstance(info.get(NOTE), str) else {}
            note = note if isinstance(note, dict) else {}
            changes_rows = any(file.get("dataChange", True) for file in (*adds, *removes))
            metrics = info.get("operationMetrics")
            copied = [str(metrics.get(name)) for name in _COPIED] if isinstance(metrics, Mapping) else []
            files = list[DataFile]()
            for add in adds:
                # With a deletion vector some of the file's rows do not count.
                stats = add.get("stats") if not add.get("deletionVector") else None
                rows = json.loads(stats).get("numRecords") if stats else None
                rows = rows if isinstance(rows, int) else None
                files.append(DataFile(unquote(add["path"]), int(add["size"]), rows, add.get("partitionValues") or {}))
            return Commit(
                version,
                _batches(version, iter(actions)),
                tuple(file for file in files if file.path not in note.get(KEPT, ())),
                tuple(unquote(remove["path"]) for remove in removes),
                changes_rows or any("metaData" in action or "protocol" in action for action in actions),
                changes_rows,
                sum(int(number) for number in copied if number.isdecimal()),
                note,
            )
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            raise _malformed(version, repr(error)) from error

    def _lines(self, version: int) -> list[bytes]:
        return [line for line in self._store.read(entry_path(version)).split(b"\n") if line.strip()]


def kept_below(operation: object) -> str:
    """The folder below the table for files that a swap added again (``KEPT``)."""
    # No hidden folder, which VACUUM would never clean.
    return f"slackwater-{operation}"


def entry_path(version: int) -> str:
    return f"{FOLDER}/{version:020}.json"


def _action(version: int, line: bytes) -> dict[str, Any]:
    try:
        action = json.loads(line)
    except (ValueError, RecursionError) as error:
        raise _malformed(version, repr(line[:60])) from error
    if not isinstance(action, dict):
        raise _malformed(version, repr(line[:60]))
    return action


def _batches(version: int, actions: Iterator[dict[str, Any]]) -> Mapping[str, int]:
    try:
        return {action["txn"]["appId"]: int(action["txn"]["version"]) for action in actions if "txn" in action}
    except (KeyError, TypeError, ValueError) as error:
        raise _malformed(version, "a transaction without appId and version") from error


def _malformed(version: int, found: str) -> FormatError:
    return FormatError(
        "delta-log",
        "An entry of the log of a Delta table is malformed",
        where=entry_path(version),
        expected="one JSON action in each line",
        found=found,
    )


class DeltaSpan:
    """The commits of ``app``'s batches above ``batch``, and other commits since, newest first.

    ``target`` is the version before the first, -1 without a table. ``others`` changed the table. ``divided``: the first
    batch was swapped in, so no version is the table before it. Raises Refused if the log has forgotten a commit.
    """

    def __init__(self, log: DeltaLog, app: str, batch: int, newest: int | None = None) -> None:
        self.newest = log.versions().newest if newest is None else newest
        self.own: list[Commit] = []
        self.others: list[Commit] = []
        self.all: list[Commit] = []
        self.divided = False
        self._app, self._batch = app, batch
        # Older commits count up to this batch (``None``: all), under the present names of their files.
        self._left: int | None = None
        self._moved: dict[str, str] = {}
        self.target = self.newest
        for commit in backwards(log, self.newest):
            written = commit.batches.get(app)
            if self._is_complete or (written is not None and written <= batch):
                self.target = commit.version
                return
            self.target = commit.version - 1
            self._take(commit, written)
            if self.divided:
                return
        if self.target >= 0 and not self._is_complete:
            raise Refused(
                "delta-log-cleaned",
                "The log of the Delta table no longer has the commits of all batches that would be cut",
                where=f"version {self.target}",
                hint="cut at a later batch; the table's property delta.logRetentionDuration decides how long commits "
                "are kept",
            )

    @property
    def _is_complete(self) -> bool:
        return bool(self.own) and self.own[-1].batches[self._app] == self._batch + 1

    def _take(self, commit: Commit, written: int | None) -> None:
        # ``backwards`` continues at the version that was restored, whose commits count.
        if commit.restores is not None:
            return
        if written is not None and "swap" in commit.note:
            self._take_swap(commit, written)
        elif written is not None and "cut" in commit.note:
            # A cut that removes files leaves older commits of its batches in the log, which no longer count.
            self._left = self._least(written)
        elif written is None:
            self.all.append(self._as_named_now(commit))
            if commit.changes_table:
                self.others.append(self.all[-1])
        elif self._left is None or written <= self._left:
            self._add(commit)

    def _take_swap(self, commit: Commit, newest: int) -> None:
        """Count each swapped-in batch as a commit."""
        after, batches = commit.note.get("after"), commit.note.get("batches")
        last = self._least(newest)
        if not isinstance(after, int) or (not isinstance(batches, dict) and (self._batch > after or last < newest)):
            operation = commit.note["swap"]
            raise uncuttable(
                f"version {commit.version}",
                "The batches cannot be cut out of the Delta table: they were put in place by a swap, as one commit in "
                "which they replace rows of each other or of older batches",
                f"a commit of batch {self._batch + 1}",
                f"the swap of operation {operation}",
                f"{WITHOUT_CUT}, or undo: {command('undo', str(operation))}",
            )
        if not isinstance(batches, dict):
            self._add(Commit(commit.version, {self._app: after + 1}, commit.adds))
        else:
            files = {file.path: file for file in commit.adds}
            for batch in range(last, max(after, self._batch), -1):
                adds = tuple(files[path] for path in batches.get(str(batch), ()) if path in files)
                self._add(Commit(commit.version, {self._app: batch}, adds))
        self._left, self.divided = self._least(after), after <= self._batch
        below, kept = f"{kept_below(commit.note['swap'])}/", commit.note.get(KEPT)
        for path in map(str, kept) if isinstance(kept, list) else ():
            self._moved[path.removeprefix(below)] = self._moved.get(path, path)

    def _add(self, commit: Commit) -> None:
        self.own.append(self._as_named_now(commit))
        self.all.append(self.own[-1])

    def _as_named_now(self, commit: Commit) -> Commit:
        if not self._moved:
            return commit
        adds = tuple(replace(file, path=self._moved.get(file.path, file.path)) for file in commit.adds)
        return replace(commit, adds=adds, removes=tuple(self._moved.get(path, path) for path in commit.removes))

    def _least(self, batch: int) -> int:
        return batch if self._left is None else min(batch, self._left)

    @property
    def by_restore(self) -> bool:
        return not self.others and self.target >= 0 and not self.divided

    def files(self) -> tuple[DataFile, ...]:
        live: dict[str, DataFile] = {}
        for commit in reversed(self.all if self.by_restore else self.own):
            for path in commit.removes:
                live.pop(path, None)
            live.update((file.path, file) for file in commit.adds)
        return tuple(live.values())

    def rows(self) -> int | None:
        """The number of rows; ``None`` if the batches also replaced rows, or a file's rows are not recorded."""
        added = {file.path for commit in self.all for file in commit.adds}
        if any(path not in added for commit in self.all for path in commit.removes):
            return None
        counts = [file.rows for file in self.files()]
        known = [count for count in counts if count is not None]
        return sum(known) if len(known) == len(counts) else None

    def blocking_commit(self) -> Commit | None:
        written = {file.path for commit in self.own for file in commit.adds}
        replaces = (commit for commit in self.own if commit.removes)
        took = (commit for commit in self.all if commit not in self.own and written & set(commit.removes))
        return next(chain(replaces, took), None)


def backwards(log: DeltaLog, newest: int) -> Iterator[Commit]:
    """The effective commits, newest first, without undone commits."""
    version = newest
    while version >= 0:
        try:
            commit = log.commit(version)
        except FileNotFoundError:
            return
        yield commit
        version = version - 1 if commit.restores is None else commit.restores


def written_by(commits: Sequence[Commit]) -> Others:
    changing = [commit for commit in commits if commit.changes_rows]
    rows = [commit.rows for commit in changing]
    known = [count for count in rows if count is not None]
    files = sum(len(commit.adds) for commit in changing)
    return Others(sum(known) if len(known) == len(rows) else None, files, len(commits))
