"""Values about a sink's output: what a cut takes out, who owns it, and what it can do."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import ClassVar, Literal, get_args

from slackwater.core.strict import STRICT
from slackwater.core.units import counted

Guarantee = Literal["exactly-once", "at-least-once", "none"]
"""``none``: the sink keeps no rows, or not over a restart."""


OutputTreatment = Literal["cut", "keep", "clear", "swap", "aside"]
"""What becomes of what the sink has: batches that are processed again are cut from it, nothing is, or everything is; or
new output is staged and put in its place when it has caught up; or rows go to a backfill directory, and it is not
touched."""


def sink_text(identity: Mapping[str, str]) -> str:
    """The identity of a sink as messages show it: ``kind=files path=/out``."""
    return " ".join(f"{key}={value}" for key, value in sorted(identity.items()))


@dataclass(frozen=True, slots=True)
class Delivery:
    """What a sink guarantees across crashes and restarts, and why, in one sentence."""

    guarantee: Guarantee
    reason: str


@dataclass(frozen=True, slots=True)
class Traits:
    """What a sink can do; plans depend on these and never on its kind.

    ``reports_last_batch``: ``last_written()`` needs neither the checkpoint nor a JVM. ``skips_known_batches``: a batch
    whose id the output already has is skipped. ``cuts``: whole batches can be removed and restored. ``swaps``: new
    output can be staged and put in place in one step. ``reads_known_batches``: a batch that is skipped is run all the
    same, without output, so that Spark's watermark is that of an uninterrupted run. ``one_writer``: a second stream
    may not write to it. ``continuous``: Spark can write it without micro-batches (programming guide, section
    "Continuous Processing"). ``real_time``: it is among the sinks that Spark allows in real-time mode. ``combines``:
    it can be one of several outputs that a batch is written into.
    """

    delivery: Delivery
    reports_last_batch: bool
    skips_known_batches: bool
    cuts: bool
    swaps: bool
    one_writer: bool = True
    reads_known_batches: bool = False
    continuous: bool = False
    real_time: bool = False
    combines: bool = False


def weakest(deliveries: Iterable[Delivery]) -> Delivery:
    """The one that promises least; of several, the first."""
    return max(deliveries, key=lambda delivery: get_args(Guarantee).index(delivery.guarantee))


@dataclass(frozen=True, slots=True)
class CatalogueEntry:
    """One sink, or one way to use it: ``call`` is how it is written, ``name`` the function of ``slackwater.sinks``.

    Entries are listed by ``rank``; without one, after all others.
    """

    name: str
    call: str
    traits: Traits
    output_modes: tuple[str, ...] = ("append", "update", "complete")
    rank: int = 1000


@dataclass(frozen=True, slots=True)
class Owner:
    """The stream that writes to an output; kept next to its manifest. ``home`` is the home of ``stream``."""

    stream_id: str
    stream: str
    home: str


def unchecked() -> None:
    """For a run without a lease."""


@dataclass(frozen=True, slots=True)
class WriteContext:
    """The run that writes to a sink. ``epoch`` is the fence number of its lease: a later run has a higher one.

    ``planned`` is the newest batch that was planned before this run started: batches up to it may be run again.
    ``check_lease`` raises ``LeaseHeld`` once the lease is another run's.
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
    """What a ``DataStreamWriter`` was given. ``format`` is that of the session where the application names none.

    ``options`` have names in lower case, ``path`` among them; ``table`` is that of ``toTable``. ``function`` is
    ``foreach`` or ``foreachBatch``. ``query`` is the name of the query. ``location`` is where Spark's catalog has the
    table; its provider is the ``format`` then.
    """

    format: str
    options: Mapping[str, str]
    table: str | None = None
    function: str | None = None
    query: str | None = None
    location: str | None = None


@dataclass(frozen=True, slots=True)
class Others:
    """What an operation would take out of an output although its stream did not write it.

    ``rows`` is ``None`` where their number is unknown; ``files`` and ``commits`` are 0 where the output has none.
    ``sure`` is false where it is unknown whether others wrote them.
    """

    __pydantic_config__: ClassVar = STRICT

    rows: int | None = 0
    files: int = 0
    commits: int = 0
    sure: bool = True

    @property
    def any(self) -> bool:
        """Whether there is something."""
        return self.rows != 0 or self.files > 0 or self.commits > 0

    @property
    def text(self) -> str:
        """In words, such as ``3 rows, 1 file, 1 commit``."""
        unknown = ["an unknown number of rows"] if self.rows is None else []
        known = ((self.rows or 0, "row"), (self.files, "file"), (self.commits, "commit"))
        return ", ".join([*unknown, *(counted(count, noun) for count, noun in known if count)]) or "none"


NO_OTHERS = Others()


@dataclass(frozen=True, slots=True)
class Cut:
    """What cutting an output back to batch ``after`` takes out of it.

    ``files`` are POSIX paths relative to the output, ``bytes`` their total size as the output records it; ``rows`` is
    the number of rows, where the output counts these. ``version`` names the state of the output that the cut was worked
    out from, where the output has versions. ``others`` is what goes with the batches and is not the stream's. Of
    several outputs ``members`` has what each of them loses, in their order, and the cut itself only the batches.
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
        """The cut of each output."""
        return self.members or (self,)

    @property
    def seen(self) -> str:
        """What was seen in the output, for a comparison."""
        return "; ".join(f"{one.rows} rows, {len(one.files)} files, {one.version}" for one in self.parts)


@dataclass(frozen=True, slots=True)
class BackfillDirectory:
    """A directory that an operation fills in place of the output of a stream, in a format of the file sink.

    ``path`` is absolute, or a URI.
    """

    __pydantic_config__: ClassVar = STRICT

    format: str
    path: str


@dataclass(frozen=True, slots=True)
class Swap:
    """A staged output that is to replace the real one: that of ``operation``, both of the stream ``stream_id``.

    ``replaced`` is the newest batch of the real output, and ``version`` names its state, in the output's own words; a
    swap is refused if either is another one by then. ``version`` is ``None`` where rows of others are carried over.
    ``others`` is what readers see before the swap, and after it no longer, although the stream did not write it.
    Of several outputs ``members`` has the swap of each, in their order.
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
        """The swap of each output."""
        return self.members or (self,)

    @property
    def seen(self) -> str:
        """What was seen in the output, for a comparison."""
        return "; ".join(str(one.version) for one in self.parts)


def others_of(change: Cut | Swap) -> Others:
    """What a cut or a swap takes out of all outputs although their stream did not write it."""
    found = [one.others for one in change.parts]
    counts = [one.rows for one in found if one.rows is not None]
    return Others(
        sum(counts) if len(counts) == len(found) else None,
        sum(one.files for one in found),
        sum(one.commits for one in found),
        sure=all(one.sure for one in found),
    )


def cut_step(after: int) -> str:
    """The step that leaves the sink what it has up to a batch, -1 for nothing."""
    return f"cut the sink back to batch {after}" if after >= 0 else "empty the sink"


def cut_back(after: int) -> str:
    """What such a step does to an output."""
    return f"cut back to batch {after}" if after >= 0 else "emptied"


def after_batch(after: int) -> str:
    """Where the batches after one start, -1 for none."""
    return f"after batch {after}" if after >= 0 else "from batch 0 on"


def newest_batch(batch: int) -> str:
    """The newest batch of an output or a log, -1 for none."""
    return f"batch {batch}" if batch >= 0 else "no batch"
