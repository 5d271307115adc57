"""Which state versions can be loaded, by file names alone.

A whole file (snapshot, zip) can be loaded by itself; a delta or changelog needs the version before it, down to a whole
file or to the empty version 0. A gap is fatal to Spark.
"""

from __future__ import annotations

from slackwater.checkpoint.layout import DEFAULT_STORE, SST_FOLDERS, STATE, parse_state_file
from slackwater.checkpoint.listing import Listing
from slackwater.model.state import StateFile, StateInventory, StoreVersions


def read_inventory(listing: Listing) -> StateInventory:
    """The versions of every store in the listing."""
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
    """Most partitions hold files of the same names: what was worked out for one serves the others."""
    versions = known.get(names)
    if versions is None:
        files = [parsed for parsed in map(parse_state_file, names) if parsed]
        versions = known[names] = versions_of_files(files)
    return versions


def versions_of_files(files: list[StateFile]) -> StoreVersions:
    """The versions that can be loaded from these files."""
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
