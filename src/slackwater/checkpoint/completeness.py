"""Damage that names alone show, and files that Spark ignores."""

from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress

from slackwater.checkpoint.inventory import Lineage, files_of_attempt, files_of_version
from slackwater.checkpoint.layout import (
    COMMITS,
    OFFSETS,
    SST_FOLDERS,
    STATE,
    commit_path,
    is_leftover,
    offset_path,
    parse_id,
    parse_state_file,
    spark_checksum_path,
    store_path,
)
from slackwater.checkpoint.listing import Listing
from slackwater.checkpoint.logs import CheckpointLogs, damage_of, expected_partitions, partition_count
from slackwater.checkpoint.opened import OpenedCheckpoint
from slackwater.core.checkpoint import CommitEntry, Damage, Marks, StateInventory
from slackwater.core.errors import FormatError

_HIDDEN_SUM = ".crc"


def damage_by_names(opened: OpenedCheckpoint, marks: Marks, newest_commit: CommitEntry | None) -> list[Damage]:
    return [
        *missing_entries(opened.logs),
        *directories_among_entries(opened.listing),
        *missing_beside_checksums(opened.listing),
        *missing_state(opened.logs, marks, opened.inventory, newest_commit),
        *gaps_in_state(opened.inventory),
    ]


def missing_entries(logs: CheckpointLogs) -> list[Damage]:
    """Holes that no release of Spark leaves. With asynchronous progress both logs are sparse, but alike; so a hole is
    an entry in only one of the logs.
    """
    offsets, commits = set(logs.offset_ids), set(logs.commit_ids)
    damage = [
        Damage(offset_path(batch), "missing", f"the plan of batch {batch}, which is committed", "nothing")
        for batch in sorted(commits - offsets)
        # `StreamExecution.purge` removes old entries of offsets/ first and of commits/ then: a kill in between leaves
        # old commits without their plans.
        if offsets and batch > min(offsets)
    ]
    damage += [
        Damage(commit_path(batch), "missing", f"the commit of batch {batch}, as later ones are committed", "nothing")
        for batch in sorted(offsets - commits)
        if commits and min(commits) < batch < max(commits)
    ]
    if commits and not offsets:
        damage.append(Damage(OFFSETS, "missing", "the plans of committed batches", "nothing"))
    return damage


def directories_among_entries(listing: Listing) -> list[Damage]:
    """Directories that Spark would open as entries, because of their names."""
    return [
        Damage(f"{log}/{number}", "foreign", "a file", "a directory")
        for log in (OFFSETS, COMMITS)
        for number in listing.numbered_directories(log)
    ]


def missing_beside_checksums(listing: Listing) -> list[Damage]:
    """Files whose hidden checksum still exists: Hadoop removes both."""
    damage = []
    for names, folders in listing.alike().items():
        # `ChecksumFs.delete` removes the checksum before the file, so that a kill of Spark leaves no checksum alone.
        hidden = [name for name in names if name[0] == "." and name.endswith(_HIDDEN_SUM)]
        owners = [name[1 : -len(_HIDDEN_SUM)] for name in hidden]
        # `ChecksumFs` renames the file before the checksum: a kill may leave the checksum of a temporary file.
        missing = [owner for owner in owners if owner and owner not in names and not is_leftover(owner)]
        damage += [
            Damage(_join(folder, owner), "missing", "a file, as its checksum exists", "nothing")
            for folder in folders
            for owner in sorted(missing)
        ]
    return damage


def named_state(commit: CommitEntry) -> frozenset[str]:
    tables = (commit.state_unique_ids or {}).values()
    return frozenset(identity for partitions in tables for stores in partitions for identity in stores)


def _join(folder: str, name: str) -> str:
    return f"{folder}/{name}" if folder else name


def missing_state(
    logs: CheckpointLogs, marks: Marks, inventory: StateInventory, newest_commit: CommitEntry | None
) -> list[Damage]:
    """Stores that cannot load the newest committed batch, though others can."""
    if marks.committed < 0 or marks.state is None or marks.state >= marks.committed:
        return []
    version = marks.committed + 1
    entry = logs.newest_offset
    count = partition_count(entry) if entry else None
    damage = []
    for operator, partitions in sorted(inventory.stores.items()):
        names = inventory.names(operator)
        for partition in expected_partitions(partitions, count):
            # A file of this version with an id that the commit does not name is from a failed attempt, which Spark
            # never loads.
            ids = _ids_of(newest_commit, operator, partition)
            for name in names:
                held = partitions.get(partition, {}).get(name)
                if held and (any(held.has(version, one) for one in ids) if held.ids else held.has(version)):
                    continue
                newest = max(held.loadable, default=0) if held else 0
                found = f"version {newest} is the newest that can be" if newest else "none can be"
                path = store_path(operator, partition, name)
                expected = f"state version {version} of the newest committed batch can be loaded"
                damage.append(Damage(path, "missing", expected, found))
    return damage


