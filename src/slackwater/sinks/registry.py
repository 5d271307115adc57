"""Finds the output of a sink by the kind in its recorded identity."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from importlib import import_module

from slackwater.sinks.all_of.identity import KIND as SEVERAL
from slackwater.sinks.all_of.identity import member_identities
from slackwater.sinks.contract import Output
from slackwater.sinks.unknown import open_unknown_output

Identity = Mapping[str, str]
Opener = Callable[[Identity], Output]

_OPENERS: dict[str, Opener | str] = {
    "console": "console:open_console_output",
    "delta": "delta.output:open_delta_output",
    "files": "files.output:open_files_output",
    "foreach": "foreach:open_foreach_output",
    "foreach_batch": "foreach_batch.output:open_foreach_batch_output",
    "iceberg": "iceberg.output:open_iceberg_output",
    "jdbc": "jdbc.output:open_jdbc_output",
    "kafka": "kafka.output:open_kafka_output",
    "memory": "memory:open_memory_output",
    "noop": "noop:open_noop_output",
    "postgres": "postgres.output:open_postgres_output",
    "table": "table:open_table_output",
}
"""By kind; a string is ``module:function``, imported when an output of the kind is opened."""

_IDENTIFYING = {"kafka": ("kind", "topic", "marker_topic")}
"""The keys that name the output, where an identity also has those that say how it is reached: these may change."""


def register(kind: str, opener: Opener) -> None:
    """Make ``open_output`` use ``opener`` for identities of this kind."""
    _OPENERS[kind] = opener


def kinds() -> tuple[str, ...]:
    """The registered kinds, sorted."""
    return tuple(sorted(_OPENERS))


def open_output(identity: Identity) -> Output:
    """The output that a sink's identity names. Of an unregistered kind nothing can be read or changed."""
    return _opener(identity.get("kind", ""))(identity)


def _opener(kind: str) -> Opener:
    known = _OPENERS.get(kind, open_unknown_output)
    if not isinstance(known, str):
        return known
    module, _, function = known.partition(":")
    opener: Opener = getattr(import_module(f"slackwater.sinks.{module}"), function)
    return opener


def open_each(identity: Identity) -> tuple[Output, ...]:
    """The outputs that a sink writes into: for most sinks one, for ``all_of`` several, in their order."""
    return tuple(open_output(one) for one in member_identities(identity))


def _open_all_of(identity: Identity) -> Output:
    from slackwater.sinks.all_of.output import AllOfOutput  # noqa: PLC0415 - light start

    return AllOfOutput(open_each(identity))


register(SEVERAL, _open_all_of)


def is_same_sink(known: Identity, now: Identity) -> bool:
    """Whether two identities name one output, or the same several. Brokers are added and renamed, and logins change."""
    return _names(known) == _names(now)


def _names(identity: Identity) -> list[dict[str, str]]:
    """What identifies each output of a sink."""
    return [
        {key: one[key] for key in _IDENTIFYING.get(one.get("kind", ""), tuple(one)) if key in one}
        for one in member_identities(identity)
    ]
