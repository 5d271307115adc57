"""Stateful operators of a checkpoint: named by their metadata, or (Spark 3.5) inferred from their stores."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from slackwater.core.schema import ColumnFamily

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
