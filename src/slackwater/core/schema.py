"""Spark's data types, as the schemas of state stores name them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field


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
