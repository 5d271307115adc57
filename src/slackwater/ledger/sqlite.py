"""SQLite behind the ledger: a private file, access for read-only users, and waiting for locks.

Must not happen: a reader creating ``-wal`` or ``-shm`` (the owner could not write to them); a long wait without a
message; rows read during a change.
"""

import os
import sqlite3
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any
from urllib.parse import quote

from slackwater.core.commands import command
from slackwater.core.errors import DataError, EnvironmentMissing
from slackwater.core.settings import other_owner, safe_with
from slackwater.storage.local import create_private_file

BUSY_TIMEOUT_S = 30
"""The longest wait of a transaction for a lock; the longest write is the reconcile of a whole checkpoint."""

SAY_AFTER_S = 1.0
SAY_EVERY_S = 5.0

_ATTEMPT_MS = 500
_LEAST_SPACE = 64 * 1024
"""The space needed next to a ledger: twice the largest file that SQLite creates there."""
_PAUSE_S = 0.02
_TAKE_SNAPSHOT = "SELECT 1 FROM sqlite_master LIMIT 1"

Say = Callable[[str], None]
"""Tells the user how far something is."""


class SqliteFile:
    dialect = "sqlite"
    errors = sqlite3
    """The module that has the driver's exceptions."""

    def __init__(self, path: Path, say: Say, *, wait_s: float = BUSY_TIMEOUT_S) -> None:
        self.path = path
        self.place = str(path)
        self.read_only = False
        # A folder that may not be entered is reported when the file is opened.
        with suppress(OSError):
            of_another = other_owner(self.path) is not None
            self.read_only = self.path.is_file() and (of_another or not _is_writable(self.path))
        self._say = say
        self._wait_s = wait_s
        self._unlocked_as: tuple[int, ...] | None = None

    def create(self) -> None:
        """Create an empty private file; an existing file is left unchanged. Raises FileNotFoundError for a link to
        nothing: SQLite would create its target.
        """
        create_private_file(self.path)
        self.path.stat()

    def connect(self) -> sqlite3.Connection:
        parameters = "mode=rwc"
        if self.read_only:
            wal, shared = Path(f"{self.path}-wal"), Path(f"{self.path}-shm")
            has_rows = wal.exists() and wal.stat().st_size > 0
            if wal.exists() and shared.exists():
                # Without readonly_shm SQLite would create the -shm file if its owner removes it just now.
                parameters = "mode=ro&readonly_shm=1"
            elif has_rows:
                raise DataError(
                    "ledger-wal-unread",
                    "The ledger's newest rows are in a write-ahead log that only a user with write access can open",
                    where=str(wal),
                    hint=f"run as {self.owner()}: {command('status')}",
                )
            else:
                # The signature of the first connection counts: rows of all have to be from one state of the file.
                self._unlocked_as = self._unlocked_as or self._signature()
                # ``mode=ro`` alone creates -shm where it can, and else cannot open a file in WAL mode.
                parameters = "mode=ro&immutable=1"
        # Transactions are started by ``begin``: the module's own control starts them only at the first write. One
        # thread at a time uses a connection, not always the same.
        address = f"file:{quote(os.fsencode(self.path))}?{parameters}"
        driver = sqlite3.connect(address, uri=True, check_same_thread=False, isolation_level=None)
        driver.execute(f"PRAGMA busy_timeout = {BUSY_TIMEOUT_S * 1000}")
        # SQLite checks foreign keys only on a connection that asks for it.
        driver.execute("PRAGMA foreign_keys = ON")
        return driver

    def is_alive(self, _driver: sqlite3.Connection) -> bool:
        return True

    def is_read_only(self, _driver: sqlite3.Connection) -> bool:
        return self.read_only

    def is_unwritable(self, _error: Exception) -> bool:
        """Always false: it is known before the transaction."""
        return False

    def check_unchanged(self) -> None:
        """Raise EnvironmentMissing (``ledger-changed``) if the file changed while rows were read without a lock."""
        if self._unlocked_as is not None and self._signature() != self._unlocked_as:
            raise EnvironmentMissing(
                "ledger-changed",
                "The ledger was changed while it was read without a lock",
                where=str(self.path),
                hint="run the command again",
            )

    def is_disk_full(self) -> bool:
        try:
            disk = os.statvfs(next(folder for folder in self.path.parents if folder.exists()))
        except (OSError, StopIteration):
            return False
        # A file system that does not count inodes, such as Btrfs, reports 0 of them and none free.
        return disk.f_blocks > 0 and (disk.f_bavail * disk.f_frsize < _LEAST_SPACE or disk.f_files > 0 == disk.f_favail)

    def wait_for_lock(self, attempt: Callable[[], Any]) -> None:
        """Repeat ``attempt`` while locked, with a message after a second and then every few seconds. Raises
        EnvironmentMissing (``ledger-locked``).
        """
        started = time.monotonic()
        next_message = started + SAY_AFTER_S
        while True:
            try:
                attempt()
            except sqlite3.OperationalError as error:
                # The low byte: the other bytes distinguish kinds of busy, such as SQLITE_BUSY_RECOVERY.
                if getattr(error, "sqlite_errorcode", 0) & 0xFF != sqlite3.SQLITE_BUSY:
                    raise
                now = time.monotonic()
                if now >= started + self._wait_s:
                    raise EnvironmentMissing(
                        "ledger-locked",
                        "The ledger is locked by another process",
                        where=str(self.path),
                        expected=f"free within {self._wait_s:g} s",
                        hint=f"run the command again when that process has finished; to find it: fuser -v {self.path}",
                    ) from error
                if now >= next_message:
                    if next_message == started + SAY_AFTER_S:
                        self._say(
                            f"the ledger {self.path} is locked by another process; waiting up to {self._wait_s:g} s"
                        )
                    else:
                        self._say(f"the ledger is still locked; {started + self._wait_s - now:.0f} s left")
                    next_message = now + SAY_EVERY_S
                time.sleep(_PAUSE_S)
            else:
                return

    def begin(self, driver: sqlite3.Connection, *, writes: bool = False, unflushed: bool = False) -> None:
        """Begin a transaction; waits for a lock. ``unflushed``: does not wait for the disk. Raises EnvironmentMissing
        (``ledger-locked``, ``ledger-read-only``).
        """
        # A deferred transaction that turns into a write fails when another writer came first; an immediate one waits.
        # The first read takes the snapshot; later ones in the transaction do not wait for a lock.
        statements = ["BEGIN DEFERRED", _TAKE_SNAPSHOT]
        if writes:
            if self.read_only:
                raise self.not_writable()
            # The pragma first: SQLite does not allow it inside a transaction.
            statements = [f"PRAGMA synchronous = {'NORMAL' if unflushed else 'FULL'}", "BEGIN IMMEDIATE"]

        def attempt() -> None:
            for statement in statements:
                # An attempt that is repeated can be in the transaction already, without its snapshot.
                if not (driver.in_transaction and statement.startswith("BEGIN")):
                    driver.execute(statement).fetchone()

        # In short attempts, as SQLite waits without a chance to show a message.
        driver.execute(f"PRAGMA busy_timeout = {_ATTEMPT_MS}")
        self.wait_for_lock(attempt)
        driver.execute(f"PRAGMA busy_timeout = {BUSY_TIMEOUT_S * 1000}")

    def not_writable(self, cause: str | None = None) -> EnvironmentMissing:
        safe = f"export SLACKWATER_SAFE_DIRECTORY={safe_with(self.path.parent)}"
        trust = f"; or, if you trust it: {safe}" if _is_writable(self.path) else ""
        return EnvironmentMissing(
            "ledger-read-only",
            "The ledger cannot be written: this user has only read access",
            where=str(self.path),
            found=cause,
            hint=f"run the command as {self.owner()}{trust}",
        )

    def owner(self) -> str:
        try:
            return f"user {self.path.owner()}"
        except (KeyError, OSError):
            return "the owner of the file"

    def _signature(self) -> tuple[int, ...]:
        """A value that changes when other processes write: the file, or a non-empty write-ahead log."""
        status, wal = self.path.stat(), Path(f"{self.path}-wal")
        logged = wal.stat().st_size if wal.exists() else 0
        return status.st_ino, status.st_size, status.st_mtime_ns, logged


def _is_writable(path: Path) -> bool:
    """Return whether the file and its folder are writable: SQLite also creates ``-wal`` and ``-shm`` there."""
    beside = [Path(f"{path}-wal"), Path(f"{path}-shm")]
    if not all(_may_write(file) for file in [path, *beside] if file.exists()):
        return False
    return all(file.exists() for file in beside) or _may_write(path.parent)


def _may_write(path: Path) -> bool:
    # SQLite opens files with the effective user, and ``os.access`` asks for the real one by default.
    return os.access(path, os.W_OK, effective_ids=os.access in os.supports_effective_ids)
