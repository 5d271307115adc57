"""Which state stores a checkpoint has: what is needed to write an empty state once the checkpoint is lost."""

from __future__ import annotations

from slackwater.checkpoint.layout import STATE
from slackwater.checkpoint.listing import read_listing
from slackwater.checkpoint.state.inventory import read_inventory
from slackwater.checkpoint.state.operators import OperatorReader
from slackwater.storage.protocols import ReadStore


def state_stores(store: ReadStore) -> list[dict[str, object]]:
    """For each stateful operator its id, name, number of partitions, and the stores with their provider.

    ``[{"operator": 0, "name": "stateStoreSave", "partitions": 4, "stores": {"default": "hdfs"}}]``; empty where the
    checkpoint holds no state yet.
    """
    listing = read_listing(store)
    if STATE not in listing.folders:
        return []
    inventory = read_inventory(listing)
    return [
        {
            "operator": operator.id,
            "name": operator.name,
            "partitions": operator.partitions,
            "stores": {
                name: versions.provider
                for held in inventory.stores.get(operator.id, {}).values()
                for name, versions in held.items()
            },
        }
        for operator in OperatorReader(store, listing, inventory).operators()
    ]
