"""Loadable state versions, by file names alone.

A snapshot or zip loads by itself; a delta or changelog needs the version before it, down to a whole file or the empty
version 0. A gap is fatal to Spark.
"""

from collections.abc import Callable, Iterable

from slackwater.checkpoint.layout import DEFAULT_STORE, SST_FOLDERS, STATE, parse_state_file
from slackwater.checkpoint.listing import Listing
from slackwater.core.checkpoint import StateFile, StateFileKind, StateInventory, StoreVersions
from slackwater.core.errors import FormatError


def read_inventory(listing: Listing) -> StateInventory:
    known: dict[frozenset[str], StoreVersions] = {}
    stores: dict[int, dict[int, dict[str, StoreVersions]]] = {}
    for operator in listing.numbered_directories(STATE):
        partitions = {
            partition: _read_partition(listing, f"{STATE}/{operator}/{partition}", known)
            for partition in listing.numbered_directories(f"{STATE}/{operator}")
        }
        stores[operator] = {partition: held for partition, held in partitions.items() if held}
    return StateInventory(stores)


def _read_partition(
    listing: Listing, path: str, known: dict[frozenset[str], StoreVersions]
) -> dict[str, StoreVersions]:
    folder = listing.folder(path)
    stores = {DEFAULT_STORE: _versions_of(listing.names(path), known)}
    for name in folder.directories:
        if name not in SST_FOLDERS and not name.startswith(("_", ".")):
            stores[name] = _versions_of(listing.names(f"{path}/{name}"), known)
    named = [name for name in stores if name != DEFAULT_STORE]
    if named and stores[DEFAULT_STORE].provider is None:
        # A join keeps nothing directly in the partition's directory.
        del stores[DEFAULT_STORE]
    return stores


def _versions_of(names: frozenset[str], known: dict[frozenset[str], StoreVersions]) -> StoreVersions:
    """Most partitions have files of the same names, and share the result."""
    versions = known.get(names)
    if versions is None:
        files = [parsed for parsed in map(parse_state_file, names) if parsed]
        versions = known[names] = versions_of_files(files)
    return versions


def versions_of_files(files: list[StateFile]) -> StoreVersions:
    whole = {file.version for file in files if file.kind.is_whole}
    steps = {file.version for file in files if not file.kind.is_whole}
    loadable: set[int] = {0}
    for version in sorted(whole | steps):
        if version in whole or version - 1 in loadable:
            loadable.add(version)
    return StoreVersions(
        provider=files[0].kind.provider if files else None,
        loadable=frozenset(loadable - {0}),
        ids=frozenset((file.version, file.unique_id) for file in files if file.unique_id is not None),
        newest=max(whole | steps, default=0),
        newest_loadable=max(loadable),
    )


Lineage = tuple[tuple[int, str], ...]


def files_of_version(names: Iterable[str], version: int) -> tuple[str, ...]:
    """A version's files by number, oldest first: at most one whole file, and changes. Raises ``FormatError``
    (``missing``) with the first gap.
    """
    held = {name: file for name in names if (file := parse_state_file(name)) and file.unique_id is None}
    whole = {file.version: name for name, file in held.items() if file.kind.is_whole and file.version <= version}
    steps = {file.version: name for name, file in held.items() if not file.kind.is_whole}
    newest = max(whole, default=0)
    needed = range(newest + 1, version + 1)
    gap = next((number for number in needed if number not in steps), None)
    if gap is not None:
        raise FormatError(
            "missing", "a version cannot be loaded", expected=f"the changes of version {gap}", found="none"
        )
    base = (whole[newest],) if newest in whole else ()
    return (*base, *(steps[number] for number in needed))


def files_of_attempt(
    names: Iterable[str], version: int, unique_id: str, lineage_of: Callable[[str], Lineage]
) -> tuple[str, ...]:
    """A version's files by unique id (format 2), oldest first. ``lineage_of`` reads a changelog's header. Raises
    ``FormatError`` (``missing``).
    """
    there = set(names)
    whole = _name(version, unique_id, StateFileKind.ZIP)
    # `RocksDB.loadWithCheckpointId` takes the zip where there is one, and then does not read the changelog of the
    # version.
    if whole in there:
        return (whole,)
    newest = _name(version, unique_id, StateFileKind.CHANGELOG)
    if newest not in there:
        raise FormatError("missing", "a version cannot be loaded", expected=f"{whole} or {newest}", found="neither")
    lineage = sorted(lineage_of(newest))
    zips = [index for index, entry in enumerate(lineage) if _name(*entry, StateFileKind.ZIP) in there]
    base = (_name(*lineage[zips[-1]], StateFileKind.ZIP),) if zips else ()
    after = lineage[zips[-1] + 1 :] if zips else lineage
    # Without a zip the changelogs start after version 0, which is empty and has no file.
    first = lineage[zips[-1]][0] + 1 if zips else 1
    by_version = {number: identity for number, identity in after if number < version}
    steps = []
    for number in range(first, version):
        identity = by_version.get(number)
        name = _name(number, identity, StateFileKind.CHANGELOG) if identity else None
        if name is None or name not in there:
            expected = name or f"version {number} in the lineage"
            raise FormatError("missing", "a version cannot be loaded", expected=expected, found="none")
        steps.append(name)
    return (*base, *steps, newest)


def _name(version: int, unique_id: str, kind: StateFileKind) -> str:
    return f"{version}_{unique_id}.{kind}"


def state_file(name: str) -> StateFile:
    parsed = parse_state_file(name)
    if parsed is None:
        raise FormatError("foreign", "not a state file", expected="V.delta, V.zip ...", found=name)
    return parsed
