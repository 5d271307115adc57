"""Stateful operators with stores and schemas.

Spark 4.0 and later name them in ``_metadata``; for 3.5 they are inferred.
"""

from collections.abc import Iterable
from dataclasses import dataclass, field

from slackwater.checkpoint.inventory import read_inventory
from slackwater.checkpoint.layout import DEFAULT_STORE, STATE, parse_id, store_path
from slackwater.checkpoint.listing import Listing, read_listing
from slackwater.checkpoint.logs import damage_of, read_checked
from slackwater.core.checkpoint import Damage, StateInventory
from slackwater.core.errors import FormatError
from slackwater.core.state import JOIN, AtomicType, ColumnFamily, KeyEncoding, Operator, OperatorStore, StateSchema
from slackwater.formats.state_schema import parse_operator_metadata, parse_state_schema
from slackwater.storage.protocols import ReadStore

_SESSION_KEY = "sessionStartTime"
_WITH_FAMILIES = 3


@dataclass(slots=True)
class OperatorReader:
    """Reads operators from a listing, and collects damage."""

    store: ReadStore
    listing: Listing
    inventory: StateInventory
    damage: list[Damage] = field(default_factory=list)

    def operators(self, batch: int | None = None) -> tuple[Operator, ...]:
        return tuple(self.operator(number, batch) for number in self.listing.numbered_directories(STATE))

    def operator(self, number: int, batch: int | None = None) -> Operator:
        folder = f"{STATE}/{number}/_metadata"
        # Each start of the query writes an entry: the newest up to the batch is the one that it ran with.
        versions = [entry for entry in self.listing.ids(f"{folder}/v2") if batch is None or entry <= batch]
        paths = [f"{folder}/v2/{entry}" for entry in reversed(versions)]
        if self.listing.has(f"{folder}/metadata"):
            paths.append(f"{folder}/metadata")
        named = None
        for path in paths:
            try:
                named = parse_operator_metadata(self._read(path))
                break
            except (FormatError, OSError) as error:
                self.damage.append(damage_of(path, error))
        recorded = named.stores if named is not None else ()
        found = recorded or tuple(OperatorStore(name) for name in self.inventory.names(number))
        stores = tuple(self._with_schemas(number, store) for store in found)
        present = len(self.inventory.stores.get(number, {}))
        if named is not None:
            return named._replace(id=number, partitions=present, stores=stores)
        return Operator(number, infer_name(stores), True, present, stores)

    def _with_schemas(self, number: int, store: OperatorStore) -> OperatorStore:
        # All listed files must exist: `StateSchemaMetadata` opens them, and Spark does not start without.
        schemas: list[StateSchema] = []
        for path in schema_paths(self.listing, number, store.name, store.schema_files):
            try:
                schemas.append(parse_state_schema(self._read(path)))
            except (FormatError, OSError) as error:
                self.damage.append(damage_of(path, error))
        if not schemas:
            return store
        newest = schemas[-1]
        with_families = newest.version == _WITH_FAMILIES
        families = newest.families
        if not with_families:
            families = tuple(_with_prefix(family, store.prefix_columns, store.name) for family in families)
        # StateSchemaMetadata.createStateSchemaMetadata: each family counts its own schemas, not the files.
        by_id = {
            family.name: {
                older.value_schema_id: older for schema in schemas if (older := schema.family(family.name)) is not None
            }
            for family in families
        }
        return store._replace(families=families, with_families=with_families, value_schemas=by_id)

    def _read(self, path: str) -> bytes:
        if not self.listing.has(path):
            # On a remote store asking for it would cost requests.
            raise FileNotFoundError(path)
        checked = read_checked(self.store, self.listing, path, thorough=False)
        self.damage.extend(checked.damage)
        return checked.data


def schema_paths(listing: Listing, operator: int, store: str, files: Iterable[str] = ()) -> list[str]:
    """A store's schema files, oldest first.

    Versions 1 and 2 have a file in partition 0 only, whether it exists or not.
    """
    folder = f"{STATE}/{operator}/_stateSchema/{store}"
    found = (name for name in listing.folder(folder).files if name[:1].isdigit())
    names = tuple(files) or sorted(found, key=lambda name: parse_id(name.partition("_")[0]) or 0)
    return [f"{folder}/{name}" for name in names] or [f"{store_path(operator, 0, store)}/_metadata/schema"]


def _with_prefix(family: ColumnFamily, prefix: int, store: str) -> ColumnFamily:
    """A session window keeps keys by prefix; without metadata only the last key column shows that."""
    columns = family.key.names
    if not prefix and store == DEFAULT_STORE and columns[-1:] == (_SESSION_KEY,):
        prefix = len(columns) - 1
    if not prefix:
        return family
    return ColumnFamily(family.name, family.key, family.value, KeyEncoding("PrefixKeyScan", prefix))


def infer_name(stores: tuple[OperatorStore, ...]) -> str:
    if any(store.name.startswith(("left-", "right-")) for store in stores):
        return JOIN
    family = next((family for store in stores for family in store.families), None)
    if family is None:
        return "unknown"
    keys, values = family.key, family.value
    if keys.names == ("key",) and keys.fields[0].type == AtomicType("void"):
        return "globalLimit"
    if keys.names[-1:] == (_SESSION_KEY,):
        return "sessionWindowStateStoreSaveExec"
    known = {"__dummy__": "dedupe", "expiresAtMicros": "dedupeWithinWatermark", "groupState": "applyInPandasWithState"}
    return next((name for column, name in known.items() if column in values.names), "stateStoreSave")


def state_stores(store: ReadStore) -> list[dict[str, object]]:
    """``[{"operator": 0, "name": "stateStoreSave", "partitions": 4, "stores": {"default": "hdfs"}}]``"""
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
