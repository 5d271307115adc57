"""An output whose content cannot be determined: it is neither read nor changed."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cached_property
from typing import TYPE_CHECKING, Generic, NoReturn, Protocol, TypeVar

from slackwater.core.errors import PipelineError, Refused
from slackwater.core.sink import Cut, Delivery, Owner, Traits, WriteContext, after_batch, cut_back
from slackwater.sinks.common.contract import Output, Sink
from slackwater.sinks.common.options import refuse_partitions
from slackwater.storage.protocols import WriteStore

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


def opaque_traits(
    delivery: Delivery,
    *,
    one_writer: bool,
    skips: bool = False,
    continuous: bool = False,
    real_time: bool = False,
) -> Traits:
    return Traits(
        delivery,
        reports_last_batch=False,
        skips_known_batches=skips,
        cuts=False,
        swaps=False,
        one_writer=one_writer,
        continuous=continuous,
        real_time=real_time,
    )


class PlacelessSink(Sink):
    """A sink without a place: all runs share it, whatever their options."""

    __slots__ = ()

    def identity(self) -> Mapping[str, str]:
        """The identity without options and functions, which may change between restarts."""
        return {"kind": self.kind}

    def check(self, _frame: DataFrame, context: WriteContext, /) -> None:
        """Rejects ``partition_by``; PySpark checks functions at the start."""
        refuse_partitions(self.kind, context)


class OpaqueOutput(Output):
    """An output that cannot be read. ``location`` is for messages, ``None`` without a place."""

    def __init__(self, kind: str, traits: Traits, location: str | None) -> None:
        self._kind = kind
        self._traits = traits
        self._location = location

    @property
    def traits(self) -> Traits:
        return self._traits

    @property
    def location(self) -> str | None:
        return self._location

    def cut_after(self, batch: int, recorded: Mapping[int, str]) -> Cut:
        self._refuse(f"{cut_back(batch)} with {len(recorded)} recorded entries")

    def cut(self, cut: Cut, recorded: Mapping[int, str], backup: WriteStore) -> None:
        self._refuse(cut_back(cut.after))

    def check_restore(self, cut: Cut, backup: WriteStore) -> None:
        self.restore(cut, backup)

    def restore(self, cut: Cut, backup: WriteStore) -> None:
        self._refuse(f"restored from a cut {after_batch(cut.after)}")

    def reader_path(self) -> str:
        raise PipelineError(
            "output-unreadable",
            f"A stream cannot read the output of a sink of kind {self._kind}",
            where=self.location,
        )

    def _refuse(self, what: str) -> NoReturn:
        raise Refused(
            "sink-uncuttable",
            f"The output of a sink of kind {self._kind} cannot be {what}",
            where=self.location,
            hint="rebuild at the last written batch, which removes nothing, or use a sink that can be cut",
        )


class MarkerTarget(Protocol):
    def last_written(self) -> int:
        """The newest batch, -1 for none. Raises SinkUnreadable."""

    def owner(self) -> Owner | None: ...

    def claim(self, owner: Owner) -> None: ...


Target = TypeVar("Target", bound=MarkerTarget)


class AppendOnlyOutput(OpaqueOutput, Generic[Target]):
    """An output that only grows; ``uncuttable`` is the reason why no batch can be removed."""

    def __init__(
        self, kind: str, traits: Traits, location: str, open_target: Callable[[], Target], uncuttable: str
    ) -> None:
        super().__init__(kind, traits, location)
        self._open_target = open_target
        self._uncuttable = uncuttable

    @cached_property
    def target(self) -> Target:
        """The marker's target, opened on demand: its client may be an extra."""
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
