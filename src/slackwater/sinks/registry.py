"""Finds the output of a sink by the kind in its recorded identity."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from slackwater.sinks.all_of.identity import KIND as SEVERAL
from slackwater.sinks.all_of.identity import member_identities
from slackwater.sinks.all_of.output import AllOfOutput
from slackwater.sinks.console import open_console_output
from slackwater.sinks.contract import Output
from slackwater.sinks.delta.output import open_delta_output
from slackwater.sinks.files.output import open_files_output
from slackwater.sinks.foreach import open_foreach_output
from slackwater.sinks.foreach_batch.output import open_foreach_batch_output
from slackwater.sinks.iceberg.output import open_iceberg_output
from slackwater.sinks.jdbc.output import open_jdbc_output
from slackwater.sinks.kafka.output import open_kafka_output
from slackwater.sinks.memory import open_memory_output
from slackwater.sinks.noop import open_noop_output
from slackwater.sinks.postgres.output import open_postgres_output
from slackwater.sinks.table import open_table_output
from slackwater.sinks.unknown import open_unknown_output

Identity = Mapping[str, str]
Opener = Callable[[Identity], Output]

_OPENERS: dict[str, Opener] = {
    "console": open_console_output,
    "delta": open_delta_output,
    "files": open_files_output,
    "foreach": open_foreach_output,
    "foreach_batch": open_foreach_batch_output,
    "iceberg": open_iceberg_output,
    "jdbc": open_jdbc_output,
    "kafka": open_kafka_output,
    "memory": open_memory_output,
    "noop": open_noop_output,
    "postgres": open_postgres_output,
    "table": open_table_output,
}

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
    return _OPENERS.get(identity.get("kind", ""), open_unknown_output)(identity)


def open_each(identity: Identity) -> tuple[Output, ...]:
    """The outputs that a sink writes into: for most sinks one, for ``all_of`` several, in their order."""
    return tuple(open_output(one) for one in member_identities(identity))


def _open_all_of(identity: Identity) -> Output:
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
