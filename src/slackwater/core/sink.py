"""Values that describe a sink: traits, delivery, owner, changes; documents of them are parsed strictly.

Hidden names next to a directory are not found by readers of the parent folder.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import ClassVar, Literal, TypeAlias, get_args

from slackwater.core.units import counted

STRICT: Mapping[str, object] = {"extra": "forbid", "strict": True}
"""No conversions, no unknown fields: pydantic's own names."""


Guarantee = Literal["exactly-once", "at-least-once", "none"]
"""``none``: the sink keeps no rows, or not over a restart."""


OutputTreatment = Literal["cut", "keep", "clear", "swap", "aside"]
"""Existing output: batches processed again are cut, nothing is, or everything is; or staged output is swapped in once
it has caught up; or rows go to a backfill directory.
"""


Identity: TypeAlias = Mapping[str, str]
"""A recorded sink or output: its kind, and what that kind needs to open it."""


def sink_text(identity: Identity) -> str:
    """The identity as in messages: ``kind=files path=/out``."""
    return " ".join(f"{key}={value}" for key, value in sorted(identity.items()))


@dataclass(frozen=True, slots=True)
class Delivery:
    """A sink's guarantee across crashes and restarts, and the reason."""

    guarantee: Guarantee
    reason: str


@dataclass(frozen=True, slots=True)
class Traits:
    """Plans depend on a sink's traits, never on its kind.

    ``reports_last_batch``: ``last_written()`` needs neither checkpoint nor JVM. ``skips_known_batches``: a batch whose
    id is in the output is skipped. ``cuts``: whole batches can be removed and restored. ``swaps``: staged output can be
    swapped in atomically. ``reads_known_batches``: a skipped batch runs without output, so that Spark's
    watermark equals an uninterrupted run's. ``one_writer``: a second stream may not write to it. ``continuous``: Spark
    can write it without micro-batches (programming guide, section "Continuous Processing"). ``real_time``: Spark allows
    it in real-time mode. ``combines``: it can be combined with other outputs.
    """

    delivery: Delivery
    reports_last_batch: bool = False
    skips_known_batches: bool = False
    cuts: bool = False
    swaps: bool = False
    one_writer: bool = True
    reads_known_batches: bool = False
    continuous: bool = False
    real_time: bool = False
    combines: bool = False


def weakest(deliveries: Iterable[Delivery]) -> Delivery:
    return max(deliveries, key=lambda delivery: get_args(Guarantee).index(delivery.guarantee))


@dataclass(frozen=True, slots=True)
class CatalogueEntry:
    """``call`` is the code, ``name`` the function of ``slackwater.sinks``. Entries without a ``rank`` are last."""

    name: str
    call: str
    traits: Traits
    output_modes: tuple[str, ...] = ("append", "update", "complete")
    rank: int = 1000


@dataclass(frozen=True, slots=True)
class Owner:
    stream_id: str
    stream: str
    home: str


def unchecked() -> None:
    """The lease check of a run without a lease."""


