"""What a snapshot has of the outputs of a stream, each asked once; nothing is written."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from slackwater.core.checkpoint_logs import SinkFile
from slackwater.core.damage import Damage
from slackwater.core.errors import FormatError, SinkUnchecked, SinkUnreadable
from slackwater.core.marks import written_by_all
from slackwater.core.sink import Owner
from slackwater.core.snapshot import MemberSeen, OutputSeen, Unmarked, Unreadable
from slackwater.sinks.common.contract import (
    ListsOrphans,
    MarkedBesideRows,
    MarkedByQuery,
    Output,
    ReplacesUnmarked,
    SinkLog,
    of_query,
)
from slackwater.sinks.common.registry import member_identities, open_each, open_output


@dataclass(frozen=True, slots=True)
class Expected:
    """What the outputs of a stream should show: the batch ``finished`` or a later one, -1 for none.

    ``unsure``: a batch after it was planned, and may have been written, too.
    """

    finished: int
    unsure: bool

    def misses(self, mark: int, output: Output) -> bool:
        """Whether an output with this mark may have rows that it does not show."""
        return mark < self.finished or (self.unsure and output.owner() is None)


def look_at_output(
    sink: Mapping[str, str],
    stream_id: str | None,
    expected: Expected,
    *,
    thorough: bool,
    recorded: Mapping[int, str] | None = None,
    query_id: str | None = None,
) -> tuple[int | None, OutputSeen]:
    """The mark ``written`` of a stream, and what its outputs show. ``stream_id`` is the stream's own.

    By ``query_id`` an output shows what Spark's own writer has written to it.

    ``recorded`` are the ledger's copies of entries of the output's log, with which a thorough look compares.
    """
    each = open_each(sink)
    # A single output is opened once: reading its log a second time takes as long as the first time.
    output = each[0] if member_identities(sink) == (sink,) else open_output(sink)
    unreadable: Unreadable | None = None
    unchecked = ""
    marks: list[int | None] = []
    try:
        marks = [_mark(one, query_id) for one in each]
    except SinkUnchecked as error:
        marks = [None] * len(each)
        unchecked = f"{error.message}: {error.found} at {error.where}"
    except SinkUnreadable as error:
        unreadable = _unreadable(error)
    owner, name = None, None
    unmarked: Unmarked | None = None
    try:
        owner, name = _owner(each, stream_id)
        unmarked = _unmarked(each, marks, expected)
    except SinkUnreadable as error:
        unreadable = unreadable or _unreadable(error)
    written = written_by_all(marks)
    orphans = output.orphans() if thorough and isinstance(output, ListsOrphans) else ()
    unlisted = _unlisted(output, orphans, recorded or {}, written)
    return written, OutputSeen(
        location=output.location,
        owner=owner,
        owner_name=name,
        batches_skipped=output.traits.skips_known_batches,
        skipped_are_read=output.traits.reads_known_batches,
        can_cut=of_query(output, query_id).traits.cuts,
        delivery=output.traits.delivery,
        unreadable=unreadable,
        damage=() if unreadable else (*output.damage(thorough=thorough), *unlisted.values()),
        orphans=tuple(name for name in orphans if name not in unlisted),
        members=_members(sink, each, marks) if len(each) > 1 and marks else (),
        unmarked=unmarked,
        unchecked=unchecked,
    )


def _mark(output: Output, query_id: str | None) -> int | None:
    if isinstance(output, MarkedByQuery) and query_id is not None:
        return output.written_by(query_id)
    return output.last_written()


def _unmarked(each: tuple[Output, ...], marks: Sequence[int | None], expected: Expected) -> Unmarked | None:
    """The first output that may have rows which its mark does not show."""
    for one, mark in zip(each, marks, strict=False):
        if mark is None or not isinstance(one, MarkedBesideRows) or not expected.misses(mark, one):
            continue
        if one.may_have_rows(mark):
            # A swap claims the output. Undone, it must be seen again that the marker is not that of the rows.
            replaceable = len(each) == 1 and isinstance(one, ReplacesUnmarked) and mark < expected.finished
            emptied = one.how_to_empty(mark)
            return Unmarked(one.location, mark, expected.finished, emptied, one.shows_rows, replaceable)
    return None


def _unlisted(
    output: Output, orphans: Sequence[str], recorded: Mapping[int, str], written: int | None
) -> Mapping[str, Damage]:
    """Files that are there and belong to a batch, as the ledger recorded, and that the output no longer lists."""
    log = output.log()
    if not orphans or log is None or written is None:
        return {}
    names = set(orphans)
    found: dict[str, Damage] = {}
    for batch, text in recorded.items():
        for file in _files_of(log, text) if batch <= written else ():
            name = output.relative_path(file.path)
            if name in names:
                expected = f"an entry of batch {batch} that lists it, as the ledger recorded"
                found[str(name)] = Damage(str(name), "unlisted", expected, "no entry with it")
    return found


def _files_of(log: SinkLog, text: str) -> Sequence[SinkFile]:
    try:
        files = log.parse(text.encode("utf-8", "surrogateescape"))
    except FormatError:
        return ()
    return [one for one in files if isinstance(one, SinkFile)] if isinstance(files, tuple) else ()


def _members(sink: Mapping[str, str], each: tuple[Output, ...], marks: list[int | None]) -> tuple[MemberSeen, ...]:
    return tuple(
        MemberSeen(
            kind=identity.get("kind", "unknown"),
            location=one.location,
            written=written,
            batches_skipped=one.traits.skips_known_batches,
            can_cut=one.traits.cuts,
            delivery=one.traits.delivery,
        )
        for identity, one, written in zip(member_identities(sink), each, marks, strict=True)
    )


def _owner(each: tuple[Output, ...], stream_id: str | None) -> tuple[str | None, str | None]:
    """The id and name of the stream that owns the outputs; where another owns one of them, of that stream."""
    owners = [(owner, one) for one in each if (owner := one.owner()) is not None]
    others = [pair for pair in owners if pair[0].stream_id != stream_id]
    for owner, one in (*others, *owners):
        return owner.stream_id, _name(owner, one if len(each) > 1 else None)
    return None, None


def _name(owner: Owner, one_of_several: Output | None) -> str:
    name = f"{owner.stream} of the home {owner.home}"
    return name if one_of_several is None else f"{name} ({one_of_several.location})"


def _unreadable(error: SinkUnreadable) -> Unreadable:
    return Unreadable(error.code, error.message, error.where, error.expected, error.found, error.hint, error.aside)
