"""What the state directories of a checkpoint hold, by file names alone.

Batch N reads state version N and makes version N+1; version 0 is empty and has no file.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import NamedTuple


@dataclass(frozen=True, slots=True)
class AtomicType:
    """A type without parts: ``long``, ``string``, ``timestamp``, ``void`` ... in Spark's own spelling."""

    name: str


@dataclass(frozen=True, slots=True)
class DecimalType:
    """``decimal(precision,scale)``; up to 18 digits it is stored as an integer."""

    precision: int
    scale: int


@dataclass(frozen=True, slots=True)
class ArrayType:
    """Elements of one type."""

    element: DataType


@dataclass(frozen=True, slots=True)
class MapType:
    """Keys and values, each of one type."""

    key: DataType
    value: DataType


@dataclass(frozen=True, slots=True)
class Field:
    """A named column. ``metadata`` is Spark's, for example ``spark.watermarkDelayMs``."""

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
        """The column names, in order."""
        return tuple(column.name for column in self.fields)

    @property
    def unique_names(self) -> tuple[str, ...]:
        """The names with ``_2``, ``_3`` ... behind repeated ones: an average has a ``count``, too."""
        seen: dict[str, int] = {}
        names = []
        for name in self.names:
            seen[name] = seen.get(name, 0) + 1
            names.append(name if seen[name] == 1 else f"{name}_{seen[name]}")
        return tuple(names)


DataType = AtomicType | DecimalType | ArrayType | MapType | StructType


@dataclass(frozen=True, slots=True)
class KeyEncoding:
    """How a RocksDB store lays out its keys.

    ``kind`` is the stem of Spark's encoder: ``NoPrefix``, ``PrefixKeyScan``, ``RangeKeyScan``, ``TimestampAsPrefix``,
    ``TimestampAsPostfix``. ``prefix_columns`` goes with the second, ``ordering`` (ordinals) with the third.
    """

    kind: str = "NoPrefix"
    prefix_columns: int = 0
    ordering: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class ColumnFamily:
    """The schema of one store, or of one state variable in a store of transformWithState."""

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
        """The column family of this name."""
        return next((family for family in self.families if family.name == name), None)


@dataclass(frozen=True, slots=True)
class StoreInfo:
    """One store of an operator, by its metadata. ``schema_files`` are base names, the index is the schema id."""

    name: str
    prefix_columns: int
    partitions: int
    schema_files: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class OperatorMetadata:
    """``state/<operator>/_metadata``: what kind of operator this is and which stores it keeps."""

    version: int
    operator: int
    name: str
    stores: tuple[StoreInfo, ...]
    properties: Mapping[str, object] = field(default_factory=dict)


JOIN = "symmetricHashJoin"
LIST_VARIABLE = "ListState"


@dataclass(frozen=True, slots=True)
class OperatorStore:
    """One store of an operator: its column families, one named ``default`` where it has none of its own.

    ``with_families`` means that every key starts with the number of its family. ``value_schemas`` are the schemas that
    values of each family were ever written with, by schema id.
    """

    name: str
    families: tuple[ColumnFamily, ...]
    with_families: bool = False
    value_schemas: Mapping[str, Mapping[int, ColumnFamily]] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Operator:
    """A stateful operator; 0 is the one nearest the sink. ``inferred``: there was no metadata to name it."""

    id: int
    name: str
    inferred: bool
    partitions: int
    stores: tuple[OperatorStore, ...]
    properties: Mapping[str, object] = field(default_factory=dict)

    @property
    def list_variables(self) -> frozenset[str]:
        """State variables of transformWithState that keep several values under one key."""
        variables = self.properties.get("stateVariables")
        if not isinstance(variables, list):
            return frozenset()
        return frozenset(
            str(variable.get("stateName"))
            for variable in variables
            if isinstance(variable, dict) and variable.get("stateVariableType") == LIST_VARIABLE
        )


class StateFileKind(StrEnum):
    """Whole state (``snapshot``, ``zip``) or the changes since the version before (``delta``, ``changelog``)."""

    DELTA = "delta"
    SNAPSHOT = "snapshot"
    ZIP = "zip"
    CHANGELOG = "changelog"

    @property
    def is_whole(self) -> bool:
        """Whether a version can be loaded from this file without an older one."""
        return self in {StateFileKind.SNAPSHOT, StateFileKind.ZIP}

    @property
    def provider(self) -> str:
        """``hdfs`` (HDFSBackedStateStoreProvider) or ``rocksdb`` (RocksDBStateStoreProvider)."""
        return "hdfs" if self in {StateFileKind.DELTA, StateFileKind.SNAPSHOT} else "rocksdb"


class StateFile(NamedTuple):
    """A state file by its name. ``unique_id`` is there with checkpoint format 2 only."""

    version: int
    kind: StateFileKind
    unique_id: str | None = None


class StoreVersions(NamedTuple):
    """Which versions of one store in one partition can be loaded, by file names.

    ``ids`` lists, by version, the unique ids that have a file (format 2); a failed attempt leaves more than one.
    """

    provider: str | None
    loadable: frozenset[int]
    ids: frozenset[tuple[int, str]] = frozenset()
    newest: int = 0
    newest_loadable: int = 0

    def has(self, version: int, unique_id: str | None = None) -> bool:
        """Whether this version, of this attempt where ids are in use, can be loaded."""
        if version == 0:
            return True
        return version in self.loadable and (unique_id is None or (version, unique_id) in self.ids)


@dataclass(frozen=True, slots=True)
class StateInventory:
    """Every store of every partition of every operator: ``stores[operator][partition][store]``."""

    stores: dict[int, dict[int, dict[str, StoreVersions]]] = field(default_factory=dict)

    def names(self, operator: int) -> tuple[str, ...]:
        """The stores of an operator, each as often as it has partitions counted once."""
        return tuple(sorted({name for stores in self.stores.get(operator, {}).values() for name in stores}))

    def each(self) -> Iterator[tuple[int, int, str, StoreVersions]]:
        """``(operator, partition, store, versions)``, in order."""
        for operator, partitions in sorted(self.stores.items()):
            for partition, stores in sorted(partitions.items()):
                for name, versions in sorted(stores.items()):
                    yield operator, partition, name, versions
