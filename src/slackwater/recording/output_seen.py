"""What a snapshot has of the outputs of a stream, each asked once; nothing is written."""

from __future__ import annotations

from collections.abc import Mapping

from slackwater.errors import SinkUnreadable
from slackwater.model.marks import written_by_all
from slackwater.model.sink import Owner
from slackwater.model.snapshot import MemberSeen, OutputSeen, Unreadable
from slackwater.sinks.all_of.identity import member_identities
from slackwater.sinks.contract import ListsOrphans, Output
from slackwater.sinks.registry import open_each, open_output


def look_at_output(sink: Mapping[str, str], stream_id: str | None, *, thorough: bool) -> tuple[int | None, OutputSeen]:
    """The mark ``written`` of a stream, and what its outputs show. ``stream_id`` is the stream's own."""
    output, each = open_output(sink), open_each(sink)
    unreadable: Unreadable | None = None
    marks: list[int | None] = []
    try:
        marks = [one.last_written() for one in each]
    except SinkUnreadable as error:
        unreadable = _unreadable(error)
    owner, name = None, None
    try:
        owner, name = _owner(each, stream_id)
    except SinkUnreadable as error:
        unreadable = unreadable or _unreadable(error)
    return written_by_all(marks), OutputSeen(
        location=output.location,
        owner=owner,
        owner_name=name,
        batches_skipped=output.traits.skips_known_batches,
        skipped_are_read=output.traits.reads_known_batches,
        can_cut=output.traits.cuts,
        delivery=output.traits.delivery,
        unreadable=unreadable,
        damage=() if unreadable else output.damage(thorough=thorough),
        orphans=output.orphans() if thorough and isinstance(output, ListsOrphans) else (),
        members=_members(sink, each, marks) if len(each) > 1 and marks else (),
    )


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
    return Unreadable(error.code, error.message, error.where, error.expected, error.found, error.hint)
