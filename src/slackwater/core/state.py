"""The operators of a checkpoint's state: their stores, and the types and schemas of keys and values."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
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


JOIN = "symmetricHashJoin"
LIST_VARIABLE = "ListState"


class OperatorStore(NamedTuple):
    """The families, ``default`` for a store without families. ``with_families``: keys start with the family's number.
    ``value_schemas`` are all ever written, by schema id. Metadata has ``prefix_columns``, and ``schema_files``: base
    names by schema id.
    """

    name: str
    families: tuple[ColumnFamily, ...] = ()
    with_families: bool = False
    value_schemas: Mapping[str, Mapping[int, ColumnFamily]] = {}
    prefix_columns: int = 0
    schema_files: tuple[str, ...] = ()


class Operator(NamedTuple):
    """0 is the operator nearest the sink. ``inferred``: no metadata names it."""

    id: int
    name: str
    inferred: bool
    partitions: int
    stores: tuple[OperatorStore, ...]
    properties: Mapping[str, object] = {}

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
