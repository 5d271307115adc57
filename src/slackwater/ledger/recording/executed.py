"""What the batches of a stream have read, since its output was last emptied or replaced."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from slackwater.core.commands import command
from slackwater.core.errors import Refused
from slackwater.core.records import StreamRecord
from slackwater.formats.offset_log import parse_offset_entry
from slackwater.ledger.ledger import Ledger
from slackwater.ledger.lineage import SOURCES, contributions
from slackwater.ledger.recording.batch_history import offsets_by_source
from slackwater.ledger.recording.snapshot import profile_of
from slackwater.sources.common.contract import SourceRange


def executed(ledger: Ledger, stream: StreamRecord) -> tuple[SourceRange, ...]:
    """A range for each source and for each generation that ran batches which the output has.

    Positions at which a generation started are not in them: nothing before them was read to get there. A start that is
    not recorded is ``None``: the beginning. Raises Refused (``backfill-unknown``) where an end is not recorded, and
    FormatError for a recorded entry that cannot be parsed.
    """
    return tuple(one for share in shares(ledger, stream) for one in _of_share(ledger, stream.full_name, share))


@dataclass(frozen=True, slots=True)
class Share:
    """The batches that a generation itself ran: after ``base`` (-1: from the first), to ``last`` (``None``: all)."""

    generation: int
    base: int
    last: int | None


def shares(ledger: Ledger, stream: StreamRecord) -> Iterator[Share]:
    """The generation in use, then those whose batches are its past."""
    known = {generation.number: generation for generation in ledger.generations(stream.full_name)}
    for one in contributions(known.values(), stream.current_generation):
        based_at = known[one.generation].based_at
        yield Share(one.generation, -1 if based_at is None else based_at, one.last_batch)


def _of_share(ledger: Ledger, stream: str, share: Share) -> Iterator[SourceRange]:
    lines = ledger.lines(stream, "offsets", max(share.base, 0), share.last, generation=share.generation)
    newest = max((batch for batch in lines if batch > share.base), default=None)
    if share.last is not None and share.last > share.base and newest != share.last:
        raise Refused(
            "backfill-unknown",
            f"What generation {share.generation} has read up to batch {share.last} is not recorded, so that rows could "
            "be written twice",
            where=f"stream {stream}",
            expected=f"the range of batch {share.last}",
            found="no range" if newest is None else f"batch {newest} as the newest",
            hint="restore the ledger from a backup; or process everything again: "
            f"{command('plan', 'reset', stream, '--from', 'earliest')}",
        )
    if newest is None:
        return

    def offsets(batch: int) -> dict[str, str | None]:
        return dict(offsets_by_source(parse_offset_entry(lines[batch].encode("utf-8", "surrogateescape"))))

    starts = offsets(share.base) if share.base in lines else {}
    profile = profile_of(ledger.generation(stream, share.generation))
    logs = profile.logs_of_sources if profile is not None else {}
    for source, end in offsets(newest).items():
        log = ledger.lines(stream, SOURCES + logs.get(source, source), generation=share.generation)
        yield SourceRange(source, starts.get(source), end, log)
