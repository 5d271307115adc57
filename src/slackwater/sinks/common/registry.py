"""Finds the kinds of sinks, and the output of a recorded identity.

A kind is listed in ``SINKS``, an entry point of the group ``slackwater.sinks``, or registered by ``SINKS.register``.
The kind ``foreach_batch`` is found under ``foreach-batch``.
"""

import os
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from importlib import import_module
from operator import attrgetter
from pathlib import Path
from typing import Any, TypeAlias

from slackwater.core.commands import command
from slackwater.core.errors import SinkUnknown
from slackwater.core.registry import Registry
from slackwater.core.sink import CatalogueEntry, Delivery, Identity, Traits, WriterCalls, sink_text
from slackwater.sinks.common.contract import OpaqueOutput, Output
from slackwater.storage.open import Location, local_path_of, open_read_store

Reference: TypeAlias = str
"""``module:name``, imported on use: most commands need one kind, and only its output."""

UNKNOWN_TRAITS = Traits(
    Delivery("at-least-once", "what the sink does with a batch that is written twice is unknown"), one_writer=False
)


@dataclass(frozen=True, slots=True)
class SinkKind:
    """A kind of sink, as known outside of its package.

    ``opener`` opens a recorded identity's output. ``constructor`` is ``slackwater.sinks.NAME``, ``exports`` are further
    public names; user kinds need neither. ``entries`` are lines of ``slackwater sinks``. ``identifying`` identity keys
    name the output; others may change. ``connectors`` maps Spark formats to jars, with ``session_settings`` from their
    documentation. ``log_folder`` identifies an output at its location. ``members`` splits a combined identity.
    ``transient`` are error codes that a restart may fix. ``recognise`` identifies an application's own writer.
    ``by_place`` names an output as a different kind.
    """

    opener: Callable[[Identity], Output] | Reference
    constructor: Callable[..., object] | Reference | None = None
    exports: tuple[str, ...] = ()
    entries: tuple[CatalogueEntry, ...] | Reference = ()
    identifying: tuple[str, ...] = ()
    connectors: Mapping[str, str] = field(default_factory=dict)
    session_settings: Mapping[str, str] = field(default_factory=dict)
    log_folder: str = ""
    members: Callable[[Identity], tuple[Identity, ...]] | None = None
    transient: frozenset[str] = frozenset()
    recognise: Callable[[WriterCalls], Identity | None] | Reference | None = None
    comparable: Callable[[Identity, Identity], bool] | None = None
    by_place: Callable[[Identity], Identity | None] | None = None


def _open_unknown_output(identity: Identity) -> OpaqueOutput:
    return OpaqueOutput(identity.get("kind", "none"), UNKNOWN_TRAITS, sink_text(identity))


_UNKNOWN = SinkKind(_open_unknown_output)
"""The kind of outputs whose kind is not registered; they can be neither read nor changed."""

UNKNOWN: Identity = {"kind": "unknown"}
"""The output of a query that is known only by its checkpoint, which does not name the output."""

_AS_SPARK_NAMES_IT = re.compile(r"Sink$|Table$|@")
"""Kinds that ``slackwater.watch`` recorded until 2026: the name of a Spark class instead of the output."""

SINKS: Registry[SinkKind] = Registry(
    "slackwater.sinks",
    {
        "all-of": "slackwater.sinks.all_of:SINK",
        "console": "slackwater.sinks.spark_only:CONSOLE",
        "delta": "slackwater.sinks.delta:SINK",
        "files": "slackwater.sinks.files:SINK",
        "foreach": "slackwater.sinks.spark_only:FOREACH",
        "foreach-batch": "slackwater.sinks.foreach_batch:SINK",
        "iceberg": "slackwater.sinks.iceberg:SINK",
        "jdbc": "slackwater.sinks.jdbc:SINK",
        "kafka": "slackwater.sinks.kafka:SINK",
        "memory": "slackwater.sinks.spark_only:MEMORY",
        "noop": "slackwater.sinks.spark_only:NOOP",
        "postgres": "slackwater.sinks.postgres:SINK",
        "table": "slackwater.sinks.table:SINK",
    },
)


def open_output(identity: Identity) -> Output:
    opened: Output = _loaded(_kind_of(identity).opener)(identity)
    return opened


def open_each(identity: Identity) -> tuple[Output, ...]:
    return tuple(open_output(one) for one in member_identities(identity))


def member_identities(identity: Identity) -> tuple[Identity, ...]:
    members = _kind_of(identity).members
    return (identity,) if members is None else members(identity)


def identity_at(location: str) -> Identity | None:
    folders = {entry.name for entry in open_read_store(location).list() if entry.is_dir}
    kinds = {name: kind.log_folder for name in SINKS.names() if (kind := SINKS.get(name)) is not None}
    found = next((name for name, folder in kinds.items() if folder in folders), None)
    return None if found is None else {"kind": found, "path": str(Location(location))}


