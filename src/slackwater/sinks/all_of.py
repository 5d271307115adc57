"""``sinks.all_of``: each batch is computed once and written into several outputs in order.

Each output has its own mark and owner. An interrupted batch runs again, and outputs skip it by their marks. There is no
joint record, as it could not be written atomically with theirs. The newest batch is the oldest of all marks, so no
output lacks a counted batch.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from operator import itemgetter
from typing import TYPE_CHECKING, TypeVar

from slackwater.core.checkpoint import NONE_YET, Damage, Depth, written_by_all
from slackwater.core.commands import command
from slackwater.core.errors import PipelineError, Refused
from slackwater.core.sink import (
    CatalogueEntry,
    Cut,
    Delivery,
    Identity,
    Owner,
    Swap,
    Traits,
    WriteContext,
    after_batch,
    weakest,
)
from slackwater.sinks.common.batch_function import batch_function, persisted
from slackwater.sinks.common.contract import LogEntries, Output, Sink, SwapPart
from slackwater.sinks.common.directory import marked_traits
from slackwater.sinks.common.problem import malformed_identity
from slackwater.sinks.common.registry import SinkKind, catalogue, open_each, open_output
from slackwater.storage.below import Below
from slackwater.storage.protocols import WriteStore

if TYPE_CHECKING:
    from pyspark.sql import DataFrame
    from pyspark.sql.streaming.readwriter import DataStreamWriter


KIND = "all_of"
Part = TypeVar("Part", Cut, Swap)
FEWEST = 2


def identity_of(members: Sequence[Identity]) -> dict[str, str]:
    """The combined identity, for example ``{"kind": "all_of", "1.kind": "delta", "1.path": ...}``."""
    fields = {f"{number}.{key}": value for number, member in enumerate(members, 1) for key, value in member.items()}
    return {"kind": KIND, **fields}


def member_identities(identity: Identity) -> tuple[Identity, ...]:
    members: dict[int, dict[str, str]] = {}
    for name, value in identity.items():
        number, dot, key = name.partition(".")
        if dot and number.isdecimal():
            members.setdefault(int(number), {})[key] = value
    if len(members) < FEWEST:
        expected = '{"kind": "all_of", "1.kind": ..., "2.kind": ...}'
        raise malformed_identity(identity, "does not have the outputs that it writes into", expected)
    return tuple(members[number] for number in sorted(members))


EXACT = "each output shows its own newest batch, and skips a batch that it has"
UNREADABLE = "output-unreadable"


def combined_traits(members: Sequence[Traits]) -> Traits:
    least = weakest(traits.delivery for traits in members)
    reason = (
        EXACT if least.guarantee == "exactly-once" else f"one of the outputs does not guarantee more: {least.reason}"
    )
    return Traits(
        Delivery(least.guarantee, reason),
        reports_last_batch=all(traits.reports_last_batch for traits in members),
        skips_known_batches=any(traits.skips_known_batches for traits in members),
        cuts=all(traits.cuts for traits in members),
        swaps=all(traits.swaps for traits in members),
        one_writer=any(traits.one_writer for traits in members),
        reads_known_batches=all(traits.reads_known_batches for traits in members if traits.skips_known_batches),
    )


ENTRIES = (
    CatalogueEntry(
        "all_of",
        "all_of(delta(...), postgres(..., keep_batch_id=True), ...)",
        combined_traits([marked_traits(EXACT, cuts=True, swaps=True)]),
        ("append",),
        rank=80,
    ),
)


def open_all_of_output(identity: Identity) -> AllOfOutput:
    return AllOfOutput(open_each(identity))


class AllOfOutput(Output):
    def __init__(self, members: Sequence[Output]) -> None:
        self._members = tuple(members)

    @property
    def traits(self) -> Traits:
        return combined_traits([member.traits for member in self._members])

    @property
    def location(self) -> str | None:
        return "; ".join(member.location for member in self._members if member.location is not None) or None

    def last_written(self) -> int | None:
        return written_by_all([member.last_written() for member in self._members])

    def owner(self) -> Owner | None:
        return next((owner for member in self._members if (owner := member.owner()) is not None), None)

    def claim(self, owner: Owner) -> None:
        """Claim all outputs, or none if any belongs to a different stream."""
        owners = [member.owner() for member in self._members]
        is_of = [known is None or known.stream_id == owner.stream_id for known in owners]
        for _, member in sorted(zip(is_of, self._members, strict=True), key=itemgetter(0)):
            member.claim(owner)

    def cut_after(self, batch: int, recorded: LogEntries) -> Cut:
        return _together(batch, tuple(member.cut_after(batch, recorded) for member in self._members))

    def cut(self, cut: Cut, recorded: LogEntries, backup: WriteStore) -> None:
        if not cut.batches:
            return
        parts = self._parts(cut.members, backup)
        # Once an output has recorded its part it may be cut already, and no longer has what the plan names.
        started = any(store.list() for _, _, store in parts)
        # Otherwise some would be cut before another refuses.
        if not started and cut != self.cut_after(cut.after, recorded):
            raise Refused(
                "cut-mismatch",
                f"The outputs do not have the same rows {after_batch(cut.after)} as the cut",
                where=self.location,
                hint=f"make a new plan: {command('plan', 'rebuild', 'STREAM')}",
            )
        for member, part, store in parts:
            member.cut(part, recorded, store)

    def check_restore(self, cut: Cut, backup: WriteStore) -> None:
        for member, part, store in self._parts(cut.members, backup):
            if part.batches:
                member.check_restore(part, store)

    def restore(self, cut: Cut, backup: WriteStore) -> None:
        for member, part, store in reversed(self._parts(cut.members, backup)):
            if part.batches:
                member.restore(part, store)

    def staged(self, operation: str) -> AllOfOutput:
        return AllOfOutput([member.staged(operation) for member in self._members])

    def stage(self, operation: str, after: int, recorded: LogEntries) -> None:
        if not self.traits.swaps:
            self._refuse_swap()
        for member in self._members:
            member.stage(operation, after, recorded)

    def swap_of(self, operation: str, stream_id: str, after: int = NONE_YET) -> Swap:
        written = self.last_written()
        members = tuple(member.swap_of(operation, stream_id, after) for member in self._members)
        return Swap(operation, stream_id, NONE_YET if written is None else written, members)

    def whole(self, recorded: LogEntries) -> Cut:
        return _together(NONE_YET, tuple(member.whole(recorded) for member in self._members))

    def check_swap(self, swap: Swap, backup: WriteStore) -> None:
        for member, part, store in self._parts(swap.members, backup):
            member.check_swap(part, store)

    def swap(self, swap: Swap, backup: WriteStore) -> None:
        """Swap the outputs in turn; meanwhile readers may see old and new outputs."""
        self.check_swap(swap, backup)
        for member, part, store in self._parts(swap.members, backup):
            member.swap(part, store)

    def check_swap_back(self, swap: Swap, backup: WriteStore) -> None:
        for member, part, store in self._parts(swap.members, backup):
            member.check_swap_back(part, store)

    def swap_back(self, swap: Swap, backup: WriteStore) -> None:
        for member, part, store in reversed(self._parts(swap.members, backup)):
            member.swap_back(part, store)

    def discard(self, operation: str, part: SwapPart) -> None:
        for member in self._members:
            member.discard(operation, part)

    def reader_path(self) -> str:
        for member in self._members:
            try:
                return member.reader_path()
            except PipelineError as error:
                if error.code != UNREADABLE:
                    raise
        raise PipelineError(UNREADABLE, "A stream can read none of the outputs of this stream", where=self.location)

    def _parts(self, parts: Sequence[Part], backup: WriteStore) -> list[tuple[Output, Part, WriteStore]]:
        """The members with their parts of a cut or swap, and the backup of each; nothing for a cut without batches."""
        members = enumerate(zip(self._members, parts, strict=True), 1) if parts else ()
        return [(member, part, Below(backup, str(number))) for number, (member, part) in members]

    def _damage(self, depth: Depth) -> Iterator[Damage]:
        for member in self._members:
            for one in member.damage(depth):
                yield one._replace(path=f"{member.location}/{one.path}") if member.location is not None else one


def _together(batch: int, cuts: tuple[Cut, ...]) -> Cut:
    last = max((cut.batches[-1] for cut in cuts if cut.batches), default=batch)
    return Cut(batch, tuple(range(batch + 1, last + 1)), members=cuts if last > batch else ())


@dataclass(frozen=True, slots=True)
class AllOfSink(Sink):
    members: tuple[Sink, ...]

    kind = KIND
    creates_output = True

    @property
    def parts(self) -> tuple[Sink, ...]:
        return self.members

    @property
    def traits(self) -> Traits:
        return combined_traits([member.traits for member in self.members])

    @property
    def output_modes(self) -> tuple[str, ...]:
        first, *others = self.members
        return tuple(mode for mode in first.output_modes if all(mode in other.output_modes for other in others))

    @property
    def connectors(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(name for member in self.members for name in member.connectors))

    def identity(self) -> Identity:
        return identity_of([member.identity() for member in self.members])

    def staged(self, operation: str, /) -> AllOfSink:
        return AllOfSink(tuple(member.staged(operation) for member in self.members))

    def create_output(self, frame: DataFrame, partition_by: tuple[str, ...], /) -> None:
        for member in self.members:
            member.create_output(frame, partition_by)

    def check(self, frame: DataFrame, context: WriteContext, /) -> None:
        for member in self.members:
            member.check(frame, context)

    def attach(self, writer: DataStreamWriter, context: WriteContext, /) -> DataStreamWriter:
        writes = [member.batch_writer(context) for member in self.members]

        def write(frame: DataFrame, batch: int) -> None:
            # Computed again for each output, a query that is not deterministic would give them different rows.
            with persisted(frame):
                for one in writes:
                    one(frame, batch)

        return writer.foreachBatch(batch_function(write, context))


def all_of(*sinks: Sink) -> AllOfSink:
    """Several sinks for one stream: each batch is computed once and written into one after the other.

    Each output keeps its own mark, so that a batch which was interrupted is written into those that lack it only. The
    guarantee is that of the weakest. Raises PipelineError for fewer than two sinks, one that Spark writes by itself,
    sinks without an output mode in common, and two with one output.
    """
    given: tuple[object, ...] = sinks
    for sink in given:
        if not isinstance(sink, Sink) or not sink.traits.combines:
            possible = dict.fromkeys(entry.name for entry in catalogue() if entry.traits.combines)
            kind = getattr(sink, "kind", None)
            known = isinstance(kind, str) and not isinstance(sink, type)
            raise PipelineError(
                "all-of-sink",
                f"The {kind} sink cannot be one of several: Spark writes to it directly, without a batch function"
                if known
                else "This sink cannot be one of several",
                expected=" or ".join(f"sinks.{name}" for name in possible),
                found=f"sinks.{kind}" if known else repr(sink),
                hint="write to it with a separate stream that reads the same source",
            )
    if len(sinks) < FEWEST:
        raise PipelineError(
            "all-of-sinks",
            "all_of() needs at least two sinks",
            expected="sinks.all_of(sink, sink, ...)",
            found=str(len(sinks)),
            hint="give a single sink to the stream itself",
        )
    made = AllOfSink(sinks)
    if not made.output_modes:
        raise PipelineError(
            "all-of-modes",
            "The sinks have no output mode in common",
            found="; ".join(f"{sink.kind}: {', '.join(sink.output_modes)}" for sink in sinks),
            hint="write to each of them with a separate stream",
        )
    outputs = [open_output(sink.identity()) for sink in sinks if sink.traits.one_writer]
    twice = _first_repeated(frozenset({one.location} - {None}) for one in outputs)
    if twice is not None:
        raise PipelineError(
            "sink-shared",
            "Two of the sinks write to one output; the second would skip each batch",
            where=twice,
            hint="give each of the sinks an output of its own",
        )
    twice = _first_repeated(one.marker_locations for one in outputs)
    if twice is not None:
        raise PipelineError(
            "sink-marker-shared",
            "Two of the sinks share a marker topic; the second would skip every batch",
            where=twice,
            hint="leave out marker_topic, or give each sink its own",
        )
    return made


def _first_repeated(places: Iterable[frozenset[str | None]]) -> str | None:
    seen: set[str | None] = set()
    for one in places:
        if shared := seen & one:
            return min(filter(None, shared))
        seen |= one
    return None


SINK = SinkKind(
    opener=open_all_of_output, constructor=all_of, exports=("AllOfSink",), entries=ENTRIES, members=member_identities
)