def _ids_of(commit: CommitEntry | None, operator: int, partition: int) -> list[str]:
    partitions = (commit.state_unique_ids or {}).get(str(operator), []) if commit else []
    return partitions[partition] if partition < len(partitions) else []


def gaps_in_state(inventory: StateInventory) -> list[Damage]:
    """Changes without the version before them: a file in between is missing."""
    damage = []
    for operator, partition, store, held in inventory.each():
        if held.newest > held.newest_loadable:
            path = store_path(operator, partition, store)
            gap = held.newest_loadable + 1
            damage.append(Damage(path, "missing", f"the files of state version {gap}", f"versions up to {held.newest}"))
    return damage


def leftovers(listing: Listing, commits: dict[int, CommitEntry]) -> list[str]:
    """Unfinished writes, checksums without a file, state of failed attempts."""
    named = set[str]().union(*map(named_state, commits.values()))
    found: list[str] = []
    for names, folders in listing.alike().items():
        parsed = ((name, parse_state_file(name)) for name in names)
        with_id = {name: file for name, file in parsed if file is not None and file.unique_id is not None}
        lone = {name for name in names if name.endswith(_HIDDEN_SUM) and not name.startswith(".")}
        lone = {name for name in lone if name.removesuffix(spark_checksum_path("")) not in names}
        suspects = [name for name in names if is_leftover(name) or name in lone or name in with_id]
        for folder in folders:
            if not folder.startswith(f"{STATE}/"):
                is_log = folder in {OFFSETS, COMMITS}
                ignored = [
                    name
                    for name in names
                    if is_leftover(name) or (is_log and not name.startswith(".") and parse_id(name) is None)
                ]
            elif not suspects:
                continue
            elif folder.rpartition("/")[2] in SST_FOLDERS:
                ignored = [name for name in suspects if is_leftover(name)]
            else:
                # The commits decide about state files with an id. Only versions with a commit can be known to belong to
                # a failed attempt.
                ignored = [
                    name
                    for name in suspects
                    if (file := with_id.get(name)) is None
                    or (file.unique_id not in named and file.version - 1 in commits)
                ]
            found.extend(_join(folder, name) for name in ignored)
    return sorted(found)


NextState = tuple[tuple[str, ...], tuple[str, ...], tuple[Damage, ...]]
"""Files of a store, oldest first; candidates for older files, if the naming header was not read; files that Spark will
miss.
"""


class _HeaderNotRead(Exception):
    """The lineage of a changelog is unknown."""


def next_state_files(opened: OpenedCheckpoint, lineage_of: Callable[[str], Lineage | None]) -> Iterator[NextState]:
    """Finds the files of each store by name. In format 2 the newest changelog lists older files. ``lineage_of`` returns
    ``None`` for an unread header.
    """
    version = opened.logs.committed + 1
    # No batch is committed: the next one starts with empty state, which has no file.
    if version == 0:
        return
    known: dict[frozenset[str], tuple[str, ...]] = {}
    for operator, partition, store, held in opened.inventory.each():
        folder = store_path(operator, partition, store)
        names = opened.listing.names(folder)
        if held.ids:
            # A file with another id is from a failed attempt.
            ids = _ids_of(opened.logs.newest_commit, operator, partition)
            own = next((one for one in ids if (version, one) in held.ids), None)
            # Without files of its own the newest is missing, which names show.
            if own is not None:
                yield _of_attempt(folder, names, version, own, lineage_of)
            continue
        # Most partitions hold files of the same names.
        if names not in known:
            known[names] = ()
            with suppress(FormatError):
                known[names] = files_of_version(names, version)
        if known[names]:
            yield _paths(folder, known[names]), (), ()


def _of_attempt(
    folder: str, names: frozenset[str], version: int, unique_id: str, lineage_of: Callable[[str], Lineage | None]
) -> NextState:
    def lineage(name: str) -> Lineage:
        found = lineage_of(f"{folder}/{name}")
        if found is None:
            raise _HeaderNotRead
        return found

    parsed = ((name, parse_state_file(name)) for name in names)
    own = [name for name, file in parsed if file and (file.version, file.unique_id) == (version, unique_id)]
    newest = _paths(folder, own)
    try:
        return _paths(folder, files_of_attempt(names, version, unique_id, lineage)), (), ()
    except _HeaderNotRead:
        # Which of the older files are needed is unknown, so all candidates count as not read, and none as missing.
        older = {name: file for name in names if (file := parse_state_file(name)) and file.version < version}
        base = max((file.version for file in older.values() if file.kind.is_whole), default=0)
        candidates = sorted((file.version, name) for name, file in older.items() if file.version >= base)
        return newest, _paths(folder, (name for _, name in candidates)), ()
    except FormatError as error:
        return newest, (), (damage_of(folder, error),)


def _paths(folder: str, names: Iterable[str]) -> tuple[str, ...]:
    return tuple(f"{folder}/{name}" for name in names)
