"""Finds the kinds of sinks: what is written in a pipeline, and the output that a recorded identity names.

A kind is a module or folder of ``slackwater.sinks`` with a ``SINK``, an entry point of the group ``slackwater.sinks``,
or registered by ``SINKS.register``. A kind ``foreach_batch`` is found under ``foreach-batch``.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from importlib import import_module
from pathlib import Path
from typing import Any, TypeAlias

from slackwater.core.commands import command
from slackwater.core.errors import SinkUnknown
from slackwater.core.registry import Registry
from slackwater.core.sink import CatalogueEntry, Delivery, WriterCalls, sink_text
from slackwater.sinks.common.contract import Output
from slackwater.sinks.common.opaque_output import OpaqueOutput, opaque_traits
from slackwater.storage.open import Location, local_path_of, open_read_store

Identity: TypeAlias = Mapping[str, str]
Reference: TypeAlias = str
"""``module:name``, imported when it is used: most commands need one kind, and of that only the output."""

UNKNOWN_TRAITS = opaque_traits(
    Delivery("at-least-once", "what the sink does with a batch that is written twice is unknown"), one_writer=False
)


def _only_itself(identity: Identity) -> tuple[Identity, ...]:
    return (identity,)


@dataclass(frozen=True, slots=True)
class SinkKind:
    """All that the rest of Slackwater knows of one kind of sink.

    ``opener`` makes the output of a recorded identity. ``constructor`` is the function ``slackwater.sinks.NAME``, and
    ``exports`` are names of its module that are public as well; a kind of the user's own needs neither. ``entries`` are
    its lines in ``slackwater sinks``. ``identifying`` are the keys of an identity that name the output, where others
    say how it is reached and may change. ``connectors`` are the connectors of its Spark formats with the name of
    the jar that each is in, and ``session_settings`` what their documentation has a session set. ``log_folder`` is the
    folder by which an output of the kind is recognised at its location. ``members`` splits the
    identity of a sink with several outputs. ``transient`` are the codes of errors after which a restart may succeed.
    ``recognise`` names the output of an application's own writer; of two identities that are not ``comparable`` nothing
    shows whether they name one output. ``by_place`` names an output of the kind as one of another kind, by its place.
    """

    opener: Callable[[Identity], Output] | Reference
    constructor: Callable[..., object] | Reference | None = None
    exports: tuple[str, ...] = ()
    entries: tuple[CatalogueEntry, ...] | Reference = ()
    identifying: tuple[str, ...] = ()
    connectors: Mapping[str, str] = field(default_factory=dict)
    session_settings: Mapping[str, str] = field(default_factory=dict)
    log_folder: str = ""
    members: Callable[[Identity], tuple[Identity, ...]] = _only_itself
    transient: frozenset[str] = frozenset()
    recognise: Callable[[WriterCalls], Identity | None] | Reference | None = None
    comparable: Callable[[Identity, Identity], bool] | None = None
    by_place: Callable[[Identity], Identity | None] | None = None


def _open_unknown_output(identity: Identity) -> OpaqueOutput:
    location = sink_text(identity)
    return OpaqueOutput(identity.get("kind", "none"), UNKNOWN_TRAITS, location)


_UNKNOWN = SinkKind(_open_unknown_output)
"""Of an output whose kind is not registered nothing can be read or changed."""

UNKNOWN: Identity = {"kind": "unknown"}
"""The output of a query that is known by its checkpoint only, which does not name it."""

_AS_SPARK_NAMES_IT = re.compile(r"Sink$|Table$|@")
"""Kinds that ``slackwater.watch`` recorded until 2026: the name of a class of Spark's, in place of the output."""

SINKS: Registry[SinkKind] = Registry("slackwater.sinks", "SINK", "slackwater.sinks")


def open_output(identity: Identity) -> Output:
    """The output that a sink's identity names."""
    opened: Output = _loaded(_kind_of(identity).opener)(identity)
    return opened


def open_each(identity: Identity) -> tuple[Output, ...]:
    """The outputs that a sink writes into: for most sinks one, in their order."""
    return tuple(open_output(one) for one in member_identities(identity))


def member_identities(identity: Identity) -> tuple[Identity, ...]:
    """The identities of the outputs that a sink writes into. Raises SinkUnreadable where they are not recorded."""
    return _kind_of(identity).members(identity)


def identity_at(location: str) -> Identity | None:
    """The identity of the output that is at a path or URI, ``None`` where none is recognised. Raises OSError."""
    folders = {entry.name for entry in open_read_store(location).list() if entry.is_dir}
    kinds = {name: kind.log_folder for name in SINKS.names() if (kind := SINKS.get(name)) is not None}
    found = next((name for name, folder in kinds.items() if folder in folders), None)
    return None if found is None else {"kind": found, "path": str(Location(location))}


