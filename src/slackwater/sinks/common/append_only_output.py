"""Outputs whose marker shows the newest batch and the owner, and that cannot remove single batches."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cached_property
from typing import Generic, Protocol, TypeVar

from slackwater.core.errors import Refused
from slackwater.core.sink import Cut, Owner, Traits
from slackwater.sinks.common.opaque_output import OpaqueOutput
from slackwater.storage.protocols import WriteStore


class MarkerTarget(Protocol):
    """What has a marker: a table of a database, or a topic."""

    def last_written(self) -> int:
        """The newest batch, -1 for none. Raises SinkUnreadable."""

    def owner(self) -> Owner | None:
        """The stream that claimed the target. Raises SinkUnreadable."""

    def claim(self, owner: Owner) -> None:
        """Record the owner. Raises Refused (``sink-owned``)."""


Target = TypeVar("Target", bound=MarkerTarget)


class AppendOnlyOutput(OpaqueOutput, Generic[Target]):
    """The output at ``location``; ``uncuttable`` is why no batch can be removed from it."""

    def __init__(
        self, kind: str, traits: Traits, location: str, open_target: Callable[[], Target], uncuttable: str
    ) -> None:
        super().__init__(kind, traits, location)
        self._open_target = open_target
        self._uncuttable = uncuttable

    @cached_property
    def target(self) -> Target:
        """What has the marker, opened when it is first used: its client may be an extra."""
        return self._open_target()

    def last_written(self) -> int:
        return self.target.last_written()

    def owner(self) -> Owner | None:
        return self.target.owner()

    def claim(self, owner: Owner) -> None:
        self.target.claim(owner)

    def cut_after(self, batch: int, _recorded: Mapping[int, str]) -> Cut:
        if batch < self.last_written():
            raise self._refusal()
        return Cut(batch, ())

    def cut(self, cut: Cut, _recorded: Mapping[int, str], _backup: WriteStore) -> None:
        if cut.batches:
            raise self._refusal()

    def restore(self, cut: Cut, _backup: WriteStore) -> None:
        if cut.batches:
            raise self._refusal()

    def _refusal(self) -> Refused:
        return Refused(
            "sink-uncuttable",
            self._uncuttable,
            where=self.location,
            hint="rebuild at the last written batch, which removes nothing",
        )
