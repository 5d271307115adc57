"""Compares a query with its checkpoint if the old program is not recorded.

Finds only changes that Spark refuses, or that the recorded profile shows: without evidence nothing is refused.
"""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from urllib.parse import unquote

from slackwater.core.checkpoint import CheckpointShape, SourceEvidence
from slackwater.core.program import OperatorKind, OperatorShape, Program, SourceShape
from slackwater.core.units import counted, duration_text
from slackwater.core.verdict import Change, Effect, Verdict
from slackwater.sources import kinds, kinds_of_format

PHYSICAL: Mapping[str, OperatorKind] = {
    "stateStoreSave": "aggregate",
    "sessionWindowStateStoreSaveExec": "aggregate",
    "dedupe": "deduplicate",
    "dedupeWithinWatermark": "deduplicate-within-watermark",
    "symmetricHashJoin": "join",
    "globalLimit": "limit",
    "applyInPandasWithState": "pandas-state",
    "flatMapGroupsWithState": "groups-with-state",
}
"""Spark's names of stateful operators in a checkpoint (``StateStoreWriter.shortName``)."""

KEYED: frozenset[OperatorKind] = frozenset({"aggregate", "deduplicate"})
WORDS: Mapping[OperatorKind, str] = {
    "aggregate": "an aggregation",
    "deduplicate": "a deduplication",
    "deduplicate-within-watermark": "a deduplication within the watermark",
    "join": "a stream-stream join",
    "limit": "a limit",
    "pandas-state": "applyInPandasWithState",
    "transform-with-state": "transformWithState",
    "groups-with-state": "flatMapGroupsWithState",
}


def checkpoint_changes(shape: CheckpointShape, now: Program, *, ran: bool) -> Verdict:
    """``ran`` is false if no batch was committed, so that state may lack."""
    had, has = shape.sources, now.sources
    changes: list[Change] = []
    if had and len(had) != len(has):
        text = f"the query reads {counted(len(has), 'source')}, and the checkpoint has positions of {len(had)}"
        changes = [_of_sources(text, None, counted(len(had), "source"), counted(len(has), "source"))]
    else:
        found = {index: [*_one_source(index, *pair)] for index, pair in enumerate(zip(had, has, strict=False))}
        wrong = [index for index, each in found.items() if each]
        changes = [change for each in found.values() for change in each]
        if wrong and all(any(_reads(had[one], has[other]) for other in wrong if other != one) for one in wrong):
            text = "the order of the sources has changed; Spark keeps their positions by number"
            places = ", ".join(map(_place, had)), ", ".join(one.location for one in has)
            changes = [replace(_of_sources(text, None, *places), code="sources-reordered")]
    if ran:
        changes += _operators(shape.operators, now.operators)
    lengths = {window.length_ms for one in now.operators for window in one.windows if window.kind != "session"}
    kept = set(shape.profile.windows_ms) if ran and shape.profile is not None else set()
    if kept and lengths and kept != lengths:
        was, is_now = _durations(kept), _durations(lengths)
        text = f"window length was {was}, is {is_now}"
        changes.append(Change("window-changed", Effect.NOT_RESTORABLE, text, None, was, is_now, goal="reset"))
    return Verdict(tuple(sorted(changes, key=lambda change: -change.effect)))


def _one_source(index: int, before: SourceEvidence, after: SourceShape) -> Iterator[Change]:
    labels = {kind.label for kind in kinds_of_format(after.kind)}
    place, was = f"source {index}", _place(before)
    if before.kind != "unknown" and labels and before.kind not in labels:
        was = next((kind.words for kind in kinds() if kind.label == before.kind), before.kind)
        yield _of_sources(f"{place} was {was}, is {after.kind}", place, was, after.kind)
    elif not _reads(before, after) and (
        after.location.partition(" ")[0] == before.location.partition(" ")[0]
        if before.location
        else before.folders and _is_path(after.location)
    ):
        change = _of_sources(f"{place} read {was}, reads {after.location}", place, was, after.location)
        continuing = kinds_of_format(after.kind) if before.location else ()
        mild = any(kind.continues(before.location, after.location) for kind in continuing)
        yield replace(change, effect=Effect.CHANGES_ROWS, goal=None, acceptable=True) if mild else change


def _reads(before: SourceEvidence, after: SourceShape) -> bool:
    if before.location:
        return before.location == after.location
    read, paths = _plain(after.location), [_plain(folder) for folder in before.folders]
    wild = min((read.index(one) for one in "*?[{" if one in read), default=None)
    read = (read if wild is None else read[:wild].rpartition("/")[0]).rstrip("/")
    # The location can also be one file of the folder.
    return _is_path(after.location) and any(
        path == read or path.startswith(f"{read}/") or read.startswith(f"{path}/") for path in paths
    )


def _place(before: SourceEvidence) -> str:
    return before.location or (f"files in {before.folders[0]}" if before.folders else before.kind)


def _of_sources(text: str, place: str | None, before: str, after: str) -> Change:
    return Change("sources-changed", Effect.NOT_RESTORABLE, text, place, before, after, goal="reset", acceptable=False)


def _is_path(location: str) -> bool:
    return location.startswith("/") or ":/" in location


def _plain(location: str) -> str:
    scheme, colon, rest = location.partition(":/")
    if not colon:
        return location
    path = "/" + rest.lstrip("/") if scheme == "file" else f"{scheme}:/{rest}"
    return unquote(path)


def _operators(kept: Sequence[tuple[str, tuple[str, ...]]], now: Sequence[OperatorShape]) -> Iterator[Change]:
    found = [operator_kind(name) for name, _ in kept]
    known = [kind for kind in found if kind is not None]
    if len(known) != len(found):
        return
    before, after = Counter(known), Counter(one.kind for one in now)
    for kind in WORDS:
        if after[kind] != before[kind]:
            verb = "added" if after[kind] > before[kind] else "removed"
            yield Change(
                "operators-changed",
                Effect.NOT_RESTORABLE,
                f"{WORDS[kind]} was {verb}",
                None,
                _listed(before),
                _listed(after),
                goal="reset",
                acceptable=False,
            )
    if before != after or len(kept) != 1:
        return
    columns, only = kept[0][1], now[0]
    if only.kind in KEYED and columns and len(columns) != len(only.keys):
        yield Change(
            "dedup-keys-changed" if only.kind == "deduplicate" else "keys-changed",
            Effect.NEEDS_REBUILD,
            f"the state has {counted(len(columns), 'key column')}, the query has {len(only.keys)}",
            WORDS[only.kind],
            ", ".join(columns),
            ", ".join(key.name for key in only.keys),
            goal="rebuild",
            acceptable=False,
        )


def operator_kind(name: str) -> OperatorKind | None:
    return "transform-with-state" if name.startswith("transformWithState") else PHYSICAL.get(name)


def _listed(kinds: Mapping[OperatorKind, int]) -> str:
    return ", ".join(WORDS[kind] for kind, count in kinds.items() for _ in range(count)) or "no state"


def _durations(lengths_ms: set[int]) -> str:
    return ", ".join(duration_text(length) for length in sorted(lengths_ms))
