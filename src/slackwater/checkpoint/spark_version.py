"""The version of Spark that wrote a checkpoint: no file records it, but each release added files or fields."""

from __future__ import annotations

from slackwater.checkpoint.listing import Listing
from slackwater.model.checkpoint import SparkVersion
from slackwater.model.checkpoint_logs import CommitEntry, OffsetEntry
from slackwater.model.operator import Operator
from slackwater.model.state import StateInventory

_PREFIX = "spark.sql."
_FIRST_PINNED = (
    ("4.3", "streaming.statefulOperator.alwaysNullableOutput.enabled"),
    ("4.3", "dropDuplicates.deterministicKeyOrder.enabled"),
    ("4.2", "streaming.stateStore.rowChecksum.enabled"),
    ("4.2", "streaming.stateStore.rocksdb.mergeOperatorVersion"),
    ("4.2", "streaming.queryEvolution.enableSourceEvolution"),
    ("4.0", "streaming.stateStore.encodingFormat"),
    ("3.5", "optimizer.pruneFiltersCanPruneStreamingSubplan"),
)
"""Settings by the release that first pinned them. They show who wrote the newest entry, not who started the log."""


def oldest_spark(
    offset: OffsetEntry | None,
    commit: CommitEntry | None,
    operators: tuple[Operator, ...],
    listing: Listing,
    inventory: StateInventory,
) -> SparkVersion:
    """The newest release that anything in the checkpoint needs."""
    found = [
        *_by_settings(offset),
        *_by_logs(offset, commit),
        *_by_state(operators, listing, inventory),
    ]
    if not found:
        return SparkVersion(None, "no pinned settings or state")
    version = max(version for version, _ in found)
    return SparkVersion(version, next(evidence for release, evidence in found if release == version))


def _by_settings(offset: OffsetEntry | None) -> list[tuple[str, str]]:
    conf = offset.metadata.conf if offset and offset.metadata else {}
    return [
        (version, f"the newest offsets entry pins {_PREFIX}{name}")
        for version, name in _FIRST_PINNED
        if _PREFIX + name in conf
    ]


def _by_logs(offset: OffsetEntry | None, commit: CommitEntry | None) -> list[tuple[str, str]]:
    found = []
    if offset is not None and offset.version > 1:
        found.append(("4.2", f"offsets log version {offset.version}"))
    if commit is not None and commit.version > 1:
        found.append(({2: "4.0"}.get(commit.version, "4.2"), f"commits log version {commit.version}"))
    return found


def _by_state(operators: tuple[Operator, ...], listing: Listing, inventory: StateInventory) -> list[tuple[str, str]]:
    found = []
    if any(not operator.inferred for operator in operators):
        found.append(("4.0", "operator metadata"))
    families = {family.name for operator in operators for store in operator.stores for family in store.families}
    if "left-keyWithTsToValues" in families:
        found.append(("4.2", "join state format 4"))
    elif "left-keyWithIndexToValue" in families:
        found.append(("4.1", "join state format 3"))
    with_ids = any(versions.ids for _, _, _, versions in inventory.each())
    if not with_ids and any(
        _has_sidecar(listing, operator, partition) for operator, partition in _partitions(inventory)
    ):
        found.append(("4.1", "checksums beside state files"))
    return found


def _partitions(inventory: StateInventory) -> list[tuple[int, int]]:
    """The first partition of each operator; the others are written alike."""
    return [(operator, min(partitions)) for operator, partitions in inventory.stores.items() if partitions]


def _has_sidecar(listing: Listing, operator: int, partition: int) -> bool:
    names = listing.folder(f"state/{operator}/{partition}").files
    return any(name.endswith(".crc") and not name.startswith(".") for name in names)