def recognised(calls: WriterCalls) -> Identity:
    """The identity for a writer's calls; an unknown format is a kind without a place."""
    found = (_loaded(kind.recognise)(calls) for kind in SINKS.all() if kind.recognise is not None)
    known: Identity | None = next((one for one in found if one is not None), None)
    path = calls.options.get("path")
    # A data source may have the name of another kind.
    taken = calls.format in SINKS.names() and calls.format not in ("console", "files", "noop")
    kind = f"source {calls.format}" if taken else calls.format
    return known or {"kind": kind, **({"path": path} if path else {})}


def is_same_sink(known: Identity, now: Identity) -> bool:
    """Return whether two identities are the same output; brokers and logins may change.

    Unrecorded parts of ``known`` are not compared: a checkpoint does not name its output.
    """
    if known == UNKNOWN or _AS_SPARK_NAMES_IT.search(known.get("kind", "")):
        return True
    before, after = _names(_as_kind_of(now, known)), _names(_as_kind_of(known, now))
    if len(before) != len(after):
        return False
    for one, other in zip(before, after, strict=True):
        comparable = _kind_of(one).comparable
        if comparable is not None and one.get("kind") == other.get("kind") and not comparable(one, other):
            continue
        unrecorded = set() if one.get("format") else {"format"}
        if _places(one, unrecorded) != _places(other, unrecorded):
            return False
    return True


def catalogue() -> tuple[CatalogueEntry, ...]:
    return tuple(sorted((entry for kind in SINKS.all() for entry in _entries(kind)), key=attrgetter("rank")))


def public(name: str) -> object:
    """``slackwater.sinks.NAME``. Raises SinkUnknown."""
    kind = SINKS.get(_key(name))
    if kind is not None and kind.constructor is not None:
        return _loaded(kind.constructor)
    for one in SINKS.all():
        if name in one.exports:
            return getattr(import_module(_loaded(one.constructor).__module__), name)
    public_kinds = [one for one in SINKS.all() if one.constructor is not None]
    entries = sorted((entry for one in public_kinds for entry in _entries(one)), key=attrgetter("rank"))
    names = dict.fromkeys(entry.name for entry in entries)
    raise SinkUnknown(
        "sink-unknown",
        f"Slackwater has no sink {name}",
        expected="one of " + ", ".join(f"slackwater.sinks.{sink}" for sink in names),
        found=f"slackwater.sinks.{name}",
        hint=f"{command('sinks')} lists them with their guarantees; a query with a different sink can be run without "
        "Slackwater and recorded by slackwater.watch(spark, ...)",
    )


def public_names() -> list[str]:
    kinds = [kind for kind in SINKS.all() if kind.constructor is not None]
    return sorted(name for kind in kinds for name in (_loaded(kind.constructor).__name__, *kind.exports))


def connectors() -> dict[str, str]:
    return {name: jar for kind in SINKS.all() for name, jar in kind.connectors.items()}


def transient_codes() -> frozenset[str]:
    return frozenset[str]().union(*(kind.transient for kind in SINKS.all()))


def session_settings_of(connector: str) -> Mapping[str, str]:
    settings = [kind.session_settings for kind in SINKS.all() if connector in kind.connectors]
    return {name: value for each in settings for name, value in each.items()}


def _kind_of(identity: Identity) -> SinkKind:
    return SINKS.get(_key(identity.get("kind", ""))) or _UNKNOWN


def _entries(kind: SinkKind) -> tuple[CatalogueEntry, ...]:
    entries: tuple[CatalogueEntry, ...] = _loaded(kind.entries)
    return entries


def _key(kind: str) -> str:
    return kind.replace("_", "-")


def _loaded(value: Any) -> Any:
    if not isinstance(value, str):
        return value
    module, _, name = value.partition(":")
    return getattr(import_module(module), name)


def _as_kind_of(other: Identity, identity: Identity) -> Identity:
    """The identity, converted by place to the other identity's kind if possible."""
    by_place = _kind_of(identity).by_place
    placed = None if by_place is None else by_place(identity)
    return placed if placed is not None and placed["kind"] == other.get("kind") else identity


def _places(identity: Identity, without: set[str]) -> dict[str, str]:
    """The paths in a normalised spelling: Spark shows ``file:/a`` as given."""
    named = {key: value for key, value in identity.items() if key not in without}
    local = local_path_of(named["path"]) if "path" in named else None
    return named if local is None else {**named, "path": os.path.normpath(Path(local).absolute())}


def _names(identity: Identity) -> list[dict[str, str]]:
    members = member_identities(identity)
    return [{key: one[key] for key in _kind_of(one).identifying or tuple(one) if key in one} for one in members]
