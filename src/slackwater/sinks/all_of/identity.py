"""The identity of several outputs: the fields of each, behind its number."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from slackwater.errors import SinkUnreadable

KIND = "all_of"
FEWEST = 2


def identity_of(members: Sequence[Mapping[str, str]]) -> dict[str, str]:
    """The identity of outputs in this order, such as ``{"kind": "all_of", "1.kind": "delta", "1.path": ...}``."""
    fields = {f"{number}.{key}": value for number, member in enumerate(members, 1) for key, value in member.items()}
    return {"kind": KIND, **fields}


def member_identities(identity: Mapping[str, str]) -> tuple[Mapping[str, str], ...]:
    """The identities of the outputs that a sink writes into: itself, for a sink with one.

    Raises SinkUnreadable where the outputs are not recorded.
    """
    if identity.get("kind") != KIND:
        return (identity,)
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
