"""State rows of any operator, store, partition and kept batch as an Arrow table.

After ``partition_id``, Spark's own operators have ``key`` and ``value``; state variables of transformWithState have
``key`` and ``value``, ``list_element`` or ``user_map_key``/``user_map_value``; timers ``key`` and
``expiration_timestamp_ms``; a join's side ``key``, ``value`` and ``matched``.
"""

from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from slackwater.checkpoint.layout import parse_state_file, store_path
from slackwater.checkpoint.listing import LimitedStore, Listing
from slackwater.checkpoint.logs import partitions_of_version
from slackwater.checkpoint.state.decoder import Encoding, FamilyRows, StoreDecoder
from slackwater.checkpoint.state.loader import LoadedStore, StateLoader, StorePlace
from slackwater.checkpoint.state.records import Records
from slackwater.core.checkpoint import CommitEntry, Damage, OffsetEntry, StateInventory
from slackwater.core.errors import FormatError
from slackwater.core.state import JOIN, ColumnFamily, Operator, OperatorStore
from slackwater.formats.rocksdb_zip import parse_rocksdb_zip

_PARTITIONS_AT_ONCE = 2
"""Each holds its decompressed partition; more gain little, as walks hold Python's lock."""
_TIMERS = ("$eventTimers", "$procTimers")
_PROVIDER = "spark.sql.streaming.stateStore.providerClass"
_ENCODING = "spark.sql.streaming.stateStore.encodingFormat"
_ROW_CHECKSUMS = "spark.sql.streaming.stateStore.rowChecksum.enabled"
_MULTI_VALUED_JOIN = frozenset({
    "left-keyWithTsToValues", "right-keyWithTsToValues", "left-tsWithKey", "right-tsWithKey",
})  # fmt: skip


class StateChoice(NamedTuple):
    """A family of a store, in all partitions or ``partition``. ``side`` shapes rows as a join's."""

    operator: Operator
    store: OperatorStore
    family: str
    side: bool = False
    partition: int | None = None


class StateRows(NamedTuple):
    """``undecoded`` has ``partition_id``, ``key``, ``value`` as bytes and the ``reason``."""

    table: pa.Table
    undecoded: pa.Table | None = None
    damage: tuple[Damage, ...] = ()


class BatchState(NamedTuple):
    """A batch's plan and commit, and the listing. ``pinning`` is the plan, or the nearest readable plan: the encoding
    of rows never changes.
    """

    store: LimitedStore
    listing: Listing
    inventory: StateInventory
    batch: int
    offset: OffsetEntry | None
    commit: CommitEntry | None
    pinning: OffsetEntry | None
    damage: tuple[Damage, ...] = ()

    def partitions(self, operator: int) -> tuple[int, ...]:
        return partitions_of_version(self.inventory.stores.get(operator, {}), self.batch + 1, self.offset)

    def encoding(self, operator: int) -> Encoding:
        conf = self.pinning.metadata.conf if self.pinning and self.pinning.metadata else {}
        provider = next(
            (held.provider for op, _, _, held in self.inventory.each() if op == operator and held.provider), ""
        )
        return Encoding(
            # The names of the files show the provider; the setting counts only where there is no file.
            rocksdb=provider == "rocksdb" or (not provider and "RocksDB" in conf.get(_PROVIDER, "")),
            avro=conf.get(_ENCODING, "") == "avro",
            row_checksums=conf.get(_ROW_CHECKSUMS, "") == "true",
            known=self.pinning is not None,
        )

    def place(self, operator: Operator, store: str, partition: int) -> StorePlace:
        """Raises ``FormatError`` if the commit should name the store's files and does not."""
        held = self.inventory.stores.get(operator.id, {}).get(partition, {}).get(store)
        # Before the first commit, which would name the files, state is empty and has none.
        if self.batch < 0 or held is None or not held.ids:
            return StorePlace(operator.id, partition, store, self.batch + 1)
        table = (self.commit.state_unique_ids or {}).get(str(operator.id), []) if self.commit else []
        # The ids of a partition are in the order of the store names.
        index = sorted(item.name for item in operator.stores).index(store)
        try:
            return StorePlace(operator.id, partition, store, self.batch + 1, table[partition][index])
        except IndexError as error:
            raise FormatError(
                "missing",
                "the commit does not name the state files of this batch",
                where=f"commits/{self.batch}",
                expected=f"an id for operator {operator.id}, partition {partition}",
                found="none",
            ) from error


