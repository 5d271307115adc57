"""Several outputs as one: what all of them show, whose they are, and cutting them back together.

Each keeps its own mark. The newest batch of the whole is the oldest of them, so that no output lacks a batch that
counts as written; the snapshot of a stream (``recording/snapshot``) also has the mark of each.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from slackwater.errors import PipelineError, Refused
from slackwater.model.damage import Damage
from slackwater.model.marks import written_by_all
from slackwater.model.sink import Cut, Delivery, Owner, Traits, weakest
from slackwater.sinks.contract import Output, SinkLog
from slackwater.storage.below import Below
from slackwater.storage.protocols import WriteStore

EXACT = "each output shows its own newest batch, and skips a batch that it has"
UNREADABLE = "output-unreadable"


def combined_traits(members: Sequence[Traits]) -> Traits:
    """What several outputs can do together: what all of them can, with the guarantee of the weakest."""
    least = weakest(traits.delivery for traits in members)
    reason = (
        EXACT if least.guarantee == "exactly-once" else f"one of the outputs does not guarantee more: {least.reason}"
    )
    return Traits(
        Delivery(least.guarantee, reason),
        tells_written=all(traits.tells_written for traits in members),
        skips_known_batches=any(traits.skips_known_batches for traits in members),
        cuts=all(traits.cuts for traits in members),
        swaps=False,
        one_writer=any(traits.one_writer for traits in members),
        reads_known_batches=all(traits.reads_known_batches for traits in members if traits.skips_known_batches),
    )


class AllOfOutput:
    """The outputs of one stream, in the order in which a batch is written into them."""

    def __init__(self, members: Sequence[Output]) -> None:
        self._members = tuple(members)
        self.traits = combined_traits([member.traits for member in self._members])

    @property
    def location(self) -> str | None:
        return "; ".join(member.location for member in self._members if member.location is not None) or None

    def last_written(self) -> int | None:
        return written_by_all([member.last_written() for member in self._members])

    def owner(self) -> Owner | None:
        """The first owner that an output records."""
        return next((owner for member in self._members if (owner := member.owner()) is not None), None)

    def claim(self, owner: Owner) -> None:
        """Record the owner in each output; where one of them is another stream's, in none."""
        for member in sorted(self._members, key=lambda member: _is_of(member.owner(), owner)):
            member.claim(owner)

    def damage(self, *, thorough: bool = False) -> tuple[Damage, ...]:
        return tuple(self._damage(thorough=thorough))

    def log(self) -> SinkLog | None:
        return None

    def name_of(self, _uri: str) -> str | None:
        return None

    def cut_after(self, batch: int, recorded: Mapping[int, str]) -> Cut:
        cuts = tuple(member.cut_after(batch, recorded) for member in self._members)
        last = max((cut.batches[-1] for cut in cuts if cut.batches), default=batch)
        return Cut(batch, tuple(range(batch + 1, last + 1)), members=cuts if last > batch else ())

    def cut(self, cut: Cut, recorded: Mapping[int, str], backup: WriteStore) -> None:
        if not cut.batches:
            return
        parts = list(self._parts(cut, backup))
        if not any(store.list() for _, _, store in parts):
            self._check_cut(cut, recorded)
        for member, part, store in parts:
            member.cut(part, recorded, store)

    def restore(self, cut: Cut, backup: WriteStore) -> None:
        for member, part, store in reversed(list(self._parts(cut, backup))):
            if part.batches:
                member.restore(part, store)

    def reader_path(self) -> str:
        """That of the first output which a stream can read."""
        for member in self._members:
            try:
                return member.reader_path()
            except PipelineError as error:
                if error.code != UNREADABLE:
                    raise
        raise PipelineError(UNREADABLE, "A stream can read none of the outputs of this stream", where=self.location)

    def _parts(self, cut: Cut, backup: WriteStore) -> Iterator[tuple[Output, Cut, WriteStore]]:
        """Each output with its part of the cut, and its own folder of the backup."""
        if cut.batches:
            for number, (member, part) in enumerate(zip(self._members, cut.members, strict=True), 1):
                yield member, part, Below(backup, str(number))

    def _check_cut(self, cut: Cut, recorded: Mapping[int, str]) -> None:
        """Raises Refused unless all outputs have what the cut names: else one would be cut, and the next refuse."""
        if cut != self.cut_after(cut.after, recorded):
            raise Refused(
                "cut-mismatch",
                f"The outputs do not have the same rows after batch {cut.after} as the cut",
                where=self.location,
                hint="make a new plan: slackwater plan rebuild STREAM",
            )

    def _damage(self, *, thorough: bool) -> Iterator[Damage]:
        for member in self._members:
            for one in member.damage(thorough=thorough):
                yield one._replace(path=f"{member.location}/{one.path}") if member.location is not None else one


def _is_of(known: Owner | None, owner: Owner) -> bool:
    return known is None or known.stream_id == owner.stream_id
