"""State directories of a checkpoint, by file names alone.

Batch N reads state version N and makes version N+1; version 0 is empty and has no file.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import NamedTuple


@dataclass(frozen=True, slots=True)
class AtomicType:
    """``long``, ``string``, ``timestamp``, ``void`` ... in Spark's spelling."""

    name: str


@dataclass(frozen=True, slots=True)
class DecimalType:
    """A decimal; up to 18 digits it is stored as an integer."""

    precision: int
    scale: int


@dataclass(frozen=True, slots=True)
class ArrayType:
    element: DataType


@dataclass(frozen=True, slots=True)
class MapType:
    key: DataType
    value: DataType


@dataclass(frozen=True, slots=True)
class Field:
    """A column. ``metadata`` is Spark's, for example ``spark.watermarkDelayMs``."""

    name: str
    type: DataType
    nullable: bool = True
    metadata: Mapping[str, object] = field(default_factory=dict, compare=False)


@dataclass(frozen=True, slots=True)
class StructType:
    """Columns in the order of their slots."""

    fields: tuple[Field, ...]

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(column.name for column in self.fields)

    @property
    def unique_names(self) -> tuple[str, ...]:
        """Repeated names end with ``_2``, ``_3`` ...: an average has a ``count``, too."""
        seen: dict[str, int] = {}
        names = []
        for name in self.names:
            seen[name] = seen.get(name, 0) + 1
            names.append(name if seen[name] == 1 else f"{name}_{seen[name]}")
        return tuple(names)


DataType = AtomicType | DecimalType | ArrayType | MapType | StructType


@dataclass(frozen=True, slots=True)
class KeyEncoding:
    """``kind`` is the stem of Spark's encoder: ``NoPrefix``, ``PrefixKeyScan``, ``RangeKeyScan``,
    ``TimestampAsPrefix``, ``TimestampAsPostfix``. The second has ``prefix_columns``, the third ``ordering`` (ordinals).
    """

    kind: str = "NoPrefix"
    prefix_columns: int = 0
    ordering: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class ColumnFamily:
    """The schema of a store, or of a state variable of transformWithState."""

    name: str
    key: StructType
    value: StructType
    encoding: KeyEncoding = field(default_factory=KeyEncoding)
    user_key: StructType | None = None
    key_schema_id: int = 0
    value_schema_id: int = 0


@dataclass(frozen=True, slots=True)
class StateSchema:
    """A state schema file: ``version`` 1, 2 (one family) or 3 (all families of a store)."""

    version: int
    families: tuple[ColumnFamily, ...]

    def family(self, name: str) -> ColumnFamily | None:
        return next((family for family in self.families if family.name == name), None)


@dataclass(frozen=True, slots=True)
class StoreInfo:
    """A store in the metadata. ``schema_files`` are base names by schema id."""

    name: str
    prefix_columns: int
    partitions: int
    schema_files: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class OperatorMetadata:
    """``state/<operator>/_metadata``: the kind of operator and its stores."""

    version: int
    operator: int
    name: str
    stores: tuple[StoreInfo, ...]
    properties: Mapping[str, object] = field(default_factory=dict)


JOIN = "symmetricHashJoin"
LIST_VARIABLE = "ListState"


@dataclass(frozen=True, slots=True)
class OperatorStore:
    """The families, ``default`` where a store has none.

    ``with_families``: keys start with the family's number. ``value_schemas`` are all that were ever written, by schema
    id.
    """

    name: str
    families: tuple[ColumnFamily, ...]
    with_families: bool = False
    value_schemas: Mapping[str, Mapping[int, ColumnFamily]] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Operator:
    """0 is the operator nearest the sink. ``inferred``: no metadata names it."""

    id: int
    name: str
    inferred: bool
    partitions: int
    stores: tuple[OperatorStore, ...]
    properties: Mapping[str, object] = field(default_factory=dict)

    @property
    def list_variables(self) -> frozenset[str]:
        """State variables of transformWithState with several values under a key."""
        variables = self.properties.get("stateVariables")
        if not isinstance(variables, list):
            return frozenset()
        return frozenset(
            str(variable.get("stateName"))
            for variable in variables
            if isinstance(variable, dict) and variable.get("stateVariableType") == LIST_VARIABLE
        )


class StateFileKind(StrEnum):
    """Whole state (``snapshot``, ``zip``) or changes since the version before (``delta``, ``changelog``)."""

    DELTA = "delta"
    SNAPSHOT = "snapshot"
    ZIP = "zip"
    CHANGELOG = "changelog"

    @property
    def is_whole(self) -> bool:
        """Whether a version loads without an older file."""
        return self in {StateFileKind.SNAPSHOT, StateFileKind.ZIP}

    @property
    def provider(self) -> str:
        """``hdfs`` (HDFSBackedStateStoreProvider) or ``rocksdb`` (RocksDBStateStoreProvider)."""
        return "hdfs" if self in {StateFileKind.DELTA, StateFileKind.SNAPSHOT} else "rocksdb"


class StateFile(NamedTuple):
    """A state file by name. Only checkpoint format 2 has a ``unique_id``."""

    version: int
    kind: StateFileKind
    unique_id: str | None = None


class StoreVersions(NamedTuple):
    """Loadable versions of a store in a partition, by file names.

    ``ids`` are the unique ids of a version's files (format 2); a failed attempt leaves more than one.
    """

    provider: str | None
    loadable: frozenset[int]
    ids: frozenset[tuple[int, str]] = frozenset()
    newest: int = 0
    newest_loadable: int = 0

    def has(self, version: int, unique_id: str | None = None) -> bool:
        """Whether the version, of this attempt if ids are used, can be loaded."""
        if version == 0:
            return True
        return version in self.loadable and (unique_id is None or (version, unique_id) in self.ids)


@dataclass(frozen=True, slots=True)
class StateInventory:
    """``stores[operator][partition][store]``."""

    stores: dict[int, dict[int, dict[str, StoreVersions]]] = field(default_factory=dict)

    def names(self, operator: int) -> tuple[str, ...]:
        """An operator's stores, counted once over its partitions."""
        return tuple(sorted({name for stores in self.stores.get(operator, {}).values() for name in stores}))

    def each(self) -> Iterator[tuple[int, int, str, StoreVersions]]:
        """``(operator, partition, store, versions)``, in order."""
        for operator, partitions in sorted(self.stores.items()):
            for partition, stores in sorted(partitions.items()):
                for name, versions in sorted(stores.items()):
                    yield operator, partition, name, versions