@dataclass(slots=True)
class StateReader:
    state: BatchState
    damage: list[Damage] = field(default_factory=list)

    def rows(self, choice: StateChoice) -> StateRows:
        """A partition that cannot be loaded is left out, and listed as damage."""
        self.damage.extend(self.state.damage)
        decoder = self.decoder(choice.operator, choice.store)
        family = next((item for item in choice.store.families if item.name == choice.family), None)
        decoded: list[pa.Table] = []
        raw: list[pa.Table] = []
        partitions = self.partitions(choice)
        # Side by side: numpy, pyarrow and files release Python's lock meanwhile.
        with ThreadPoolExecutor(_PARTITIONS_AT_ONCE) as pool:
            read = pool.map(lambda number: self._read_partition(choice, family, decoder, number), partitions)
            for partition, (rows, damage) in zip(partitions, read, strict=True):
                self.damage.extend(damage)
                for piece in rows:
                    (raw if piece.reason else decoded).append(_table(piece, partition, choice))
        table = (
            pa.concat_tables(decoded, promote_options="permissive")
            if decoded
            else pa.table({"partition_id": pa.array([], pa.int32())})
        )
        undecoded = pa.concat_tables(raw) if raw else None
        return StateRows(table, undecoded, tuple(self.damage))

    def partitions(self, choice: StateChoice) -> tuple[int, ...]:
        return self.state.partitions(choice.operator.id) if choice.partition is None else (choice.partition,)

    def count(self, operator: Operator, store: OperatorStore) -> int | None:
        """Rows in all partitions, less Spark's bookkeeping; ``None`` if unreadable."""
        self.damage.extend(self.state.damage)
        decoder = self.decoder(operator, store)
        if not decoder.encoding.known:
            # Whether a row has been deleted depends on it.
            return None
        total = 0
        for partition in self.state.partitions(operator.id):
            loaded = self.load(operator, store, partition)
            if loaded is None:
                return None
            families = decoder.split_families(loaded[0], self.families(operator, store, loaded[1]))
            total += sum(len(records) for name, records in families.items() if not name.startswith("$"))
        return total

    def decoder(self, operator: Operator, store: OperatorStore) -> StoreDecoder:
        multi_valued = operator.list_variables | (_MULTI_VALUED_JOIN if operator.name == JOIN else frozenset())
        return StoreDecoder(store, self.state.encoding(operator.id), multi_valued)

    def load(self, operator: Operator, store: OperatorStore, partition: int) -> LoadedStore | None:
        """``None`` for an unreadable partition, with the reason among the damage."""
        loader = StateLoader(self.state.store, self.state.listing, self.damage)
        try:
            place = self.state.place(operator, store.name, partition)
            return loader.load(place, row_checksums=self.state.encoding(operator.id).row_checksums)
        except FormatError as error:
            self._record(error, f"state/{operator.id}/{partition}")
            return None

    def _record(self, error: FormatError, where: str) -> None:
        self.damage.append(Damage(error.where or where, error.code, error.expected or "", error.found or error.message))

    def families(self, operator: Operator, store: OperatorStore, loaded: Mapping[str, int]) -> Mapping[str, int]:
        """The numbers in the loaded zip, else in the newest readable zip of any partition (all number alike)."""
        if not store.with_families or all(family.name in loaded for family in store.families):
            return loaded
        state = self.state
        for partition in state.partitions(operator.id):
            folder = store_path(operator.id, partition, store.name)
            zips = [name for name in state.listing.folder(folder).files if name.endswith(".zip")]
            for name in sorted(zips, key=lambda item: -(parsed.version if (parsed := parse_state_file(item)) else 0)):
                with suppress(FormatError, OSError):
                    data = state.store.read(f"{folder}/{name}")
                    version = parse_rocksdb_zip(data, with_files=False, budget=state.store.archive_budget())
                    return {**version.column_families, **loaded}
        return loaded

    def _read_partition(
        self, choice: StateChoice, family: ColumnFamily | None, decoder: StoreDecoder, partition: int
    ) -> tuple[tuple[FamilyRows, ...], list[Damage]]:
        """Returns rows and damage: other partitions are read meanwhile."""
        apart = StateReader(self.state)
        loaded = apart.load(choice.operator, choice.store, partition)
        if loaded is None:
            return (), apart.damage
        records, numbers = loaded
        try:
            families = decoder.split_families(records, self.families(choice.operator, choice.store, numbers))
            chosen = families.get(choice.family, records.take(np.empty(0, np.int64)))
            unknown = [of_family for name, of_family in families.items() if name.startswith("#")]
            if unknown and not len(chosen):
                return _identify(decoder, family, unknown), apart.damage
            return decoder.decode(family, chosen), apart.damage
        except FormatError as error:
            apart._record(error, f"state/{choice.operator.id}/{partition}")
            return (), apart.damage