@dataclass(frozen=True, slots=True)
class WriteContext:
    """``epoch`` is the lease's fence number, which grows with each run. Batches up to ``planned``, the newest before
    this run, may run again. ``check_lease`` raises ``LeaseHeld`` after the lease was lost.
    """

    stream_id: str
    stream: str
    epoch: int
    output_mode: str
    planned: int = -1
    partition_by: tuple[str, ...] = ()
    check_lease: Callable[[], None] = field(default=unchecked, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class WriterCalls:
    """``format`` defaults to the session's.

    ``options`` are in lower case, with ``path``; ``table`` is of ``toTable``. ``function`` is ``foreach`` or
    ``foreachBatch``. ``location`` is the catalog table's, whose provider is then the ``format``.
    """

    format: str
    options: Mapping[str, str]
    table: str | None = None
    function: str | None = None
    query: str | None = None
    location: str | None = None


@dataclass(frozen=True, slots=True)
class Others:
    """Rows and files that an operation would remove although its stream did not write them. ``rows`` ``None``: unknown.
    ``sure``: it is known that others wrote it.
    """

    __pydantic_config__: ClassVar = STRICT

    rows: int | None = 0
    files: int = 0
    commits: int = 0
    sure: bool = True

    @property
    def any(self) -> bool:
        return self.rows != 0 or self.files > 0 or self.commits > 0

    @property
    def text(self) -> str:
        """The counts, such as ``3 rows, 1 file, 1 commit``."""
        unknown = ["an unknown number of rows"] if self.rows is None else []
        known = ((self.rows or 0, "row"), (self.files, "file"), (self.commits, "commit"))
        return ", ".join([*unknown, *(counted(count, noun) for count, noun in known if count)]) or "none"


NO_OTHERS = Others()


@dataclass(frozen=True, slots=True)
class Cut:
    """A cut back to batch ``after``.

    ``files`` are POSIX paths relative to the output, ``bytes`` their recorded size; ``rows`` are counted by some
    outputs. ``version`` is the output's state behind the cut, if it has versions. ``others`` are removed although they
    are not the stream's. With several outputs, ``members`` has each output's cut in order.
    """

    __pydantic_config__: ClassVar = STRICT

    after: int
    batches: tuple[int, ...]
    files: tuple[str, ...] = ()
    bytes: int = 0
    rows: int | None = None
    version: str | None = None
    members: tuple[Cut, ...] = ()
    others: Others = NO_OTHERS

    @property
    def parts(self) -> tuple[Cut, ...]:
        return self.members or (self,)

    @property
    def seen(self) -> str:
        return "; ".join(f"{one.rows} rows, {len(one.files)} files, {one.version}" for one in self.parts)


@dataclass(frozen=True, slots=True)
class BackfillDirectory:
    __pydantic_config__: ClassVar = STRICT

    format: str
    path: str


@dataclass(frozen=True, slots=True)
class Swap:
    """A staged output of ``operation`` that will replace the stream's.

    ``replaced`` is the real output's newest batch, ``version`` its state in its own words; a swap is refused if either
    has changed. ``version`` is ``None`` if rows of others are carried over. ``others`` disappear although the stream
    did not write them. With several outputs ``members`` has each swap in order.
    """

    __pydantic_config__: ClassVar = STRICT

    operation: str
    stream_id: str
    replaced: int
    members: tuple[Swap, ...] = ()
    version: str | None = None
    others: Others = NO_OTHERS

    @property
    def parts(self) -> tuple[Swap, ...]:
        return self.members or (self,)

    @property
    def seen(self) -> str:
        return "; ".join(str(one.version) for one in self.parts)


def others_of(change: Cut | Swap) -> Others:
    found = [one.others for one in change.parts]
    counts = [one.rows for one in found if one.rows is not None]
    return Others(
        sum(counts) if len(counts) == len(found) else None,
        sum(one.files for one in found),
        sum(one.commits for one in found),
        sure=all(one.sure for one in found),
    )


def cut_step(after: int) -> str:
    """Leaves the sink its batches up to ``after``, -1 for none."""
    return f"cut the sink back to batch {after}" if after >= 0 else "empty the sink"


def cut_back(after: int) -> str:
    return f"cut back to batch {after}" if after >= 0 else "emptied"


def after_batch(after: int) -> str:
    return f"after batch {after}" if after >= 0 else "from batch 0 on"


def newest_batch(batch: int) -> str:
    return f"batch {batch}" if batch >= 0 else "no batch"


def staging_path(name: str, operation: str) -> str:
    """The operation's own folder next to ``name``."""
    return f".{name}.slackwater-{operation}"


def exchange_path(name: str, operation: str) -> str:
    """The temporary place of a directory during an exchange by renames."""
    return f"{staging_path(name, operation)}.held"