def recognised(calls: WriterCalls) -> Identity:
    """The identity of the output that a writer was given. A format that no kind knows is a kind without a place."""
    found = (_loaded(kind.recognise)(calls) for kind in SINKS.all() if kind.recognise is not None)
    known: Identity | None = next((one for one in found if one is not None), None)
    path = calls.options.get("path")
    return known or {"kind": calls.format, **({"path": path} if path else {})}


def is_same_sink(known: Identity, now: Identity) -> bool:
    """Whether two identities name one output, or the same several. Brokers are added and renamed, and logins change.

    What is not recorded of the ``known`` one is not compared: a checkpoint does not name the output of its query.
    """
    if known == UNKNOWN or _AS_SPARK_NAMES_IT.search(known.get("kind", "")):
        return True
    before, after = _names(_as_kind_of(now, known)), _names(_as_kind_of(known, now))
    return len(before) == len(after) and all(map(_agree, before, after))


def catalogue() -> tuple[CatalogueEntry, ...]:
    """All sinks with what each guarantees: the source of ``slackwater sinks``, of docs/sinks.md and of messages."""
    return tuple(sorted((entry for kind in SINKS.all() for entry in _entries(kind)), key=_rank))


def public(name: str) -> object:
    """What ``slackwater.sinks.NAME`` is. Raises SinkUnknown."""
    kind = SINKS.get(_key(name))
    if kind is not None and kind.constructor is not None:
        return _loaded(kind.constructor)
    for one in SINKS.all():
        if name in one.exports:
            return getattr(import_module(_loaded(one.constructor).__module__), name)
    public_kinds = [one for one in SINKS.all() if one.constructor is not None]
    entries = sorted((entry for one in public_kinds for entry in _entries(one)), key=_rank)
    names = dict.fromkeys(entry.name for entry in entries)
    raise SinkUnknown(
        "sink-unknown",
        f"Slackwater has no sink {name}",
        expected="one of " + ", ".join(f"slackwater.sinks.{sink}" for sink in names),
        found=f"slackwater.sinks.{name}",
        hint=f"{command('sinks')} lists them with their guarantees; a query with another sink can be run without "
        "Slackwater and recorded by slackwater.watch(spark, ...)",
    )


def public_names() -> list[str]:
    """The names for which ``public`` has a value, sorted."""
    kinds = [kind for kind in SINKS.all() if kind.constructor is not None]
    return sorted(name for kind in kinds for name in (_loaded(kind.constructor).__name__, *kind.exports))


def connectors() -> dict[str, str]:
    """The connectors of all kinds with the name of the jar that each is in. A connector has the name of its format."""
    return {name: jar for kind in SINKS.all() for name, jar in kind.connectors.items()}


def transient_codes() -> frozenset[str]:
    """The codes of the errors of all kinds after which a restart of the unchanged query may succeed."""
    return frozenset[str]().union(*(kind.transient for kind in SINKS.all()))


def session_settings_of(connector: str) -> Mapping[str, str]:
    """The settings that a session with this connector needs."""
    settings = [kind.session_settings for kind in SINKS.all() if connector in kind.connectors]
    return {name: value for each in settings for name, value in each.items()}


def _kind_of(identity: Identity) -> SinkKind:
    return SINKS.get(_key(identity.get("kind", ""))) or _UNKNOWN


def _entries(kind: SinkKind) -> tuple[CatalogueEntry, ...]:
    entries: tuple[CatalogueEntry, ...] = _loaded(kind.entries)
    return entries


def _rank(entry: CatalogueEntry) -> int:
    return entry.rank


def _key(kind: str) -> str:
    return kind.replace("_", "-")


def _loaded(value: Any) -> Any:
    """The value itself, or what a reference names."""
    if not isinstance(value, str):
        return value
    module, _, name = value.partition(":")
    return getattr(import_module(module), name)


def _agree(known: Identity, now: Identity) -> bool:
    comparable = _kind_of(known).comparable
    if comparable is not None and known.get("kind") == now.get("kind") and not comparable(known, now):
        return True
    unrecorded = set() if known.get("format") else {"format"}
    return _places(known, unrecorded) == _places(now, unrecorded)


def _as_kind_of(other: Identity, identity: Identity) -> Identity:
    """The identity, or the one by its place where the other one has that kind."""
    by_place = _kind_of(identity).by_place
    placed = None if by_place is None else by_place(identity)
    return placed if placed is not None and placed["kind"] == other.get("kind") else identity


def _places(identity: Identity, without: set[str]) -> dict[str, str]:
    """What names an output, a path in one spelling: a query can be given ``file:/a``, and Spark shows that."""
    named = {key: value for key, value in identity.items() if key not in without}
    local = local_path_of(named["path"]) if "path" in named else None
    return named if local is None else {**named, "path": os.path.normpath(Path(local).absolute())}


def _names(identity: Identity) -> list[dict[str, str]]:
    """What identifies each output of a sink."""
    members = member_identities(identity)
    return [{key: one[key] for key in _kind_of(one).identifying or tuple(one) if key in one} for one in members]