def _identify(decoder: StoreDecoder, family: ColumnFamily | None, unknown: list[Records]) -> tuple[FamilyRows, ...]:
    fitting = [rows for records in unknown if not (rows := decoder.decode(family, records))[0].reason]
    if len(fitting) == 1:
        return fitting[0]
    reason = "no zip maps rows to state variables yet"
    return tuple(rows._replace(reason=reason) for records in unknown for rows in decoder.decode(None, records))


def _table(rows: FamilyRows, partition: int, choice: StateChoice) -> pa.Table:
    columns = {"key": rows.key, "value": rows.value}
    if rows.reason is None:
        columns = shape(rows, choice)
    numbers = pa.array(np.full(len(rows.key), partition, np.int32))
    table = pa.table({"partition_id": numbers, **columns})
    return table.append_column("reason", pa.array([rows.reason] * len(rows.key), pa.string())) if rows.reason else table


def shape(rows: FamilyRows, choice: StateChoice) -> dict[str, pa.Array]:
    key, value = rows.key, rows.value
    if choice.family.startswith(_TIMERS) and choice.family.endswith("_keyToTimestamp"):
        return {"key": key.field("key"), "expiration_timestamp_ms": key.field("expiryTimestampMs")}
    if choice.family in choice.operator.list_variables:
        return {"key": key, "list_element": value}
    family = next((item for item in choice.store.families if item.name == choice.family), None)
    if family is not None and family.user_key is not None:
        return {"key": key.field("key"), "user_map_key": key.field("userKey"), "user_map_value": value}
    if choice.side:
        # `index` counts the rows of a join key and `matched` is Spark's mark for outer joins: neither is a column of
        # the input.
        matched = (
            value.field("matched") if value.type.get_field_index("matched") >= 0 else pa.nulls(len(value), pa.bool_())
        )
        return {"key": without(key, "index"), "value": without(value, "matched"), "matched": matched}
    return {"key": key, "value": value}


def without(column: pa.StructArray, name: str) -> pa.StructArray:
    names = [column.type.field(index).name for index in range(column.type.num_fields)]
    kept = [index for index, held in enumerate(names) if held != name]
    if len(kept) == len(names) or not kept:
        return column
    return pa.StructArray.from_arrays(
        [column.field(index) for index in kept], fields=[column.type.field(index) for index in kept]
    )
