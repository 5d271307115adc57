"""Use case: read the rows of one state store. It brings numpy and pyarrow, and is imported where rows are asked for."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from slackwater.checkpoint.opened import OpenedCheckpoint
from slackwater.checkpoint.state.operators import OperatorReader
from slackwater.checkpoint.state.reader import StateChoice, StateReader, StateRows
from slackwater.cli.verbs.inspect.reading import StateRequest, open_target
from slackwater.core.errors import NotFound, UsageError
from slackwater.core.operator import JOIN, Operator, OperatorStore

_SIDES = ("left", "right")


@dataclass(frozen=True, slots=True)
class StateResult:
    """State rows as Arrow tables, and what was read."""

    location: str
    operator: Operator
    store: str
    batch: int
    rows: StateRows


def inspect_state(target: str, request: StateRequest, *, home: str | None = None) -> StateResult:
    """Rows of one store. Raises ``NotFound`` or ``UsageError`` where the request names nothing."""
    opened = open_target(target, home, request.limits)
    batch = opened.logs.committed if request.batch is None else request.batch
    operators = OperatorReader(opened.store, opened.listing, opened.inventory)
    numbers = opened.listing.numbered_directories("state")
    if request.operator not in numbers:
        expected = f"one of {', '.join(map(str, numbers))}" if numbers else "none, as the stream keeps no state"
        raise NotFound(
            "no-such-operator", "There is no such stateful operator", where=opened.store.location,
            expected=expected, found=str(request.operator),
        )  # fmt: skip
    operator = operators.operator(request.operator, batch)
    choice = choose(operator, request)
    _require_partition(opened, request)
    reader = StateReader(opened.batch_state(batch), list(operators.damage))
    name = choice.family if choice.store.with_families else choice.store.name
    return StateResult(opened.store.location, operator, name, batch, reader.rows(choice))


def _require_partition(opened: OpenedCheckpoint, request: StateRequest) -> None:
    partitions = sorted(opened.inventory.stores.get(request.operator, {}))
    if request.partition is not None and request.partition not in partitions:
        raise NotFound(
            "no-such-partition", "There is no such partition", where=opened.store.location,
            expected=f"one of {', '.join(map(str, partitions))}", found=str(request.partition),
        )  # fmt: skip


def choose(operator: Operator, request: StateRequest) -> StateChoice:
    """The store or state variable a request means. Raises ``UsageError`` where it leaves more than one."""
    stores = choices(operator)
    if request.side is not None:
        return _choose_side(operator, request)
    if request.store is not None:
        wanted = [request.store]
    else:
        shown = [name for name in stores if not name.startswith("$")]
        wanted = shown if len(shown) == 1 else []
    chosen = next((stores[name] for name in wanted if name in stores), None)
    if chosen is None:
        raise UsageError(
            "which-store", f"Operator {operator.id} ({operator.name}) has no single store to show: name one",
            expected=f"--store with one of {', '.join(stores)}" + (" or --side" if operator.name == JOIN else ""),
            found=request.store,
        )  # fmt: skip
    store, family = chosen
    return StateChoice(operator, store, family, partition=request.partition)


def choices(operator: Operator) -> Mapping[str, tuple[OperatorStore, str]]:
    """What ``--store`` may name: stores without families of their own, and the families of the others."""
    return {
        (family.name if store.with_families else store.name): (store, family.name)
        for store in operator.stores
        for family in store.families
    }


def _choose_side(operator: Operator, request: StateRequest) -> StateChoice:
    stores = choices(operator)
    names = (f"{request.side}-keyWithIndexToValue", f"{request.side}-keyWithTsToValues")
    found = next((stores[name] for name in names if name in stores), None)
    if request.side not in _SIDES or operator.name != JOIN or found is None:
        raise UsageError(
            "no-side", f"Operator {operator.id} ({operator.name}) has no such side", expected="left or right of a join",
            found=request.side,
        )  # fmt: skip
    store, family = found
    return StateChoice(operator, store, family, side=True, partition=request.partition)
