"""Use case: read a checkpoint and report what is in it. Nothing is written, and no JVM is started.

A local checkpoint needs only the standard library here; state rows, remote stores and the ledger bring their libraries
when they are asked for.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from slackwater.checkpoint.collector import collector_off
from slackwater.checkpoint.identify import require_checkpoint
from slackwater.checkpoint.limited_store import limited
from slackwater.checkpoint.opened import OpenedCheckpoint, open_checkpoint
from slackwater.checkpoint.reader import read_checkpoint
from slackwater.errors import EnvironmentMissing, FormatError, NotFound, UsageError
from slackwater.model.checkpoint import CheckpointReport
from slackwater.model.operator import JOIN, Operator, OperatorStore
from slackwater.model.read_options import ReadLimits, ReadOptions
from slackwater.model.units import size_text
from slackwater.storage.local import exists
from slackwater.storage.open import is_uri, open_read_store
from slackwater.storage.protocols import FileTooLarge, ReadStore

if TYPE_CHECKING:
    from slackwater.checkpoint.state.reader import StateChoice, StateRows

_SIDES = ("left", "right")


@dataclass(frozen=True, slots=True)
class StateRequest:
    """Which state to read: an operator, and where it has several stores one of them (or a side of a join)."""

    operator: int
    store: str | None = None
    side: str | None = None
    partition: int | None = None
    batch: int | None = None
    limits: ReadLimits = field(default_factory=ReadLimits)


@dataclass(frozen=True, slots=True)
class StateResult:
    """State rows as Arrow tables, and what was read."""

    location: str
    operator: Operator
    store: str
    batch: int
    rows: StateRows


def resolve(target: str, home: str | None = None) -> str:
    """The checkpoint that LOCATION or STREAM names: a URI, a path that exists, else the stream's one in use.

    Raises ``NotFound`` where it is neither.
    """
    if is_uri(target) or exists(target):
        return target
    looks_like_path = target.startswith(("/", "./", "../", "~"))
    location = None if looks_like_path else _location_of_stream(target, home)
    if location is not None:
        return location
    raise NotFound(
        "no-checkpoint",
        "There is no path and no stream of this name",
        where=target,
        hint="slackwater status shows the streams of this home",
    )


def _location_of_stream(name: str, home: str | None) -> str | None:
    from slackwater.app.workspace import open_workspace  # noqa: PLC0415  (the ledger brings SQLAlchemy)
    from slackwater.settings import load  # noqa: PLC0415

    try:
        with open_workspace(load(home=home)) as workspace:
            stream = workspace.ledger.find_stream(name)
            return workspace.ledger.generation(stream.full_name, stream.current_generation).location
    except NotFound:
        return None


def open_target(target: str, home: str | None = None, limits: ReadLimits | None = None) -> OpenedCheckpoint:
    """The checkpoint, listed. Raises ``NotFound`` with what was found instead."""
    store = open_read_store(resolve(target, home))
    require_reachable(store)
    return open_checkpoint(store, limits)


def require_reachable(store: ReadStore) -> None:
    """Read the root first. Raises ``NotFound``, or ``EnvironmentMissing`` where the store cannot be reached."""
    try:
        require_checkpoint(store)
    except OSError as error:
        raise EnvironmentMissing(
            "store-unreachable",
            "The store cannot be listed",
            where=store.location,
            found=str(error),
            hint="check its address, and that you may read there",
        ) from error


def inspect_checkpoint(target: str, *, home: str | None = None, options: ReadOptions | None = None) -> CheckpointReport:
    """Everything that the reader finds in a checkpoint."""
    with collector_off():
        report = read_checkpoint(open_target(target, home, options.limits if options else None), options)
    batch = options.batch if options else None
    if batch is not None and all(line.id != batch for line in report.batches):
        raise NotFound(
            "no-such-batch",
            "This batch is not kept in the checkpoint",
            where=report.location,
            expected=_kept(report),
            found=f"batch {batch}",
        )
    return report


def _kept(report: CheckpointReport) -> str:
    ids = [line.id for line in report.batches]
    return f"a batch from {min(ids)} to {max(ids)}" if ids else "no batch, as none is kept"


def inspect_state(target: str, request: StateRequest, *, home: str | None = None) -> StateResult:
    """Rows of one store. Raises ``NotFound`` or ``UsageError`` where the request names nothing."""
    from slackwater.checkpoint.state.operators import OperatorReader  # noqa: PLC0415
    from slackwater.checkpoint.state.reader import StateReader  # noqa: PLC0415  (imports numpy and pyarrow)

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
    from slackwater.checkpoint.state.reader import StateChoice  # noqa: PLC0415

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
    from slackwater.checkpoint.state.reader import StateChoice  # noqa: PLC0415

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


def inspect_file(target: str, path: str, *, home: str | None = None, limits: ReadLimits | None = None) -> str:
    """One file as text: logs as they are, binary files taken apart. Raises ``NotFound`` or ``FormatError``."""
    from slackwater.checkpoint.file_text import file_text  # noqa: PLC0415

    store = limited(open_read_store(resolve(target, home)), limits)
    try:
        data = store.read(path.strip("/"))
    except FileTooLarge as error:
        raise FormatError(
            "too-large", "The file is too large to be shown", where=path,
            expected=f"at most {size_text(error.limit)}",
            found="more" if error.size is None else size_text(error.size),
            hint="raise the limit with --max-bytes",
        ) from error  # fmt: skip
    except PermissionError:
        raise
    except OSError as error:
        raise NotFound(
            "no-such-file",
            "There is no such file in the checkpoint",
            where=store.location,
            expected="the path of a regular file below the checkpoint, such as offsets/0",
            found=path,
        ) from error
    try:
        return file_text(path, data, store.limits)
    except FormatError as error:
        error.where = error.where or path
        raise
