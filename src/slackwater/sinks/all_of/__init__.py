"""Writes each batch into several outputs, each with its own mark and owner."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from slackwater.core.errors import SinkUnreadable
from slackwater.sinks.common.registry import SinkKind

KIND = "all_of"
FEWEST = 2


def identity_of(members: Sequence[Mapping[str, str]]) -> dict[str, str]:
    """The combined identity, for example ``{"kind": "all_of", "1.kind": "delta", "1.path": ...}``."""
    fields = {f"{number}.{key}": value for number, member in enumerate(members, 1) for key, value in member.items()}
    return {"kind": KIND, **fields}


def member_identities(identity: Mapping[str, str]) -> tuple[Mapping[str, str], ...]:
    members: dict[int, dict[str, str]] = {}
    for name, value in identity.items():
        number, dot, key = name.partition(".")
        if dot and number.isdecimal():
            members.setdefault(int(number), {})[key] = value
    if len(members) < FEWEST:
        raise SinkUnreadable(
            "sink-identity",
            "The recorded identity of the sink does not have the outputs that it writes into",
            expected='{"kind": "all_of", "1.kind": ..., "2.kind": ...}',
            found=str(dict(identity)),
        )
    return tuple(members[number] for number in sorted(members))


SINK = SinkKind(
    opener="slackwater.sinks.all_of.sink:open_all_of_output",
    constructor="slackwater.sinks.all_of.sink:all_of",
    exports=("AllOfSink",),
    entries="slackwater.sinks.all_of.sink:ENTRIES",
    members=member_identities,
)
