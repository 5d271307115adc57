"""What the files of a checkpoint show of the query that made them: the evidence where no program is recorded."""

from __future__ import annotations

from dataclasses import dataclass

from slackwater.core.profile import QueryProfile


@dataclass(frozen=True, slots=True)
class SourceEvidence:
    """A source by its offsets and its own log. ``kind`` is that of the registry of sources, ``unknown`` for others.

    ``folders`` are the folders of the files that its log lists, or some of them. ``location`` is what it reads, as a
    plan names it (``topics a,b``), where its offsets show that.
    """

    kind: str
    folders: tuple[str, ...] = ()
    location: str = ""


@dataclass(frozen=True, slots=True)
class OperatorEvidence:
    """A stateful operator by its metadata or, where Spark wrote none, by its stores.

    ``name`` is Spark's physical name (``stateStoreSave``); ``key_columns`` are those of its first store.
    """

    name: str
    key_columns: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class CheckpointShape:
    """Sources in the order of the offset lines, operators by id, and the plan's profile where a run recorded it."""

    sources: tuple[SourceEvidence, ...] = ()
    operators: tuple[OperatorEvidence, ...] = ()
    profile: QueryProfile | None = None
